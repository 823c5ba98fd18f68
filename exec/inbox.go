package exec

import (
	"sync"

	"tokenrouter/core"
)

// stamped is an event with the time at which it happened.
type stamped struct {
	at      core.Time
	kind    core.EventKind
	model   int
	err     error
	request *Request
	id      uint64
	reason  core.Reason
	message Message
}

// inbox holds events until the loop takes them. It has no bound, so that nobody who puts one in
// ever waits for the loop: a device that would block it, a link that serves two loops, a Sink
// that cancels from the loop's own goroutine. What the loop then makes of them is bounded.
type inbox struct {
	mu     sync.Mutex
	events []stamped
	closed bool
	// ready has a token when events may have come since the last take.
	ready chan struct{}
}

func newInbox() inbox { return inbox{ready: make(chan struct{}, 1)} }

// put adds an event of the world outside. It reports false once the inbox is closed: then
// the event has not been taken, and never will be.
func (b *inbox) put(e stamped) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.add(e)
	return true
}

// complete adds what the loop itself waits for, the completion of a pass or the loss of a
// hand-off, which is welcome until the last.
func (b *inbox) complete(e stamped) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(e)
}

func (b *inbox) add(e stamped) {
	b.events = append(b.events, e)
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take moves all events to the end of to.
func (b *inbox) take(to []stamped) []stamped {
	b.mu.Lock()
	defer b.mu.Unlock()
	to = append(to, b.events...)
	clear(b.events) // what they point to is not kept alive
	b.events = b.events[:0]
	return to
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
