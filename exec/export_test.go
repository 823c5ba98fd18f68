package exec

import "tokenrouter/core"

// SubmitAt is Submit at a time that may be that of the last turn, as of a client who is told
// of that turn and answers in no time.
func (l *Loop) SubmitAt(at core.Time, r *Request) error {
	return l.put(stamped{at: at, kind: core.Submitted, request: r})
}

// Sync orders what the caller has read of the loop before what the loop does next: all that a
// resting loop does begins with a look into its inbox.
func (l *Loop) Sync() {
	l.inbox.mu.Lock()
	defer l.inbox.mu.Unlock()
}
