package remote

import (
	"fmt"
	"strconv"
	"strings"

	"tokenrouter/exec"
)

// vllm speaks with vLLM's server: POST /v1/completions, with what vLLM adds to OpenAI's API
// (vllm/entrypoints/openai/completion/protocol.py).
type vllm struct{}

type vllmBody struct {
	Model       string             `json:"model"`
	Prompt      []int32            `json:"prompt"`
	TokensMax   int                `json:"max_tokens"`
	Stream      bool               `json:"stream"`
	Temperature float64            `json:"temperature"`
	TopK        int                `json:"top_k"`
	TopP        float64            `json:"top_p"`
	MinP        float64            `json:"min_p"`
	Repetition  float64            `json:"repetition_penalty"` // all of these, or generation_config.json decides
	Presence    float64            `json:"presence_penalty"`
	Frequency   float64            `json:"frequency_penalty"`
	Seed        *int64             `json:"seed,omitempty"`
	LogProbs    *int               `json:"logprobs,omitempty"`
	Biases      map[string]float64 `json:"logit_bias,omitempty"`
	TokenIDs    bool               `json:"return_token_ids"`
	AsIDs       bool               `json:"return_tokens_as_token_ids"`
	IgnoreEOS   bool               `json:"ignore_eos"` // or a token that ends an answer would have no id
	SkipSpecial bool               `json:"skip_special_tokens"`
	AddSpecial  bool               `json:"add_special_tokens"`
}

func newVLLMBody(c *Client, ids []int32, tokens int, s *exec.Sampling) vllmBody {
	b := vllmBody{
		Model: c.info.Model, Prompt: ids, TokensMax: tokens, TopP: 1, Repetition: 1, TokenIDs: true,
		IgnoreEOS: true,
	}
	if s != nil && s.Temperature > 0 {
		b.Temperature, b.TopK, b.MinP = s.Temperature, s.TopK, s.MinP
		if s.TopP > 0 {
			b.TopP = s.TopP
		}
	}
	return b
}

func (vllm) body(c *Client, a *Ask) (string, any) {
	b := newVLLMBody(c, a.IDs, 1, a.Sampling)
	if b.Temperature > 0 {
		seed := int64(a.Seed)
		b.Seed = &seed
	}
	if a.Top > 0 {
		b.LogProbs, b.AsIDs = &a.Top, true
	}
	b.Biases = biasesByName(a.Biases)
	return "/v1/completions", b
}

// biasesByName are biases as OpenAI's API has them.
func biasesByName(biases []exec.TokenBias) map[string]float64 {
	if len(biases) == 0 {
		return nil
	}
	names := make(map[string]float64, len(biases))
	for _, b := range biases {
		names[strconv.Itoa(int(b.Token))] = b.Bias
	}
	return names
}

type vllmAnswer struct {
	Model   string `json:"model"`
	Choices []struct {
		TokenIDs []int32 `json:"token_ids"`
		LogProbs *struct {
			LogProbs []float32            `json:"token_logprobs"`
			Top      []map[string]float32 `json:"top_logprobs"`
		} `json:"logprobs"`
	} `json:"choices"`
	Metrics struct {
		// From being scheduled to the first token, in the engine: with --enable-per-request-metrics.
		FirstTokenMs float64 `json:"time_to_first_token_ms"`
	} `json:"metrics"`
}

func (vllm) answer(c *Client, a *Ask, data []byte) (Answer, error) {
	var from vllmAnswer
	if err := parse(data, &from); err != nil {
		return Answer{}, err
	}
	if err := c.same(from.Model); err != nil {
		return Answer{}, err
	}
	if len(from.Choices) != 1 || len(from.Choices[0].TokenIDs) != 1 {
		n := 0
		for _, choice := range from.Choices {
			n += len(choice.TokenIDs)
		}
		return Answer{}, tokensError(n)
	}
	choice := &from.Choices[0]
	answer := Answer{Token: choice.TokenIDs[0], EngineNs: int64(from.Metrics.FirstTokenMs * millisecondNs)}
	if a.Top == 0 {
		return answer, nil
	}
	p := choice.LogProbs
	if p == nil || len(p.LogProbs) != 1 || len(p.Top) != 1 {
		return Answer{}, fmt.Errorf("the answer has no logprobs of its token")
	}
	answer.LogProb = p.LogProbs[0]
	for name, logProb := range p.Top[0] {
		number, ok := strings.CutPrefix(name, "token_id:")
		id, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil {
			return Answer{}, fmt.Errorf("top_logprobs has %q, want token_id:NUMBER", name)
		}
		answer.Top = append(answer.Top, exec.Candidate{Token: int32(id), LogProb: logProb})
	}
	sortTop(answer.Top)
	answer.Top = answer.Top[:min(len(answer.Top), a.Top)] // the token that was drawn comes on top of them
	return answer, nil
}

func (vllm) stream(c *Client, ids []int32, tokens int) (string, any) {
	b := newVLLMBody(c, ids, tokens, nil)
	b.Stream = true
	return "/v1/completions", b
}

func (vllm) piece(data []byte) ([]int32, error) {
	var from vllmAnswer
	if err := parse(data, &from); err != nil {
		return nil, err
	}
	var ids []int32
	for _, choice := range from.Choices {
		ids = append(ids, choice.TokenIDs...)
	}
	return ids, nil
}

func (vllm) detokenize(c *Client, ids []int32) any {
	return map[string]any{"model": c.info.Model, "tokens": ids}
}

func (vllm) text(data []byte) (string, error) {
	var from struct {
		Prompt string `json:"prompt"`
	}
	err := parse(data, &from)
	return from.Prompt, err
}
