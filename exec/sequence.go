package exec

import "tokenrouter/core"

// sequence is what this node knows of a request's tokens.
type sequence struct {
	request *Request // nil for a guest
	prompt  int
	ids     []int32 // prompt and answer
	tokens  []Token // the same, with who made them
	told    int     // tokens of the answer that the sink has
}

func newSequence(r *Request) *sequence {
	q := &sequence{request: r, prompt: len(r.Prompt)}
	for _, id := range r.Prompt {
		q.append(Token{ID: id, Model: -1})
	}
	return q
}

func (q *sequence) append(t Token) {
	q.ids = append(q.ids, t.ID)
	q.tokens = append(q.tokens, t)
}

// accept takes tokens that another node knows from position anchor on.
func (q *sequence) accept(anchor int, tokens []Token) {
	for i, t := range tokens {
		if anchor+i >= len(q.ids) {
			q.append(t)
		}
	}
}

// tell hands the sink what it does not have yet.
func (q *sequence) tell() {
	if q.request == nil || q.request.Sink == nil {
		return
	}
	for ; q.prompt+q.told < len(q.tokens); q.told++ {
		t := q.tokens[q.prompt+q.told]
		q.request.Sink.Token(core.Token{
			ID: q.request.ID, Slot: -1, Position: int32(q.told),
			Token: t.ID, LogProb: t.LogProb, Model: t.Model,
		})
	}
}
