package exec

import "tokenrouter/core"

// Link carries messages to one other node and keeps their order. Send must not block for
// long: it is called from the loop. An error means that the message is lost for good. The
// request of a lost hand-off fails; lost news leaves the other node with a wrong N, so a link
// that may lose some must send them again itself.
type Link interface {
	Send(m Message) error
}

// Message is a hand-off or a control message together with the token ids that it stands for.
type Message struct {
	At      core.Time     // of the turn that sent it, by the sender's clock
	Handoff *core.Handoff // or nil
	News    core.News
	// Sampling is the request's, with a hand-off.
	Sampling *Sampling
	// Tokens are those of positions [Anchor, Anchor + len) of the request, prompt included.
	Anchor int32
	Tokens []Token
}

// Token is one token of a request, of the prompt (Model -1) or committed.
type Token struct {
	ID      int32
	LogProb float32
	Model   int32
	Detail  *Detail // where the request's Sampling wants one
}
