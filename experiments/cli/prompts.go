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
	"tokenrouter/experiments/system"
)

// prompt is what a user gives: text, or the turns of a conversation.
type prompt struct {
	where    string // for errors: "--prompt", or file and line
	id       string // in a file of JSON lines; may be empty
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
// or messages, and perhaps an id; problems of task make are such lines. Empty lines are passed over.
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
		ID       string         `json:"id"`
		Prompt   *string        `json:"prompt"`
		Messages []chat.Message `json:"messages"`

		Task, Level, Answer, Final json.RawMessage // of a problem
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
	p.messages, p.id = given.Messages, given.ID
	return nil
}

// encoder decides whether the models' chat template is used.
func (f *promptFlags) encoder(p *system.Plan) (*system.Encoder, error) {
	e, err := p.Encoder(!f.noChat)
	if err != nil {
		return nil, badInput(err)
	}
	switch {
	case e.Template == nil && f.chat:
		_, err = p.Chat()
		return nil, badInput(err)
	case e.Template == nil && (f.system != "" || f.arguments.set):
		return nil, misuse("--system and --template-arg: want a chat template for them, and none is used")
	}
	e.System, e.Variables = f.system, f.arguments.of
	return e, nil
}

// encode makes ids of a prompt.
func (p *prompt) encode(e *system.Encoder) (ids []int32, err error) {
	if p.messages != nil {
		ids, err = e.Messages(p.messages)
	} else {
		ids, err = e.Text(p.text)
	}
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
