package core

import "fmt"

// A request is in one place, or on its way to one (I4), and only that place ends it. So an
// Ended is never followed by anything else of that request, whatever the links' delays,
// except that on another link the front's Admitted may come later: a tomb waits for it.

// send hands the request to model next of another node.
func (s *Scheduler) send(slot int32, r *request, m, next int) {
	r.at = nowhere
	s.away++
	anchor := s.seat(slot, next).seen
	h := Handoff{
		ID: r.ID, From: m, To: next, Anchor: anchor, Tokens: r.known - anchor,
		Prompt: r.prompt(), Limit: r.limit, Slot: slot, Age: s.details[slot].age, Models: r.Models,
		Drops: r.drops, State: r.State, Prefix: s.details[slot].prefix,
	}
	for i := range s.models {
		h.Seen[i] = s.seat(slot, i).seen
	}
	s.out.Sends = append(s.out.Sends, h)
}

// arrived takes a request over from another node.
func (s *Scheduler) arrived(h *Handoff) {
	if h.To < 0 || h.To >= len(s.models) || !s.models[h.To].owned {
		panic(fmt.Sprintf("core: node %d got a hand-off to model %d, which it does not own",
			s.c.Node, h.To))
	}
	slot := s.byID.get(h.ID)
	if slot < 0 {
		slot = s.guest(h.ID)
	}
	r := &s.requests[slot]
	d := &s.details[slot]
	r.known, d.age = h.Anchor+h.Tokens, h.Age
	r.Position, d.prompt = r.known-h.Prompt, h.Prompt
	r.Models, r.drops, r.State = h.Models, h.Drops, h.State
	if !r.prefixed {
		d.prefix = h.Prefix
	}
	s.bound(r, h.Limit, len(d.prefix) > 0)
	for m := range s.models {
		s.seat(slot, m).seen = h.Seen[m]
	}
	s.away--
	s.count.Arrived++
	if r.cancel {
		s.end(slot, nowhere, d.outcome, d.reason)
		return
	}
	s.comeTo(slot, r, h.To)
}

// guest makes a slot for a request that another node has admitted.
func (s *Scheduler) guest(id uint64) int32 {
	if len(s.free) == 0 {
		panic(fmt.Sprintf("core: node %d has no slot for request %d: all %d in use, of which"+
			" live %d", s.c.Node, id, s.c.Requests, s.live))
	}
	slot := s.newSlot(id)
	s.requests[slot].phase = live
	s.live++
	s.away++
	s.out.Admits = append(s.out.Admits, Admit{ID: id, Slot: slot, Guest: true})
	return slot
}

func (s *Scheduler) newsCame(n *News) {
	slot := s.byID.get(n.ID)
	switch n.Kind {
	case NewsAdmitted:
		s.newsAdmitted(slot, n)
	case NewsEnded:
		s.newsEnded(slot, n)
	case NewsFreed:
		s.newsFreed(n)
	case NewsCancel:
		if slot < 0 {
			s.count.CancelsLate++
			return
		}
		s.cancel(slot, n.Outcome, n.Reason)
	default:
		panic(fmt.Sprintf("core: news of kind %d", n.Kind))
	}
}

func (s *Scheduler) newsAdmitted(slot int32, n *News) {
	if slot < 0 {
		slot = s.guest(n.ID)
	}
	r := &s.requests[slot]
	r.told = true
	if r.phase == tomb {
		s.byID.remove(n.ID)
		s.freeSlot(slot)
	}
}

func (s *Scheduler) newsEnded(slot int32, n *News) {
	if slot < 0 {
		s.takeTomb(n.ID)
		return
	}
	s.live--
	s.away--
	s.leave(slot, nowhere, n.Outcome, n.Reason, n.Tokens)
}

// newsFreed notes at the front that a node has a slot more.
func (s *Scheduler) newsFreed(n *News) {
	for i := range s.peers {
		if s.c.Node == 0 && s.peers[i].node == int(n.Node) {
			s.peers[i].held--
		}
	}
}

// takeTomb keeps the memory of an ended request until its NewsAdmitted comes, on a slower
// way than the request itself or its end.
func (s *Scheduler) takeTomb(id uint64) {
	slot := s.newSlot(id)
	s.requests[slot].phase = tomb
}

// announce tells every other node that a request is live, so that N is the same everywhere.
func (s *Scheduler) announce(id uint64) {
	if len(s.peers) == 0 {
		return
	}
	s.out.News = append(s.out.News, News{Kind: NewsAdmitted, ID: id})
	for i := range s.peers {
		s.peers[i].held++
	}
}

// peersHaveSlots reports whether every other node has a slot for one more request, however
// late the news of ends may be there.
func (s *Scheduler) peersHaveSlots() bool {
	for i := range s.peers {
		if s.peers[i].held >= s.c.Requests {
			return false
		}
	}
	return true
}

// knownAtFront is the number of tokens that the front is sure to know of a request that ends
// here.
func (s *Scheduler) knownAtFront(slot int32) int32 {
	r := &s.requests[slot]
	if s.c.Node == 0 {
		return r.known
	}
	known := r.prompt()
	for m := range s.models {
		if s.c.Models[m].Node == 0 {
			known = max(known, s.seat(slot, m).seen)
		}
	}
	return known
}

// lost ends a request whose hand-off the driver could not send.
func (s *Scheduler) lost(id uint64) {
	slot := s.byID.get(id)
	if slot < 0 || s.requests[slot].phase != live || s.requests[slot].at != nowhere {
		panic(fmt.Sprintf("core: node %d: request %d is lost, but it is not on its way", s.c.Node, id))
	}
	s.away--
	s.end(slot, nowhere, Failed, LinkFailed)
}
