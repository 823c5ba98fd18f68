package exec

import (
	"fmt"

	"tokenrouter/core"
)

// sequence is what this node knows of a request's tokens.
type sequence struct {
	request   *Request // nil for a guest
	sampling  *Sampling
	prompt    int
	ids       []int32  // prompt and answer
	tokens    []Token  // the same, with who made them
	told      int      // tokens of the answer that the sink has
	draft     *float64 // Detail.Draft of the next token
	cancelled bool     // by stop
}

func newSequence(r *Request) *sequence {
	q := &sequence{request: r, sampling: r.Sampling, prompt: len(r.Prompt)}
	for _, id := range r.Prompt {
		q.append(Token{ID: id, Model: -1})
	}
	return q
}

// detailed says whether the sink is told details.
func (q *sequence) detailed() bool { return q.sampling != nil && q.sampling.Top > 0 }

func (q *sequence) append(t Token) {
	if q.draft != nil && t.Detail != nil && t.Detail.Draft == nil {
		d := *t.Detail // that of another node is not this one's to change
		d.Draft = q.draft
		t.Detail = &d
	}
	q.draft = nil
	q.ids = append(q.ids, t.ID)
	q.tokens = append(q.tokens, t)
}

// suffix is the tokens from position anchor on; nobody can append to it.
func (q *sequence) suffix(anchor, end int) []Token { return q.tokens[anchor:end:end] }

// accept takes what another node knows and this one does not.
func (q *sequence) accept(m *Message) {
	known := len(q.ids) - int(m.Anchor)
	if known < 0 {
		panic(fmt.Sprintf("exec: tokens from position %d on, and %d are known: a message was lost",
			m.Anchor, len(q.ids)))
	}
	for _, t := range m.Tokens[min(known, len(m.Tokens)):] {
		q.append(t)
	}
}

// tell hands the sink what it does not have yet.
func (q *sequence) tell() {
	if q.request == nil || q.request.Sink == nil {
		return
	}
	for ; q.prompt+q.told < len(q.tokens); q.told++ {
		t := q.tokens[q.prompt+q.told]
		if to, ok := q.request.Sink.(Detailer); ok && t.Detail != nil {
			to.Detail(t.Detail)
		}
		q.request.Sink.Token(core.Token{
			ID: q.request.ID, Slot: -1, Position: int32(q.told),
			Token: t.ID, LogProb: t.LogProb, Model: t.Model,
		})
	}
}
