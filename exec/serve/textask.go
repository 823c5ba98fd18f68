package serve

import (
	"encoding/json"
	"fmt"
	"slices"

	"tokenrouter/exec"
	"tokenrouter/exec/model/tokenizer"
)

// completionTokens is the most tokens of a completion that asks for no number (OpenAI's API).
const completionTokens = 16

// readCompletion reads the body of /v1/completions.
func (s *Server) readCompletion(body []byte) (*ask, *failure) {
	f, failed := readFields(body)
	if failed != nil {
		return nil, failed
	}
	a := &ask{}
	s.common(f, a)
	if top, set := whole(f, "logprobs", 0, 0, exec.SamplingTopMax); set {
		a.logprobs, a.top, a.sampling.Top = true, int(top), int(top)
	}
	a.prompts = s.prompts(f)
	if failed := f.rest(); failed != nil {
		return nil, failed
	}
	return a, s.fit(a, completionTokens)
}

const promptForms = "a string, an array of token ids, or an array of either"

// prompts reads the prompts of a completion: one or several, each text or ids.
func (s *Server) prompts(f *fields) [][]int32 {
	raw, set := take[json.RawMessage](f, "prompt", promptForms)
	if f.failed != nil {
		return nil
	}
	if !set {
		f.wrong("prompt", "prompt is missing or empty, want %s", promptForms)
		return nil
	}
	one, err := s.prompt(raw)
	if err == nil {
		return [][]int32{one}
	}
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil || many[0][0] != '"' && many[0][0] != '[' { // it is not empty
		f.wrong("prompt", "prompt: %v", err)
		return nil
	}
	var prompts [][]int32
	for i := range many {
		ids, err := s.prompt(many[i])
		if err != nil {
			f.wrong("prompt", "prompt[%d]: %v", i, err)
			return nil
		}
		prompts = append(prompts, ids)
	}
	return prompts
}

// prompt reads one: text, or ids.
func (s *Server) prompt(raw json.RawMessage) ([]int32, error) {
	var text string
	var given []*int32 // null is none of them
	var ids []int32
	switch {
	case json.Unmarshal(raw, &text) == nil:
		ids = s.c.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true})
	case json.Unmarshal(raw, &given) != nil || slices.Contains(given, nil):
		return nil, fmt.Errorf("want %s", promptForms)
	}
	for _, id := range given {
		ids = append(ids, *id)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("it is empty, want at least one token")
	}
	for i, id := range ids {
		if id < 0 || int(id) >= s.c.Vocab {
			return nil, fmt.Errorf("token %d is %d, want 0 to %d", i, id, s.c.Vocab-1)
		}
	}
	return ids, nil
}
