package system

import (
	"context"
	"fmt"
	"slices"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
	"tokenrouter/exec/answer"
)

// Prompt is one request of a batch.
type Prompt struct {
	IDs       []int32
	TokensMax int
	Sampling  exec.Sampling
	Stop      []string
	Piece     func(answer.Piece) // as answer.Config.Piece
	Ended     func(Answered)     // if not nil, is told of the ended answer, from the loop's goroutine
	// Entry is the model that makes the first token, unless the algorithm draws it; with routing by request
	// (Plan.Entry) it makes them all.
	Entry   int
	Arrival core.Time // as exec.Request.Arrival
}

// Answered is what a Prompt gave. Its zero value stands for one that was never submitted.
type Answered struct {
	*answer.Answer
	ElapsedNs core.Time // from its submission to its end
}

// Seconds is ElapsedNs in seconds.
func (a *Answered) Seconds() float64 { return float64(a.ElapsedNs) / 1e9 }

// batch is the prompts of one call of Answers. All but prompts belongs to the loop's goroutine while the
// loop runs.
type batch struct {
	s       *System
	prompts []Prompt
	answers []Answered
	next    int // to be submitted
	left    int // to end
	done    func(ended int)
	end     context.CancelFunc
}

// Answers runs the loop until all prompts are answered, inFlight of them at a time, in their order. It is
// called once, instead of Loop.Run. done, if not nil, is told how many have ended, from the loop's goroutine.
// If ctx ends first, what has come so far is returned with its error.
func (s *System) Answers(ctx context.Context, prompts []Prompt, inFlight int, done func(ended int),
) ([]Answered, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	b := &batch{
		s: s, prompts: prompts, answers: make([]Answered, len(prompts)), left: len(prompts), done: done, end: end,
	}
	for range min(inFlight, len(prompts)) {
		if err := b.submit(); err != nil {
			return nil, err
		}
	}
	if len(prompts) > 0 {
		_ = s.Loop.Run(running) // its error is that running has ended, as it must
	}
	return b.answers, ctx.Err()
}

// submit hands in the next prompt.
func (b *batch) submit() error {
	i := b.next
	b.next++
	p := &b.prompts[i]
	started := b.s.Loop.Now()
	a, err := answer.New(answer.Config{
		Tokenizer: b.s.Tokenizer, Stop: p.Stop, Piece: p.Piece,
		EOS:     func(id int32) bool { return !p.Sampling.IgnoreEOS && slices.Contains(b.s.EOS, int(id)) },
		Stopped: func() { _ = b.s.Loop.Cancel(uint64(i), core.StopString) },
		Left: func() {
			b.answers[i].ElapsedNs = b.s.Loop.Now() - started
			if p.Ended != nil {
				p.Ended(b.answers[i])
			}
			b.ended()
		},
	})
	if err != nil {
		return fmt.Errorf("prompt %d: %w", i+1, err)
	}
	r := &exec.Request{
		ID: uint64(i), Prompt: p.IDs, TokensMax: int32(p.TokensMax), Sampling: &p.Sampling, Sink: a,
		Draw: b.entryDraw(i), Entry: p.Entry, Arrival: p.Arrival,
	}
	if b.s.scorer != nil {
		r.Models = 1 << p.Entry
	}
	err = b.s.Loop.Submit(r)
	if err == nil {
		b.answers[i].Answer = a
	}
	return err
}

// entryDraw is the draw of the model that makes the first token, keyed as those of all others are.
func (b *batch) entryDraw(i int) float64 {
	seed, id := b.s.seed, uint64(i)
	if own := b.prompts[i].Sampling.Seed; own != nil {
		seed, id = *own, 0
	}
	return keyed.Float(keyed.Hash(seed, id, 0, 0, keyed.Entry))
}

// ended goes on with the next prompt, or ends the loop after the last.
func (b *batch) ended() {
	b.left--
	if b.done != nil {
		b.done(len(b.prompts) - b.left)
	}
	switch {
	case b.left == 0:
		b.end()
	case b.next < len(b.prompts):
		_ = b.submit() // refused only when the loop is ending: the prompt stays without an answer
	}
}

// Origin is the index among all models of the description of a model of the scheduler, which has only those
// that make tokens.
func (p *Plan) Origin(m int32) int {
	if p.Spec.Router.Algorithm == "large" {
		return len(p.Spec.Models) - 1
	}
	return int(m)
}
