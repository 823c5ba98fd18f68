package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

//go:embed peer.py
var script string

// theirs is llama.cpp: a process that runs peer.py.
type theirs struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// start runs peer.py with the interpreter python.
func start(python string, threads int) (*theirs, error) {
	t := &theirs{process: exec.Command(python, "-c", script, strconv.Itoa(threads))}
	t.process.Stderr = os.Stderr
	in, err := t.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.in, t.out = in, bufio.NewReader(out)
	return t, t.process.Start()
}

// stop ends the process.
func (t *theirs) stop() error { return errors.Join(t.in.Close(), t.process.Wait()) }

// request is a line to peer.py, which says what each has.
type request struct {
	Do   string `json:"do"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	File string `json:"file,omitempty"`
	Name string `json:"name,omitempty"`
	*work
	*variant
	ForNs time.Duration `json:"for_ns,omitempty"`
}

// answer is the line back.
type answer struct {
	Error   string `json:"error"`
	Version string `json:"version"`
	System  string `json:"system"`
	Ns      times  `json:"ns"`
	Logits  []byte `json:"logits"`
}

// variant is a way in which llama.cpp can attend. Which is faster depends on the work. That each request has
// its KV apart, the default, was never slower than one buffer for all.
type variant struct {
	Flash int `json:"flash"` // 1: flash attention
}

var variants = []variant{{0}, {1}}

func (v variant) String() string { return [2]string{"plain attention", "flash attention"}[v.Flash] }

func (t *theirs) ask(r request) (answer, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	if _, err := t.in.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("llama.cpp: %s: %w", line, err)
	}
	back, err := t.out.ReadBytes('\n')
	if err != nil {
		return answer{}, fmt.Errorf("llama.cpp: %s: %w", line, err)
	}
	var a answer
	if err := json.Unmarshal(back, &a); err != nil {
		return answer{}, fmt.Errorf("llama.cpp: %s: %w", line, err)
	}
	if a.Error != "" {
		return answer{}, fmt.Errorf("llama.cpp: %s: %s", line, a.Error)
	}
	return a, nil
}
