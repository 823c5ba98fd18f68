package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ardanlabs/jinja"

	"tokenrouter/exec/model"
)

// ErrNone is the error of Load for a folder that has no chat template.
var ErrNone = errors.New("there is no chat template")

// Template is the chat template of a model. It is safe for several goroutines at once.
type Template struct {
	compiled *jinja.Template
	special  map[string]string // bos_token and the like, which templates may name
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"` // system, user, assistant, or what else the template knows
	Content string `json:"content"`
}

// Options says how a conversation is rendered.
type Options struct {
	// Reply ends the prompt so that the model goes on as the assistant (add_generation_prompt).
	Reply bool
	// Variables are given to the template as they are, such as enable_thinking for Qwen3: booleans, numbers,
	// strings, and lists and maps of them; none that Render sets by its other arguments.
	Variables map[string]any
}

// Load reads the chat template of a model folder: chat_template.jinja, else what tokenizer_config.json has
// under chat_template (of several, the one named default), else chat_template.json. Special tokens come from
// tokenizer_config.json. It returns ErrNone for a folder without one, and refuses a template that the
// package can not read, with its line.
func Load(dir string) (*Template, error) {
	config := filepath.Join(dir, "tokenizer_config.json")
	values, err := readObject(config)
	if err != nil {
		return nil, err
	}
	special, err := specialTokens(config, values)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "chat_template.jinja")
	source, err := model.ReadFile(file, fileBytesMax)
	switch {
	case err == nil:
		return Parse(file, string(source), special)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if file = config; isAbsent(values["chat_template"]) {
		file = filepath.Join(dir, "chat_template.json")
		if values, err = readObject(file); err != nil {
			return nil, err
		}
	}
	if isAbsent(values["chat_template"]) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNone)
	}
	text, err := defaultTemplate(values["chat_template"])
	if err != nil {
		return nil, fmt.Errorf("%s: chat_template: %w", file, err)
	}
	return Parse(file, text, special)
}

// Parse makes a Template of a Jinja source; errors name file. special has the texts of special tokens by
// their names in tokenizer_config.json, such as bos_token.
func Parse(file, source string, special map[string]string) (*Template, error) {
	if len(source) > sourceBytesMax {
		return nil, fmt.Errorf("%s: a chat template of %d bytes, want at most %d", file, len(source),
			sourceBytesMax)
	}
	rewritten, err := explicit(source)
	if err != nil {
		return nil, fmt.Errorf("%s: chat template: %w", file, err)
	}
	compiled, err := jinja.Compile(rewritten)
	if err != nil {
		return nil, fmt.Errorf("%s: chat template: %w", file, err)
	}
	return &Template{compiled: compiled, special: special}, nil
}

// Render returns the prompt of a conversation. What the template refuses (raise_exception) and what it can
// not compute is an error. It names no file: whose conversation it is may sit at another machine.
func (t *Template) Render(messages []Message, o Options) (text string, err error) {
	defer func() { // templates are files of others, and so is what runs them
		if r := recover(); r != nil {
			err = fmt.Errorf("chat template: %v", r)
		}
	}()
	values := map[string]jinja.Value{
		"messages":              conversation(messages),
		"add_generation_prompt": jinja.NewBool(o.Reply),
		"tools":                 jinja.None(),
		"documents":             jinja.None(),
	}
	limited(values)
	for name, token := range t.special {
		values[name] = jinja.NewString(token)
	}
	for name, given := range o.Variables {
		if name == "messages" || name == "add_generation_prompt" {
			return "", fmt.Errorf("variable %s: want it by its own field: another would take its place", name)
		}
		values[name] = jinja.FromGoValue(given)
	}
	text, err = t.compiled.RenderValues(values)
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}

func conversation(messages []Message) jinja.Value {
	items := make([]jinja.Value, len(messages))
	for i, m := range messages {
		items[i] = jinja.NewDict()
		items[i].AsDict().Set("role", jinja.NewString(m.Role))
		items[i].AsDict().Set("content", jinja.NewString(m.Content))
	}
	return jinja.NewList(items)
}

// readObject reads a JSON file that is an object; one that does not exist is an empty one.
func readObject(path string) (map[string]json.RawMessage, error) {
	data, err := model.ReadFile(path, fileBytesMax)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// specialNames are the keys of tokenizer_config.json that transformers hands to templates.
var specialNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token",
	"mask_token"}

// specialTokens reads the texts of special tokens: strings, or objects with content.
func specialTokens(file string, values map[string]json.RawMessage) (map[string]string, error) {
	special := map[string]string{}
	for _, name := range specialNames {
		if isAbsent(values[name]) {
			continue
		}
		var text string
		var token struct {
			Content *string `json:"content"`
		}
		if json.Unmarshal(values[name], &text) != nil {
			if err := json.Unmarshal(values[name], &token); err != nil || token.Content == nil {
				return nil, fmt.Errorf("%s: %s, want a string or an object with content", file, name)
			}
			text = *token.Content
		}
		special[name] = text
	}
	return special, nil
}

// defaultTemplate reads a template: a string, or a list of named ones, of which the default counts.
func defaultTemplate(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var named []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		return "", errors.New("want a string or a list of name and template")
	}
	for _, n := range named {
		if n.Name == "default" {
			return n.Template, nil
		}
	}
	return "", fmt.Errorf("no template of %d has the name default", len(named))
}
