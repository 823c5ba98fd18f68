package chat

import (
	"strings"

	"tokenrouter/exec/model/tokenizer"
)

// Encode returns the ids of the prompt of a conversation. Special tokens of the template get their ids; the
// same words inside a message are text like any other, so that a user can not end a turn. Without such words
// the ids are those of transformers' apply_chat_template.
func (t *Template) Encode(tokens *tokenizer.Tokenizer, messages []Message, o Options) ([]int32, error) {
	stand := standIns(tokens, messages)
	text, err := t.Render(stand.hide(messages), o)
	if err != nil {
		return nil, err
	}
	parse := tokenizer.Options{ParseSpecial: true}
	if len(stand.words) == 0 {
		return tokens.Encode(text, parse), nil
	}
	var ids []int32
	for text != "" {
		begin, end := stand.nextSpecial(text)
		ids = append(ids, tokens.Encode(stand.shown.Replace(text[:begin]), tokenizer.Options{})...)
		ids = append(ids, tokens.Encode(text[begin:end], parse)...)
		text = text[end:]
	}
	return ids, nil
}

// standIn has a character for each special token that a message holds, to stand for it while the template is
// rendered.
type standIn struct {
	words   []string // special tokens that some message has
	special []string // all of them
	hidden  *strings.Replacer
	shown   *strings.Replacer
}

// standIns finds the special tokens in messages and characters of Unicode's private planes that no message
// has.
func standIns(tokens *tokenizer.Tokenizer, messages []Message) *standIn {
	s := &standIn{}
	var all strings.Builder
	for _, m := range messages {
		all.WriteString(m.Role + "\x00" + m.Content + "\x00")
	}
	free := rune(0xf0000)
	var hidden, shown []string
	for _, id := range tokens.SpecialIDs() {
		word, _ := tokens.Token(id)
		s.special = append(s.special, word)
		if !strings.Contains(all.String(), word) {
			continue
		}
		for strings.ContainsRune(all.String(), free) {
			free++
		}
		s.words = append(s.words, word)
		hidden, shown = append(hidden, word, string(free)), append(shown, string(free), word)
		free++
	}
	s.hidden, s.shown = strings.NewReplacer(hidden...), strings.NewReplacer(shown...)
	return s
}

func (s *standIn) hide(messages []Message) []Message {
	if len(s.words) == 0 {
		return messages
	}
	out := make([]Message, len(messages))
	for i, m := range messages {
		out[i] = Message{Role: s.hidden.Replace(m.Role), Content: s.hidden.Replace(m.Content)}
	}
	return out
}

// nextSpecial returns where the first special token of the template stands, the longest of several; both
// ends are that of the text where there is none.
func (s *standIn) nextSpecial(text string) (begin, end int) {
	begin, end = len(text), len(text)
	for _, word := range s.special {
		at := strings.Index(text, word)
		if at >= 0 && (at < begin || at == begin && at+len(word) > end) {
			begin, end = at, at+len(word)
		}
	}
	return begin, end
}
