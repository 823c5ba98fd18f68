package remote

import (
	"encoding/json"
	"fmt"

	"tokenrouter/exec"
)

// sglang speaks with SGLang's server: POST /generate, as docs/basic_usage/native_api and sampling_params in
// its sources of 2026 have it, and managers/tokenizer_manager.py answers. It has been run against fakes only.
type sglang struct{}

type sglangBody struct {
	IDs       []int32        `json:"input_ids"`
	Sampling  sglangSampling `json:"sampling_params"`
	LogProbs  bool           `json:"return_logprob"`
	Top       int            `json:"top_logprobs_num,omitempty"`
	FirstProb int            `json:"logprob_start_len"` // -1: new tokens only, or the prompt is computed again
	Stream    bool           `json:"stream"`
}

type sglangSampling struct {
	TokensMax   int                `json:"max_new_tokens"`
	Temperature float64            `json:"temperature"`
	TopK        int                `json:"top_k"`
	TopP        float64            `json:"top_p"`
	MinP        float64            `json:"min_p"`
	Repetition  float64            `json:"repetition_penalty"` // all of these, or generation_config.json decides
	Presence    float64            `json:"presence_penalty"`
	Frequency   float64            `json:"frequency_penalty"`
	Seed        *int64             `json:"sampling_seed,omitempty"` // for --enable-deterministic-inference
	Biases      map[string]float64 `json:"logit_bias,omitempty"`
	IgnoreEOS   bool               `json:"ignore_eos"`
	SkipSpecial bool               `json:"skip_special_tokens"`
}

func newSGLangBody(ids []int32, s *exec.Sampling) sglangBody {
	p := sglangSampling{TokensMax: 1, TopK: -1, TopP: 1, Repetition: 1, IgnoreEOS: true}
	if s != nil && s.Temperature > 0 {
		p.Temperature, p.MinP = s.Temperature, s.MinP
		if s.TopK > 0 {
			p.TopK = s.TopK
		}
		if s.TopP > 0 {
			p.TopP = s.TopP
		}
	}
	return sglangBody{IDs: ids, Sampling: p, FirstProb: -1}
}

func (sglang) body(_ *Client, a *Ask) (string, any) {
	b := newSGLangBody(a.IDs, a.Sampling)
	if b.Sampling.Temperature > 0 {
		seed := int64(a.Seed >> 1)
		b.Sampling.Seed = &seed
	}
	b.Sampling.Biases = biasesByName(a.Biases)
	b.LogProbs, b.Top = a.Top > 0, a.Top
	return "/generate", b
}

// sglangProb is [log-probability, id, text or null].
type sglangProb exec.Candidate

// UnmarshalJSON implements json.Unmarshaler.
func (p *sglangProb) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return fmt.Errorf("a log-probability of %d parts, want [number, id, text]", len(parts))
	}
	if err := json.Unmarshal(parts[0], &p.LogProb); err != nil {
		return err
	}
	return json.Unmarshal(parts[1], &p.Token)
}

type sglangAnswer struct {
	IDs  []int32 `json:"output_ids"`
	Meta struct {
		Probs []sglangProb   `json:"output_token_logprobs"`
		Top   [][]sglangProb `json:"output_top_logprobs"`
	} `json:"meta_info"`
}

func (sglang) answer(_ *Client, a *Ask, data []byte) (Answer, error) {
	var from sglangAnswer
	if err := parse(data, &from); err != nil {
		return Answer{}, err
	}
	var answer Answer
	switch {
	case len(from.IDs) == 1:
		answer.Token = from.IDs[0]
	case len(from.IDs) == 0 && len(from.Meta.Probs) == 1: // versions without output_ids
		answer.Token = from.Meta.Probs[0].Token
	default:
		return Answer{}, tokensError(len(from.IDs))
	}
	if a.Top == 0 {
		return answer, nil
	}
	if len(from.Meta.Probs) != 1 || len(from.Meta.Top) != 1 {
		return Answer{}, fmt.Errorf("the answer has no log-probabilities of its token")
	}
	answer.LogProb = from.Meta.Probs[0].LogProb
	for _, t := range from.Meta.Top[0] {
		answer.Top = append(answer.Top, exec.Candidate(t))
	}
	sortTop(answer.Top)
	return answer, nil
}

func (sglang) detokenize(c *Client, ids []int32) any {
	return map[string]any{"model": c.info.Model, "tokens": ids, "skip_special_tokens": false}
}

func (sglang) text(data []byte) (string, error) {
	var from struct {
		Text string `json:"text"`
	}
	err := parse(data, &from)
	return from.Text, err
}
