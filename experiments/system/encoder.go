package system

import (
	"errors"
	"path/filepath"

	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
)

// Encoder makes ids of what the models of a Plan are asked.
type Encoder struct {
	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template // nil: text is taken as it is
	System    string         // message before the first one, unless that is of the system itself
	Variables map[string]any // of the template
}

// ErrNoTemplate is the error of Messages without a chat template.
var ErrNoTemplate = errors.New("messages want a chat template, and none is used")

// Encoder is that of the plan's models: with the chat template of the first that has one if template is set,
// none otherwise. It fails where no model has a tokenizer.
func (p *Plan) Encoder(template bool) (*Encoder, error) {
	e := &Encoder{Tokenizer: p.Tokenizer}
	if p.Tokenizer == nil {
		return nil, errors.New("no model has a tokenizer.json: there is nothing to turn text into ids")
	}
	if !template {
		return e, nil
	}
	var err error
	if e.Template, err = p.Chat(); errors.Is(err, chat.ErrNone) {
		err = nil
	}
	return e, err
}

// FolderEncoder is that of a model folder by itself, with its chat template if it has one.
func FolderEncoder(dir string) (*Encoder, error) {
	t, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	template, err := chat.Load(dir)
	if err != nil && !errors.Is(err, chat.ErrNone) {
		return nil, err
	}
	return &Encoder{Tokenizer: t, Template: template}, nil
}

// Text is the prompt of a user's text: a conversation of one message, where there is a template.
func (e *Encoder) Text(text string) ([]int32, error) {
	if e.Template == nil {
		return e.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true}), nil
	}
	return e.Messages([]chat.Message{{Role: "user", Content: text}})
}

// Messages is the prompt of a conversation, which is not empty.
func (e *Encoder) Messages(messages []chat.Message) ([]int32, error) {
	if e.Template == nil {
		return nil, ErrNoTemplate
	}
	if e.System != "" && messages[0].Role != "system" {
		messages = append([]chat.Message{{Role: "system", Content: e.System}}, messages...)
	}
	return e.Template.Encode(e.Tokenizer, messages, chat.Options{Reply: true, Variables: e.Variables})
}
