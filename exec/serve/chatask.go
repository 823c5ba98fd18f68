package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tokenrouter/exec"
	"tokenrouter/exec/model/chat"
)

// readChat reads the body of /v1/chat/completions.
func (s *Server) readChat(body []byte) (*ask, *failure) {
	f, failed := readFields(body)
	if failed != nil {
		return nil, failed
	}
	a := &ask{chat: true}
	s.common(f, a)
	a.logprobs = boolean(f, "logprobs")
	top, set := whole(f, "top_logprobs", 0, 0, exec.SamplingTopMax)
	if a.top = int(top); set && !a.logprobs {
		f.wrong("top_logprobs", "top_logprobs: want it with logprobs = true only")
	}
	if a.top > 0 {
		a.sampling.Top = a.top
	}
	ids := s.conversation(f)
	if failed := f.rest(); failed != nil {
		return nil, failed
	}
	a.prompts = [][]int32{ids}
	return a, s.fit(a, s.c.Core.ContextMax)
}

// messagesMax bounds the turns of a conversation.
const messagesMax = 4096

// conversation reads messages and makes a prompt of them.
func (s *Server) conversation(f *fields) []int32 {
	raw, set := take[[]json.RawMessage](f, "messages", "an array of messages")
	variables, _ := take[map[string]any](f, "chat_template_kwargs", "an object")
	switch {
	case f.failed != nil:
		return nil
	case s.c.Template == nil:
		f.wrong("messages", "the models have no chat template: /v1/completions takes text")
		return nil
	case !set || len(raw) > messagesMax:
		f.wrong("messages", "messages: %d of them, want 1 to %d", len(raw), messagesMax)
		return nil
	}
	messages := make([]chat.Message, len(raw))
	for i := range raw {
		param := fmt.Sprintf("messages[%d]", i)
		if messages[i], f.failed = readMessage(param, raw[i]); f.failed != nil {
			return nil
		}
	}
	ids, err := s.c.Template.Encode(s.c.Tokenizer, messages, chat.Options{Reply: true, Variables: variables})
	if err != nil {
		f.wrong("messages", "messages: %v", err)
	}
	return ids
}

// roles are those of messages; developer is OpenAI's newer word for system.
var roles = []string{"system", "developer", "user", "assistant"}

func readMessage(param string, raw json.RawMessage) (chat.Message, *failure) {
	f, failed := readFields(raw)
	if failed != nil {
		return chat.Message{}, within(param, failed)
	}
	role, _ := take[string](f, "role", "a role")
	if !slices.Contains(roles, role) {
		f.wrong("role", "role = %q, want one of %q", role, roles)
	}
	if role == "developer" {
		role = "system"
	}
	if raw := f.raw["content"]; role != "assistant" && (len(raw) == 0 || string(raw) == "null") {
		f.wrong("content", "content: missing, want a string or an array of parts")
	}
	content := text(f)
	if failed := f.rest(); failed != nil {
		return chat.Message{}, within(param, failed)
	}
	return chat.Message{Role: role, Content: content}, nil
}

// text reads the content of a message: a string, or parts of text.
func text(f *fields) string {
	if raw := f.raw["content"]; len(raw) == 0 || raw[0] != '[' {
		content, _ := take[string](f, "content", "a string or an array of parts")
		return content
	}
	raw, _ := take[[]json.RawMessage](f, "content", "a string or an array of parts")
	var all strings.Builder
	for i := range raw {
		text, failed := readPart(raw[i])
		if failed != nil && f.failed == nil {
			f.failed = within(fmt.Sprintf("content[%d]", i), failed)
		}
		all.WriteString(text)
	}
	return all.String()
}

// readPart reads a part of a message's content.
func readPart(raw json.RawMessage) (string, *failure) {
	f, failed := readFields(raw)
	if failed != nil {
		return "", failed
	}
	if kind, _ := take[string](f, "type", "a type"); kind != "text" {
		f.wrong("type", "type = %q, want text: these models read no other", kind)
	}
	text, _ := take[string](f, "text", "a string")
	return text, f.rest()
}

// within is the failure of an object that is a part of another, where it is called name.
func within(name string, of *failure) *failure {
	param := name
	if of.Param != nil {
		param += "." + *of.Param
	}
	return invalid(param, "%s: %s", name, of.Message)
}
