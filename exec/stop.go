package exec

import (
	"maps"
	"slices"

	"tokenrouter/core"
)

// stop takes no more events of the world outside, cancels all that is here, and waits for the
// passes in flight, so that every request leaves and no goroutine stays.
func (l *Loop) stop() {
	l.inbox.close()
	for {
		l.held = l.inbox.take(l.held)
		l.now = max(l.now, l.Now())
		l.handIn(len(l.held))
		l.cancelAll(l.sequences)
		l.cancelAll(l.submitted) // with their submission in the same turn: never admitted
		if len(l.in) > 0 {
			l.fold()
			continue
		}
		if !l.anyBusy() {
			break
		}
		<-l.inbox.ready
	}
	for m := range l.runners {
		if l.runners[m].device != nil {
			close(l.runners[m].passes)
		}
	}
	l.running.Wait()
	for _, id := range slices.Sorted(maps.Keys(l.sequences)) { // these are at other nodes
		l.leave(&core.Leave{
			ID: id, Slot: -1, Model: -1, Tokens: int32(l.sequences[id].told),
			Outcome: core.CancelledOutcome, Reason: core.Stopped,
		})
	}
}

// cancelAll hands in a cancellation, once, of each of the requests.
func (l *Loop) cancelAll(requests map[uint64]*sequence) {
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		if q := requests[id]; !q.cancelled {
			q.cancelled = true
			l.in = append(l.in, core.Event{Kind: core.Cancelled, ID: id, Reason: core.Stopped})
		}
	}
}

func (l *Loop) anyBusy() bool {
	for m := range l.runners {
		if l.runners[m].busy {
			return true
		}
	}
	return false
}
