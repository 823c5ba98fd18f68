package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"tokenrouter/exec/answer"
	"tokenrouter/experiments/system"
)

// colours are the escape sequences of models (ECMA-48, SGR): cyan, yellow, magenta, green, blue, red, and two
// bright ones. Letters are legible on black and on white.
var colours = []string{"\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m", "\x1b[31m", "\x1b[95m",
	"\x1b[92m"}

const noColour = "\x1b[0m"

// painter writes text to a terminal, each piece in the colour of its model. On anything else, for one model,
// or where the variable NO_COLOR is set (no-color.org), it writes plain text.
type painter struct {
	w       io.Writer
	plan    *system.Plan
	colours bool
	screen  bool // control characters would not be text
	last    int  // model whose colour is on; -1: none
	newline bool // nothing stands on the line yet
	err     error
}

func newPainter(w io.Writer, plan *system.Plan) *painter {
	screen := isTerminal(w)
	return &painter{
		w: w, plan: plan, screen: screen, last: -1, newline: true,
		colours: screen && os.Getenv("NO_COLOR") == "" && len(plan.Core.Models) > 1,
	}
}

// legend says which colour is whose.
func (p *painter) legend(w io.Writer) {
	if !p.colours {
		return
	}
	var names []string
	for m, model := range p.plan.Core.Models {
		name := model.Name
		if isTerminal(w) {
			name = colours[m] + name + noColour
		}
		names = append(names, name)
	}
	fmt.Fprintln(w, strings.Join(names, "  "))
}

// piece writes text of a model.
func (p *painter) piece(piece answer.Piece) {
	text := piece.Text
	if text == "" {
		return
	}
	if p.screen {
		text = strings.Map(visible, text)
	}
	p.newline = strings.HasSuffix(text, "\n")
	if m := int(piece.Model); p.colours && m != p.last {
		text = colours[m] + text
		p.last = m
	}
	p.write(text)
}

// visible replaces what would steer a terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return unicode.ReplacementChar
	}
	return r
}

// plain writes text of nobody.
func (p *painter) plain(text string) {
	p.write(text)
	p.newline = strings.HasSuffix(text, "\n")
}

// end ends the text of an answer, and its line.
func (p *painter) end() {
	if p.last >= 0 {
		p.write(noColour)
		p.last = -1
	}
	if !p.newline {
		p.plain("\n")
	}
}

func (p *painter) write(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// pieces hands text from the loop, which must not wait, to a goroutine that writes it.
type pieces struct {
	mu     sync.Mutex
	came   *sync.Cond
	queue  []answer.Piece
	closed bool
	done   chan struct{}
}

func newPieces(write func(answer.Piece)) *pieces {
	q := &pieces{done: make(chan struct{})}
	q.came = sync.NewCond(&q.mu)
	go q.run(write)
	return q
}

func (q *pieces) put(p answer.Piece) {
	q.mu.Lock()
	q.queue = append(q.queue, p)
	q.mu.Unlock()
	q.came.Signal()
}

func (q *pieces) run(write func(answer.Piece)) {
	defer close(q.done)
	for {
		q.mu.Lock()
		for len(q.queue) == 0 && !q.closed {
			q.came.Wait()
		}
		batch := q.queue
		q.queue = nil
		q.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, p := range batch {
			write(p)
		}
	}
}

// close waits until all that was put is written.
func (q *pieces) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.came.Signal()
	<-q.done
}
