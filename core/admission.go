package core

import "slices"

// submitted gives the request a slot in the waiting line, or rejects it at once with the
// reason, so that nothing waits for what can never be.
func (s *Scheduler) submitted(sub *Submission) {
	s.count.Submitted++
	reason, m := s.refusal(sub)
	if reason != 0 {
		s.count.Rejected++
		s.out.Leaves = append(s.out.Leaves, Leave{
			ID: sub.ID, Slot: -1, Model: m, Outcome: Rejected, Reason: reason,
		})
		return
	}
	slot := s.newSlot(sub.ID)
	r := &s.requests[slot]
	r.known = sub.PromptTokens
	r.Models = s.mask(sub)
	s.bound(r, sub.PromptTokens+sub.TokensMax, len(sub.Prefix) > 0)
	r.entry = int8(s.entry(sub, r.Models))
	d := &s.details[slot]
	d.prefix = sub.Prefix
	r.phase = waiting
	d.arrival, d.prompt = sub.Arrival, sub.PromptTokens
	r.told = true
	s.waiting = append(s.waiting, slot)
}

func (s *Scheduler) newSlot(id uint64) int32 {
	last := len(s.free) - 1
	slot := s.free[last]
	s.free = s.free[:last]
	s.byID.put(id, slot)
	gen := s.requests[slot].gen
	s.requests[slot] = request{Visit: Visit{ID: id}, slot: slot, gen: gen, at: nowhere}
	s.details[slot] = details{}
	for m := range s.models {
		*s.seat(slot, m) = seat{of: &s.requests[slot], tail: noPage}
	}
	return slot
}

func (s *Scheduler) mask(sub *Submission) uint32 {
	all := uint32(1)<<len(s.models) - 1
	if sub.Models == 0 {
		return all
	}
	return sub.Models
}

func (s *Scheduler) entry(sub *Submission, models uint32) int {
	if s.enter != nil && models&(models-1) != 0 {
		return s.enter.Enter(sub.Draw, models)
	}
	return sub.Entry
}

// refusal says why sub can not be taken, and whose pool is too small; 0 if it can.
func (s *Scheduler) refusal(sub *Submission) (Reason, int) {
	all := uint32(1)<<len(s.models) - 1
	models := s.mask(sub)
	if sub.PromptTokens < 1 || sub.TokensMax < 1 || models&^all != 0 ||
		len(sub.Prefix) > int(sub.PromptTokens)/s.c.PageTokens ||
		sub.Entry < 0 || sub.Entry >= len(s.models) || s.c.Node != 0 {
		return Malformed, nowhere
	}
	if e := s.entry(sub, models); e < 0 || e >= len(s.models) || models>>e&1 == 0 {
		return Malformed, nowhere
	}
	if int64(sub.PromptTokens)+int64(sub.TokensMax) > int64(s.c.ContextMax) {
		return TooLong, nowhere
	}
	if s.byID.get(sub.ID) >= 0 {
		return Duplicate, nowhere
	}
	pages := s.pagesFor(sub.PromptTokens + sub.TokensMax - 1)
	for m := range s.models {
		if models>>m&1 != 0 && pages > s.models[m].pages {
			return PoolTooSmall, m
		}
	}
	if len(s.free) == 0 {
		return Full, nowhere
	}
	return 0, nowhere
}

func (s *Scheduler) pagesFor(tokens int32) int {
	return (int(tokens) + s.c.PageTokens - 1) / s.c.PageTokens
}

// admit makes waiting requests live, oldest first, while N and the pools allow. The first
// that does not fit holds up the rest, so that nobody is overtaken for ever.
func (s *Scheduler) admit() {
	if s.c.Static && s.live > 0 {
		return
	}
	taken := 0
	for taken < len(s.waiting) && s.live < s.c.LiveMax && s.peersHaveSlots() {
		slot := s.waiting[taken]
		r := &s.requests[slot]
		if !s.promise(r) {
			break
		}
		taken++
		s.live++
		s.started++
		s.details[slot].age = s.started
		r.phase = live
		s.out.Admits = append(s.out.Admits, Admit{ID: r.ID, Arrival: s.details[slot].arrival, Slot: slot})
		s.announce(r.ID)
		if entry := int(r.entry); s.c.FrontNs > 0 {
			s.await(entry, r, s.seat(slot, entry), s.c.FrontNs)
		} else {
			s.begin(slot, r)
		}
	}
	if taken > 0 {
		s.waiting = append(s.waiting[:0], s.waiting[taken:]...)
	}
}

// promise checks every pool that r may need, then takes from all or from none.
func (s *Scheduler) promise(r *request) bool {
	pages := s.promised(r)
	if s.c.Admission == Optimistic && !s.areFree(r, pages) {
		return false
	}
	for m := range s.models {
		if r.Models>>m&1 != 0 && s.models[m].reserved+pages > s.models[m].pages {
			return false
		}
	}
	for m := range s.models {
		if r.Models>>m&1 != 0 {
			s.models[m].reserved += pages
		}
	}
	return true
}

// promised is the number of pages that r is promised in each pool: those of its longest
// answer, or (Optimistic) those of its prompt and one more. The last token is never fed.
func (s *Scheduler) promised(r *request) int {
	pages := s.pagesFor(r.limit - 1)
	if s.c.Admission == Optimistic {
		return min(pages, s.pagesFor(r.prompt())+1)
	}
	return pages
}

// areFree asks for free pages in each pool of this node, so that a newcomer does not at once
// wait for pages that older requests have grown into.
func (s *Scheduler) areFree(r *request, pages int) bool {
	if s.live == 0 {
		return true // alone it fits: refusal has seen to that
	}
	for m := range s.models {
		if s.models[m].owned && r.Models>>m&1 != 0 && len(s.models[m].pool.free) < pages {
			return false
		}
	}
	return true
}

func (s *Scheduler) unpromise(r *request) {
	if r.phase != live || s.c.Node != 0 {
		return
	}
	pages := s.promised(r)
	for m := range s.models {
		if r.Models>>m&1 != 0 {
			s.models[m].reserved -= pages
		}
	}
}

// cancelled ends a request wherever it is. If another node has it, or it is on its way
// there, that node is told and ends it.
func (s *Scheduler) cancelled(e *Event) {
	slot := s.byID.get(e.ID)
	if slot < 0 {
		s.count.CancelsLate++
		return
	}
	reason := e.Reason
	if reason == 0 {
		reason = ClientLeft
	}
	s.cancel(slot, cancelOutcome(reason), reason)
}

func cancelOutcome(reason Reason) Outcome {
	if reason == StopString {
		return Finished
	}
	return CancelledOutcome
}

func (s *Scheduler) cancel(slot int32, outcome Outcome, reason Reason) {
	r := &s.requests[slot]
	switch {
	case r.phase == waiting:
		s.waiting = slices.DeleteFunc(s.waiting, func(w int32) bool { return w == slot })
		s.leave(slot, nowhere, outcome, reason, 0)
	case r.at != nowhere:
		m := int(r.at)
		is := func(q *seat) bool { return q == s.seat(slot, m) }
		switch s.seat(slot, m).state {
		case seatQueued:
			s.models[m].queue = slices.DeleteFunc(s.models[m].queue, is)
		case seatComing:
			s.models[m].coming = slices.DeleteFunc(s.models[m].coming, is)
			s.coming--
		}
		s.end(slot, m, outcome, reason)
	case !r.cancel:
		r.cancel = true
		s.details[slot].outcome, s.details[slot].reason = outcome, reason
		if s.c.Node == 0 {
			s.out.News = append(s.out.News, News{
				Kind: NewsCancel, ID: r.ID, Outcome: outcome, Reason: reason,
			})
		}
	}
}
