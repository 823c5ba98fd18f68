package answer

import (
	"errors"
	"strings"

	"tokenrouter/core"
	"tokenrouter/exec/model/tokenizer"
)

// Config says what an Answer does with its tokens. Its functions are called from the goroutine that calls
// Token and Left, and must not block.
type Config struct {
	Tokenizer *tokenizer.Tokenizer
	// EOS tells of tokens that end an answer: they are no part of it, and give no text.
	EOS  func(token int32) bool
	Stop []string // the answer ends before the first of them
	// Special puts special tokens into the text.
	Special bool
	// Piece, if set, is given text as soon as it is final. All pieces together are the answer's text.
	Piece func(Piece)
	// Stopped is called when a stop string has come: to cancel the request with core.StopString.
	Stopped func()
	// Left, if set, is called at the end.
	Left func()
}

// ErrEmptyStop is the error of New for a stop string without text.
var ErrEmptyStop = errors.New("a stop string is empty")

// Answer is what one request gives. It is an exec.Sink, for one request.
type Answer struct {
	// Tokens are those of the answer in order, without the one that ended it. After a stop string the last is
	// the one that completed it.
	Tokens []core.Token
	// Leave says how it ended, and how many drafts were dropped; zero while it goes on.
	Leave core.Leave

	c       Config
	decoder *tokenizer.Decoder
	stops   stops
	text    strings.Builder
	model   int32 // of the last token
	stopped bool
}

// New makes the Answer of a request that is about to be submitted.
func New(c Config) (*Answer, error) {
	for _, stop := range c.Stop {
		if stop == "" {
			return nil, ErrEmptyStop
		}
	}
	return &Answer{c: c, decoder: c.Tokenizer.NewDecoder(!c.Special), stops: stops{stop: c.Stop}}, nil
}

// Token takes the next token.
func (a *Answer) Token(t core.Token) {
	if a.stopped || a.c.EOS != nil && a.c.EOS(t.Token) {
		return
	}
	a.Tokens = append(a.Tokens, t)
	a.model = t.Model
	a.take(a.decoder.Next(t.Token))
}

// take passes text on to the stop strings.
func (a *Answer) take(text string) {
	if !a.stops.next(Piece{text, a.model}, a.out) {
		return
	}
	a.stopped = true
	if a.c.Stopped != nil {
		a.c.Stopped()
	}
}

func (a *Answer) out(p Piece) {
	a.text.WriteString(p.Text)
	if a.c.Piece != nil {
		a.c.Piece(p)
	}
}

// Left takes the end. Text that was held is given out then, half a character as U+FFFD.
func (a *Answer) Left(l core.Leave) {
	a.Leave = l
	if !a.stopped {
		a.take(a.decoder.Flush())
	}
	if !a.stopped {
		a.stops.flush(a.out)
	}
	if a.c.Left != nil {
		a.c.Left()
	}
}

// Text is the text that is final so far.
func (a *Answer) Text() string { return a.text.String() }

// Finish says how the answer ended: "stop" at an end token or a stop string, "length" at the most tokens,
// "cancelled", "error" where a device failed or the request was refused; "" while it goes on.
func (a *Answer) Finish() string {
	switch {
	case a.Leave.Outcome == 0:
		return ""
	case a.stopped || a.Leave.Reason == core.EndOfSequence:
		return "stop"
	case a.Leave.Outcome == core.Finished:
		return "length"
	case a.Leave.Outcome == core.CancelledOutcome:
		return "cancelled"
	default:
		return "error"
	}
}
