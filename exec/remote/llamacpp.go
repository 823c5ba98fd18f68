package remote

import (
	"errors"

	"tokenrouter/exec"
)

// llamaCPP speaks with llama.cpp's server: POST /completion (tools/server/README.md in its sources).
type llamaCPP struct{}

type llamaBody struct {
	Prompt      []int32      `json:"prompt"`
	Predict     int          `json:"n_predict"`
	Slot        int          `json:"id_slot"`
	CachePrompt bool         `json:"cache_prompt"`
	Tokens      bool         `json:"return_tokens"`
	Stream      bool         `json:"stream"`
	Temperature float64      `json:"temperature"`
	TopK        int          `json:"top_k"`
	TopP        float64      `json:"top_p"`
	MinP        float64      `json:"min_p"`
	Samplers    []string     `json:"samplers"`
	Seed        uint32       `json:"seed"`
	Probs       int          `json:"n_probs,omitempty"`
	Biases      [][2]float64 `json:"logit_bias,omitempty"`
}

// newLlamaBody has no sampler but those of s, in the order of the embedded device: top-k, top-p, min-p, then
// the temperature. The server's own defaults would change even greedy answers.
func newLlamaBody(ids []int32, tokens int, s *exec.Sampling) llamaBody {
	b := llamaBody{
		Prompt: ids, Predict: tokens, Slot: -1, CachePrompt: true, Tokens: true, TopP: 1, Samplers: []string{},
	}
	if s == nil || s.Temperature == 0 {
		return b
	}
	b.Temperature, b.TopK, b.MinP = s.Temperature, s.TopK, s.MinP
	if s.TopP > 0 {
		b.TopP = s.TopP
	}
	b.Samplers = []string{"top_k", "top_p", "min_p", "temperature"}
	return b
}

func (llamaCPP) body(_ *Client, a *Ask) (string, any) {
	b := newLlamaBody(a.IDs, 1, a.Sampling)
	b.Slot, b.Probs = max(a.Slot, -1), a.Top
	const random = 1<<32 - 1 // stands for a seed of the server's own
	b.Seed = uint32(a.Seed % random)
	for _, bias := range a.Biases {
		b.Biases = append(b.Biases, [2]float64{float64(bias.Token), bias.Bias})
	}
	return "/completion", b
}

type llamaAnswer struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
	Probs  []struct {
		ID      int32   `json:"id"`
		LogProb float32 `json:"logprob"`
		Top     []struct {
			ID      int32   `json:"id"`
			LogProb float32 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"completion_probabilities"`
	Truncated bool `json:"truncated"`
	Timings   struct {
		PromptMs    float64 `json:"prompt_ms"`
		PredictedMs float64 `json:"predicted_ms"`
	} `json:"timings"`
}

// errNoProbabilities is of a token that is no whole character: the server keeps such probabilities back.
var errNoProbabilities = errors.New("no probabilities")

func (llamaCPP) answer(c *Client, a *Ask, data []byte) (Answer, error) {
	var from llamaAnswer
	if err := parse(data, &from); err != nil {
		return Answer{}, err
	}
	if err := c.same(from.Model); err != nil {
		return Answer{}, err
	}
	if len(from.Tokens) != 1 {
		return Answer{}, tokensError(len(from.Tokens))
	}
	engineMs := from.Timings.PromptMs + from.Timings.PredictedMs
	answer := Answer{Token: from.Tokens[0], EngineNs: int64(engineMs * millisecondNs)}
	if a.Top == 0 {
		return answer, nil
	}
	if len(from.Probs) != 1 {
		return answer, errNoProbabilities
	}
	answer.LogProb = from.Probs[0].LogProb
	for _, t := range from.Probs[0].Top {
		answer.Top = append(answer.Top, exec.Candidate{Token: t.ID, LogProb: t.LogProb})
	}
	return answer, nil
}

func (llamaCPP) stream(_ *Client, ids []int32, tokens int) (string, any) {
	b := newLlamaBody(ids, tokens, nil)
	b.Stream = true
	// An end token must be as good as any other, and ignore_eos would forbid it instead: the caller must serve
	// a model without one.
	return "/completion", b
}

func (llamaCPP) piece(data []byte) ([]int32, error) {
	var from llamaAnswer
	err := parse(data, &from)
	return from.Tokens, err
}

func (llamaCPP) detokenize(_ *Client, ids []int32) any { return map[string]any{"tokens": ids} }

func (llamaCPP) text(data []byte) (string, error) {
	var from struct {
		Content string `json:"content"`
	}
	err := parse(data, &from)
	return from.Content, err
}
