package serve

import (
	"strings"
	"sync"
	"unicode/utf8"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/answer"
)

// token is a token of an answer as it is told to a client.
type token struct {
	core.Token
	offset int // characters of text before it
	detail exec.Detail
}

// news is what has come of a choice: text that is final, the tokens that came with it, and perhaps the end.
type news struct {
	choice int
	text   string
	tokens []token
	finish string // "" while the choice goes on
}

// box holds news of all choices of a call until its handler takes them. The loop never waits for it; what it
// can hold is bounded by the tokens of the answers.
type box struct {
	mu    sync.Mutex
	held  []news
	ready chan struct{} // has a token when news may have come since the last take
}

func (b *box) put(n news) {
	b.mu.Lock()
	b.held = append(b.held, n)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *box) take() []news {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := b.held
	b.held = nil
	return held
}

// choice is one answer of a call: the sink of a request of the loop, in whose goroutine its methods run.
// After the news of its end it is the handler's to read.
type choice struct {
	index  int
	answer *answer.Answer
	box    *box
	left   func() // its place is free

	kept    []token // all of them, where the call wants them at the end
	keep    bool
	pending []token // not told yet
	text    strings.Builder
	runes   int // of text that is final
	detail  exec.Detail
}

// Detail implements exec.Detailer.
func (c *choice) Detail(d *exec.Detail) { c.detail = *d }

// Token implements exec.Sink.
func (c *choice) Token(t core.Token) {
	before := len(c.answer.Tokens)
	offset := c.runes
	c.answer.Token(t)
	if len(c.answer.Tokens) > before {
		c.pending = append(c.pending, token{Token: t, offset: offset, detail: c.detail})
	}
	c.detail = exec.Detail{}
	if c.text.Len() > 0 {
		c.tell("")
	}
}

// piece takes text that is final.
func (c *choice) piece(p answer.Piece) {
	c.text.WriteString(p.Text)
	c.runes += utf8.RuneCountInString(p.Text)
}

// Left implements exec.Sink.
func (c *choice) Left(l core.Leave) {
	c.answer.Left(l)
	c.left()
	c.tell(c.answer.Finish())
}

// tell puts what is pending into the box.
func (c *choice) tell(finish string) {
	if c.keep {
		c.kept = append(c.kept, c.pending...)
	}
	c.box.put(news{choice: c.index, text: c.text.String(), tokens: c.pending, finish: finish})
	c.text.Reset()
	c.pending = nil
}
