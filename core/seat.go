package core

// grow gives the seat pages for tokens in all. In a pool that is too full it first takes
// pages from younger requests (Optimistic). It takes all it needs, or nothing.
func (s *Scheduler) grow(slot int32, seat *seat, m int, tokens int32) bool {
	p := &s.models[m].pool
	need := s.pagesFor(tokens) - int(seat.pages)
	for len(p.free) < need {
		if s.c.Admission != Optimistic || !s.canPreempt(slot, m, need) {
			return false
		}
		s.preempt(slot, m)
	}
	s.forcing = false
	for range need {
		page := p.alloc(seat.tail)
		s.out.Grants = append(s.out.Grants, Grant{Model: m, Slot: slot, Index: seat.pages, Page: page})
		seat.tail = page
		seat.pages++
	}
	seat.room = seat.pages * int32(s.c.PageTokens)
	return true
}

// canPreempt reports whether taking from all preemptible requests would make room for need
// pages, so that nobody loses pages in vain. A shared page counts once all its holders would
// lose it.
func (s *Scheduler) canPreempt(slot int32, m int, need int) bool {
	p := &s.models[m].pool
	room := len(p.free)
	for i := range s.requests {
		if !s.preemptible(int32(i), slot, m) {
			continue
		}
		seat := s.seat(int32(i), m)
		for page, left := seat.tail, seat.pages; left > 0; page, left = p.prev[page], left-1 {
			p.losers[page]++
			if p.losers[page] == p.refs[page] {
				room++
			}
		}
	}
	clear(p.losers)
	return room >= need
}

// preemptible reports whether victim may lose its pages at m to slot: it holds pages, does
// not run there, and is younger, or (forcing) away.
func (s *Scheduler) preemptible(victim, slot int32, m int) bool {
	r := &s.requests[victim]
	seat := s.seat(victim, m)
	return r.phase == live && seat.pages > 0 && seat.state != seatRunning &&
		(s.details[victim].age > s.details[slot].age || s.forcing && r.at == nowhere)
}

// preempt takes the pages of the youngest preemptible request at m. What it had in KV there
// is computed again when it is next fed.
func (s *Scheduler) preempt(slot int32, m int) {
	youngest := int32(-1)
	for i := range s.requests {
		if !s.preemptible(int32(i), slot, m) {
			continue
		}
		if youngest < 0 || s.details[i].age > s.details[youngest].age {
			youngest = int32(i)
		}
	}
	s.forget(s.seat(youngest, m), m)
	s.count.Preempted++
}

// adoptPrefix lets a new seat begin with pages that another request has filled. At least
// one token is left to feed: the next one is sampled from it.
func (s *Scheduler) adoptPrefix(slot int32, r *request, seat *seat, m int) {
	p := &s.models[m].pool
	count, tail := p.adopt(s.details[slot].prefix, int(r.known-1)/s.c.PageTokens)
	if count == 0 {
		return
	}
	seat.pages, seat.tail = count, tail
	seat.kv = count * int32(s.c.PageTokens)
	seat.room = seat.kv
	s.count.PrefixShared += uint64(seat.kv)
	page := tail
	for i := count - 1; i >= 0; i-- {
		s.out.Grants = append(s.out.Grants, Grant{Model: m, Slot: slot, Index: i, Page: page})
		page = p.prev[page]
	}
}

// sharePrefix offers the prompt pages that this pass has filled. A page is shared only if
// the one before it is, so that chains agree.
func (s *Scheduler) sharePrefix(slot int32, seat *seat, m *model, start int32) {
	prefix := s.details[slot].prefix
	page := int32(s.c.PageTokens)
	full := min(seat.kv/page, int32(len(prefix)))
	first := start / page
	if full <= first {
		return
	}
	chain := seat.tail
	for i := seat.pages; i > full; i-- {
		chain = m.pool.prev[chain]
	}
	m.pool.shareChain(chain, prefix[first:full])
}
