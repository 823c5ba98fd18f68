package remote

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/exec"
)

// Engine is a kind of server.
type Engine int

// The engines. LlamaCPP is llama.cpp's server (tools/server in its sources).
const (
	LlamaCPP Engine = iota + 1
	VLLM
	SGLang
)

// EngineNames are what ParseEngine knows, in the order of the constants.
var EngineNames = []string{"llama.cpp", "vllm", "sglang"}

// String is the name in a system's file.
func (e Engine) String() string { return EngineNames[e-1] }

// ParseEngine returns the engine of a name, one of EngineNames.
func ParseEngine(name string) (Engine, error) {
	for i, known := range EngineNames {
		if name == known {
			return Engine(i + 1), nil
		}
	}
	return 0, fmt.Errorf("engine %q, want one of %s", name, strings.Join(EngineNames, ", "))
}

// Ask is a call: the token after IDs.
type Ask struct {
	IDs []int32
	// Sampling gives temperature, top-k, top-p and min-p; nil: the most likely token.
	Sampling *exec.Sampling
	Biases   []exec.TokenBias // added to logits before a token is drawn
	Seed     uint64           // of the draw
	Top      int              // as many most likely tokens are wanted; 0: not even the token's probability
	Slot     int              // of LlamaCPP, where the request's KV lies; negative: any
}

// Answer is what an engine says to an Ask.
type Answer struct {
	Token   int32
	LogProb float32 // natural log, 0 unless Ask.Top
	// Top are the most likely tokens, the most likely first: before biases, temperature and top-p, but for
	// SGLang, of which they are what is left after these.
	Top      []exec.Candidate
	EngineNs int64 // that the engine says it worked; 0: it does not say
}

// dialect is how an engine is spoken to.
type dialect interface {
	// body is the path and the body of a call.
	body(c *Client, a *Ask) (path string, body any)
	// answer reads the answer to a call.
	answer(c *Client, a *Ask, data []byte) (Answer, error)
	// detokenize is the body of a call of /detokenize, and text what its answer says.
	detokenize(c *Client, ids []int32) any
	text(data []byte) (string, error)
}

func (e Engine) dialect() dialect {
	switch e {
	case LlamaCPP:
		return llamaCPP{}
	case VLLM:
		return vllm{}
	case SGLang:
		return sglang{}
	default:
		panic(fmt.Sprintf("remote: engine %d", e))
	}
}

// parse reads a JSON document of an engine.
func parse(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer is not what it should be: %w", err)
	}
	return nil
}

// shortest is as much of a text as a message shows.
func shortest(data []byte) string {
	const bytesMax = 300
	text := strings.TrimSpace(string(data))
	if len(text) > bytesMax {
		text = strings.ToValidUTF8(text[:bytesMax], "") + "..."
	}
	return text
}

// sortTop puts the most likely first, and of equally likely ones the lower id.
func sortTop(top []exec.Candidate) {
	slices.SortFunc(top, func(a, b exec.Candidate) int {
		switch {
		case a.LogProb > b.LogProb:
			return -1
		case a.LogProb < b.LogProb:
			return 1
		}
		return int(a.Token) - int(b.Token)
	})
}

// tokensError is of an answer with another number of tokens than one.
func tokensError(n int) error { return fmt.Errorf("the answer has %d tokens, want 1", n) }

const millisecondNs = 1e6
