package core

import (
	"cmp"
	"math"
)

const tokensMax = math.MaxInt32

// plan starts what the policy lets start. Models are asked in order; all see the world as it
// was before the first launch of this turn.
func (s *Scheduler) plan() {
	v := &s.view
	v.now, v.busy, v.queues, v.launched = s.now, 0, 0, 0
	for m := range s.models {
		if s.models[m].busy {
			v.busy |= 1 << m
		}
		if len(s.models[m].queue) > 0 {
			v.queues |= 1 << m
		}
	}
	started, blocked := v.busy != 0, false
	for m, idle := 0, v.queues&^v.busy; idle != 0; m, idle = m+1, idle>>1 {
		if idle&1 != 0 && s.policy.Start(m, v) {
			if s.launch(m) {
				started = true
			} else {
				blocked = true
			}
		}
	}
	if !started && s.live > 0 {
		s.unstall(blocked)
	}
}

// unstall keeps I3 whatever the policy says: if requests are live, nothing runs, nothing is
// on its way and no wake-up is set, the model of the oldest request here starts.
//
// blocked says that a batch was due, but pages that older requests hold kept it from
// starting. No wake-up helps then; and if those requests are away, what they wait for may be
// what is blocked here, so their pages are taken.
func (s *Scheduler) unstall(blocked bool) {
	if blocked && s.c.Admission == Optimistic {
		s.forcing = s.away > 0
	} else if s.away > 0 || s.out.Wake != 0 {
		return
	}
	oldest, at := uint64(0), nowhere
	for m := range s.models {
		for _, slot := range s.models[m].queue {
			if age := s.requests[slot].age; at == nowhere || age < oldest {
				oldest, at = age, m
			}
		}
	}
	if at != nowhere {
		s.count.Unstalled++
		s.launch(at)
	}
	s.forcing = false
}

// launch takes the queue of model mi, oldest first, into a forward pass: all of it, or what
// rows, pages and the token budget allow. It reports whether anything was taken.
//
// Under a token budget, rows that need at most a page of tokens go first, and long prompts
// share what is left, at least a page and a row: neither can starve the other.
func (s *Scheduler) launch(mi int) bool {
	m := &s.models[mi]
	m.rows = m.rows[:0]
	page := int32(s.c.PageTokens)
	if s.c.TokenBudget != 0 && m.rowsMax > 1 && s.anyLong(mi, page) {
		left := s.take(mi, int32(s.c.TokenBudget)-page, m.rowsMax-1, 0, page)
		s.take(mi, left+page, m.rowsMax, page, tokensMax)
	} else {
		s.take(mi, cmp.Or(int32(s.c.TokenBudget), tokensMax), m.rowsMax, 0, tokensMax)
	}
	if len(m.rows) == 0 {
		return false
	}
	s.view.before(mi, len(m.queue), s.seat(m.queue[0], mi).since)
	if len(m.rows) == len(m.queue) {
		m.queue = m.queue[:0]
	} else {
		s.compact(mi)
	}
	m.busy = true
	m.seq++
	s.count.Launches++
	s.count.Rows += uint64(len(m.rows))
	s.out.Launches = append(s.out.Launches, Launch{Model: mi, Seq: m.seq, Rows: m.rows})
	return true
}

func (s *Scheduler) anyLong(mi int, page int32) bool {
	for _, slot := range s.models[mi].queue {
		if s.requests[slot].known-s.seat(slot, mi).kv > page {
			return true
		}
	}
	return false
}

// take adds rows, up to rowsMax in all, whose fresh tokens number above low and up to high,
// and returns what is left of the budget. A request whose pages do not fit stays (I2).
func (s *Scheduler) take(mi int, budget int32, rowsMax int, low, high int32) int32 {
	m := &s.models[mi]
	page := int32(s.c.PageTokens)
	for _, slot := range m.queue {
		if len(m.rows) >= rowsMax || budget == 0 {
			break
		}
		r := &s.requests[slot]
		seat := s.seat(slot, mi)
		fresh := r.known - seat.kv
		if fresh <= low || fresh > high || seat.state != seatQueued {
			continue
		}
		head := fresh <= budget
		if !head {
			if high == page {
				break // short rows are not split
			}
			fresh = budget
		}
		if seat.kv+fresh > seat.pages*page && !s.grow(slot, seat, mi, seat.kv+fresh) {
			continue // an older one behind it may take pages from younger ones
		}
		if seat.rebuild {
			s.count.Recomputed += uint64(fresh)
		}
		s.count.Fed += uint64(fresh)
		budget -= fresh
		// Written in place, field by field: appending a literal of this size costs twice as much.
		n := len(m.rows)
		m.rows = m.rows[:n+1]
		row := &m.rows[n]
		row.ID, row.Since, row.Slot, row.Gen = r.id, seat.since, slot, r.gen
		row.Start, row.Fresh, row.Head, row.Returned = seat.kv, fresh, head, seat.returned
		seat.state = seatRunning
		seat.returned = false
	}
	return budget
}

// compact removes from the queue what has been taken.
func (s *Scheduler) compact(mi int) {
	m := &s.models[mi]
	kept := m.queue[:0]
	for _, slot := range m.queue {
		if s.seat(slot, mi).state == seatQueued {
			kept = append(kept, slot)
		}
	}
	m.queue = kept
}
