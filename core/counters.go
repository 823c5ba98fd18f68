package core

// Counters add up over the run. Submitted = Finished + Rejected + Cancelled + Failed +
// live + waiting, always (I1). Of a system of several nodes, the front counts requests.
type Counters struct {
	Turns     uint64
	Submitted uint64
	Finished  uint64
	Rejected  uint64
	Cancelled uint64
	Failed    uint64

	Committed uint64 // tokens, by models of this node
	Dropped   uint64 // drafts that a peer made again
	Launches  uint64
	Rows      uint64
	Handoffs  uint64 // moves from a model of this node
	Arrived   uint64 // hand-offs from other nodes

	Fed          uint64 // tokens fed
	Recomputed   uint64 // of those, by passes that rebuild a seat: preempted, or of a model that forgets
	PrefixShared uint64 // tokens not fed because another request's pages hold them
	Preempted    uint64 // seats that lost their pages

	RowsLate    uint64 // results of requests that were gone
	CancelsLate uint64 // cancellations of requests that were gone
	Unstalled   uint64 // launches that no policy wanted, to keep I3
}

func (c *Counters) leave(o Outcome) {
	switch o {
	case Finished:
		c.Finished++
	case Rejected:
		c.Rejected++
	case CancelledOutcome:
		c.Cancelled++
	case Failed:
		c.Failed++
	default:
		panic("core: request left with no outcome")
	}
}

// Counters is a copy of the counts so far.
func (s *Scheduler) Counters() Counters { return s.count }

// Live is N, the number of live requests of the whole system as this node knows it.
func (s *Scheduler) Live() int { return s.live }

// Waiting is the number of requests that wait for admission.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// Queued is the number of requests in the queue of model m.
func (s *Scheduler) Queued(m int) int { return len(s.models[m].queue) }

// PagesHeld is the number of KV pages in use at model m of this node.
func (s *Scheduler) PagesHeld(m int) int { return s.models[m].pages - len(s.models[m].pool.free) }

// Now is the time of the last turn.
func (s *Scheduler) Now() Time { return s.now }
