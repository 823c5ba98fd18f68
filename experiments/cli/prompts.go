package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/experiments/system"
)

// prompt is what a user gives: text, or the turns of a conversation.
type prompt struct {
	where    string // for errors: "--prompt", or file and line
	text     string
	messages []chat.Message // nil: text
}

// promptFlags say what is asked.
type promptFlags struct {
	prompt, file string
	chat, noChat bool
	system       string
	arguments    value[map[string]any]
}

// read returns all prompts.
func (f *promptFlags) read(stdin io.Reader) ([]prompt, error) {
	if f.file == "" {
		text := f.prompt
		if text == "-" {
			all, err := io.ReadAll(stdin)
			if err != nil {
				return nil, err
			}
			text = strings.TrimSuffix(string(all), "\n")
		}
		return []prompt{{where: "--prompt", text: text}}, nil
	}
	in := stdin
	if f.file != "-" {
		if err := regularFile("--prompts", f.file); err != nil {
			return nil, err
		}
		file, err := os.Open(f.file)
		if err != nil {
			return nil, badInput(err)
		}
		defer file.Close()
		in = file
	}
	prompts, err := readPrompts(f.file, in)
	return prompts, badInput(err)
}

// promptBytesMax is the longest line of a file of prompts.
const promptBytesMax = 1 << 24

// readPrompts reads a prompt a line. Lines of a file whose name ends in .jsonl are JSON objects with prompt
// or messages. Empty lines are passed over.
func readPrompts(name string, in io.Reader) ([]prompt, error) {
	var prompts []prompt
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, promptBytesMax)
	for number := 1; lines.Scan(); number++ {
		p := prompt{where: fmt.Sprintf("%s:%d", name, number), text: strings.TrimSuffix(lines.Text(), "\r")}
		if p.text == "" {
			continue
		}
		if strings.HasSuffix(name, ".jsonl") {
			if err := p.parse(lines.Bytes()); err != nil {
				return nil, fmt.Errorf("%s: %w", p.where, err)
			}
		}
		prompts = append(prompts, p)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: after %d prompts: %w", name, len(prompts), err)
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("%s has no prompt, want one a line", name)
	}
	return prompts, nil
}

// parse reads a line of JSON.
func (p *prompt) parse(line []byte) error {
	var given struct {
		Prompt   *string        `json:"prompt"`
		Messages []chat.Message `json:"messages"`
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return err
	}
	switch {
	case (given.Prompt == nil) == (given.Messages == nil):
		return errors.New(`want an object with "prompt" or "messages"`)
	case given.Prompt != nil:
		p.text = *given.Prompt
	case len(given.Messages) == 0:
		return errors.New("messages is empty")
	}
	p.messages = given.Messages
	return nil
}

// encoder makes ids of prompts.
type encoder struct {
	tokens   *tokenizer.Tokenizer
	template *chat.Template // nil: prompts are taken as they are
	system   string
	options  chat.Options
}

// encoder decides whether the models' chat template is used.
func (f *promptFlags) encoder(p *system.Plan) (*encoder, error) {
	e := &encoder{
		tokens: p.Tokenizer, system: f.system, options: chat.Options{Reply: true, Variables: f.arguments.of},
	}
	if p.Tokenizer == nil {
		return nil, badInput(errors.New("no model has a tokenizer.json: there is nothing to turn text into ids"))
	}
	var err error
	if !f.noChat {
		e.template, err = p.Chat()
	}
	if errors.Is(err, chat.ErrNone) && !f.chat {
		err = nil
	}
	if err == nil && e.template == nil && (f.system != "" || f.arguments.set) {
		return nil, misuse("--system and --template-arg: want a chat template for them, and none is used")
	}
	return e, badInput(err)
}

func (e *encoder) encode(p prompt) ([]int32, error) {
	if e.template == nil {
		if p.messages != nil {
			return nil, fmt.Errorf("%s: messages want a chat template, and none is used", p.where)
		}
		return e.tokens.Encode(p.text, tokenizer.Options{AddSpecial: true}), nil
	}
	messages := p.messages
	if messages == nil {
		messages = []chat.Message{{Role: "user", Content: p.text}}
	}
	if e.system != "" && messages[0].Role != "system" {
		messages = append([]chat.Message{{Role: "system", Content: e.system}}, messages...)
	}
	ids, err := e.template.Encode(e.tokens, messages, e.options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.where, err)
	}
	return ids, nil
}

// templateArguments collects NAME=VALUE, with values that are JSON, or else text. Given again, the flag adds.
func templateArguments() func(string) (map[string]any, error) {
	all := map[string]any{}
	return func(s string) (map[string]any, error) {
		name, text, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, errors.New("want NAME=VALUE, such as enable_thinking=false")
		}
		var of any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&of); err != nil || decoder.More() {
			of = text
		}
		all[name] = of
		return all, nil
	}
}
