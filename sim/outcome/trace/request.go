package trace

import (
	"fmt"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/turnlog/jsonline"
)

// FormatName and Version stand in the header of a trace file.
const (
	FormatName = "tokenrouter-trace"
	Version    = 1
)

// ArrivalNsMax is the latest arrival: 2^62 ns, about 146 years.
const ArrivalNsMax = 1 << 62

// Signals is a set of fields of core.Result.
type Signals uint8

// The signals, in the order of a header's lists.
const (
	Token Signals = 1 << iota
	LogProb
	TopProb
	Score
	Entropy
	Draw
	EOS
	signalsEnd
)

var signalNames = [...]string{"token", "logprob", "top_prob", "score", "entropy", "draw", "eos"}

// SignalNamed returns the signal of that name, or 0.
func SignalNamed(name string) Signals {
	for i, known := range signalNames {
		if name == known {
			return 1 << i
		}
	}
	return 0
}

// Names returns the names of the signals of the set, in the order of the constants.
func (s Signals) Names() []string {
	names := make([]string, 0, len(signalNames))
	for i, name := range signalNames {
		if s>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String lists the names.
func (s Signals) String() string { return strings.Join(s.Names(), ", ") }

// Header is the first line of a trace.
type Header struct {
	Models  []string
	Signals []Signals // a model each: what its passes left
	Pair    Pair
}

func (h *Header) check() error {
	if n := len(h.Models); n < 1 || n > core.ModelsMax {
		return wrong("models", fmt.Sprintf("%d names", n), "1 to %d", core.ModelsMax)
	}
	if n := len(h.Signals); n != len(h.Models) {
		return wrong("signals", fmt.Sprintf("%d lists", n), "one for each of %d models", len(h.Models))
	}
	for m, s := range h.Signals {
		if s >= signalsEnd {
			return wrong(fmt.Sprintf("signals[%d]", m), uint8(s), "known signals")
		}
	}
	if n := len(h.Pair.Weights); n != 0 && n != len(h.Models) {
		return wrong("weights", fmt.Sprintf("%d hashes", n), "one for each of %d models", len(h.Models))
	}
	return nil
}

func wrong(path string, value any, want string, args ...any) error {
	return jsonline.Wrong(path, value, fmt.Sprintf(want, args...))
}

// End says why an answer ended.
type End uint8

const (
	// EndOfSequence: the last token was an end-of-sequence token.
	EndOfSequence End = iota + 1
	// Length: the answer was cut, or stopped by its client, after its last token.
	Length
)

var endNames = [...]string{"", "eos", "length"}

// String is the name in the file.
func (e End) String() string { return endNames[e] }

// Verdict says whether an answer was right.
type Verdict uint8

// An answer that nobody has judged has the Verdict 0.
const (
	Right Verdict = iota + 1
	Wrong
)

// VerdictOf is Right or Wrong.
func VerdictOf(right bool) Verdict {
	if right {
		return Right
	}
	return Wrong
}

// Result is what one pass left.
type Result struct {
	core.Result
	Has Signals // which fields were recorded
}

// Request is one request of a trace.
type Request struct {
	ID           uint64
	ArrivalNs    int64
	PromptTokens int32
	OutputTokens int32
	TokensMax    int32 // the most that the answer could have; 0: not recorded
	End          End
	Verdict      Verdict
	Path         string     // "": not recorded
	Results      [][]Result // [model][position]; nil: not recorded; a nil model: never run

	Line int // of the file, set by a Reader
}

// check reports what does not fit together. It fills in OutputTokens where only a path is
// given.
func (r *Request) check(h *Header) error {
	switch {
	case r.PromptTokens < 1:
		return wrong("prompt_tokens", r.PromptTokens, "at least 1")
	case r.ArrivalNs < 0 || r.ArrivalNs > ArrivalNsMax:
		return wrong("arrival_ms", milliseconds(r.ArrivalNs), "0 to %s", milliseconds(ArrivalNsMax))
	case r.End != EndOfSequence && r.End != Length:
		return wrong("end", uint8(r.End), "eos or length")
	case r.Verdict > Wrong:
		return wrong("right", uint8(r.Verdict), "true or false")
	case r.Path == "" && r.Results == nil:
		return wrong("", "neither path nor results", "at least one of them")
	}
	if r.Path != "" {
		tokens, err := checkPath(r.Path, len(h.Models))
		if err != nil {
			return err
		}
		if r.OutputTokens == 0 {
			r.OutputTokens = tokens
		}
		if r.OutputTokens != tokens {
			return wrong("output_tokens", r.OutputTokens, "%d, the tokens that path keeps", tokens)
		}
	}
	if r.OutputTokens < 1 {
		return wrong("output_tokens", r.OutputTokens, "at least 1")
	}
	if r.TokensMax != 0 && r.TokensMax < r.OutputTokens {
		return wrong("tokens_max", r.TokensMax, "at least %d, the tokens of the answer", r.OutputTokens)
	}
	return r.checkResults(h)
}

func (r *Request) checkResults(h *Header) error {
	if r.Results == nil {
		return nil
	}
	if n := len(r.Results); n != len(h.Models) {
		return wrong("results", fmt.Sprintf("%d models", n), "%d", len(h.Models))
	}
	for m, results := range r.Results {
		if results == nil {
			continue
		}
		path := fmt.Sprintf("results[%d]", m)
		if n := len(results); n != int(r.OutputTokens) {
			return wrong(path, fmt.Sprintf("%d positions", n), "%d, as output_tokens says", r.OutputTokens)
		}
		for p := range results {
			if more := results[p].Has &^ h.Signals[m]; more != 0 {
				return wrong(path, more, "only what the header names: %s", h.Signals[m])
			}
		}
	}
	return nil
}

// checkPath returns how many tokens a path keeps.
func checkPath(path string, models int) (tokens int32, err error) {
	bad := func(at int, want string, args ...any) error {
		const around = 10
		near := path[max(at-around, 0):min(at+around, len(path))]
		return wrong("path", fmt.Sprintf("%q at %d, near %q", path[at:at+1], at, near), want, args...)
	}
	before := byte(0) // the model whose token was dropped just before
	for i := 0; i < len(path); i++ {
		b := path[i]
		if b < '0' || int(b-'0') >= models {
			return 0, bad(i, "a model, 0 to %d", models-1)
		}
		if b == before {
			return 0, bad(i, "another model than the one whose token was dropped")
		}
		before = 0
		if i+1 < len(path) && path[i+1] == 'x' {
			i++
			before = b
			continue
		}
		tokens++
	}
	if before != 0 {
		return 0, bad(len(path)-1, "a last pass whose token is kept")
	}
	return tokens, nil
}

// milliseconds writes whole nanoseconds as milliseconds with all their digits and no more.
func milliseconds(ns int64) string {
	text := fmt.Sprintf("%d.%06d", ns/1e6, ns%1e6)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
