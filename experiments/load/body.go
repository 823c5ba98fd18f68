package load

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"

	"tokenrouter/core/keyed"
	"tokenrouter/exec/model/chat"
	"tokenrouter/sim/workload"
)

// body is the JSON that request r sends.
func (c *Config) body(r workload.Request) ([]byte, error) {
	fields := map[string]any{"model": c.Model}
	p := c.prompt(r)
	switch {
	case !c.Chat && p.Tokens != nil:
		fields["prompt"] = p.Tokens
	case !c.Chat:
		fields["prompt"] = p.Text
	case p.Messages != nil:
		fields["messages"] = p.Messages
	default:
		fields["messages"] = []chat.Message{{Role: "user", Content: p.Text}}
	}
	if c.Stream {
		fields["stream"] = true
		if c.Usage {
			fields["stream_options"] = map[string]any{"include_usage": true}
		}
	}
	if end := r.EndTokens(); end > 0 {
		fields["max_tokens"] = end
	}
	if r.OutputTokens > 0 {
		fields["ignore_eos"] = true
	}
	maps.Copy(fields, c.Fields)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(fields)
	return text.Bytes(), err
}

// prompt is that of request r.
func (c *Config) prompt(r workload.Request) Prompt {
	if c.Prompts != nil {
		return c.Prompts[r.ID%uint64(len(c.Prompts))]
	}
	stream := keyed.NewKey(c.Seed, r.ID).Stream(0, 0, keyed.Custom)
	if c.Chat {
		drawn := make([]string, r.PromptTokens)
		for i := range drawn {
			drawn[i] = words[keyed.Below(stream.Uint64(), uint64(len(words)))]
		}
		return Prompt{Text: strings.Join(drawn, " ")}
	}
	least := c.TokenIDs[0]
	ids := make([]int32, r.PromptTokens)
	for i := range ids {
		ids[i] = least + int32(keyed.Below(stream.Uint64(), uint64(c.TokenIDs[1]-least)+1))
	}
	return Prompt{Tokens: ids}
}

// words are about a token each in most vocabularies.
var words = strings.Fields(`the of and to in is that for it as was with be by on not he his but at are this
	have from or had an they which one you were all her she there would their we him been has when who will no
	more if out so up said what its about than into them can only other time new some could these two may first`)
