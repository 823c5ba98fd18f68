package core

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

const tokensMax = math.MaxInt32

// plan starts what the policy lets start. Models are asked in order; all see the world as it was
// before the first launch of this turn.
func (s *Scheduler) plan() {
	v := &s.view
	v.now, v.busy, v.queues = s.now, s.busy, 0
	for m := range s.models {
		if len(s.models[m].queue) > 0 {
			v.queues |= 1 << m
		}
	}
	due := uint32(0)
	for idle := v.queues &^ v.busy; idle != 0; idle &= idle - 1 {
		if m := bits.TrailingZeros32(idle); s.policy.Start(m, v) {
			due |= 1 << m
		}
	}
	blocked := false
	for ; due != 0; due &= due - 1 {
		if !s.launch(bits.TrailingZeros32(due)) {
			blocked = true
		}
	}
	if s.busy == 0 && s.live > 0 {
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
		for _, seat := range s.models[m].queue {
			if age := s.details[seat.of.slot].age; at == nowhere || age < oldest {
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
// Unmixed, what goes on by one token waits while others are fed more; Ahead, what has come while the step
// before ran waits for this one. Neither waits if the others have no pages.
//
// Under a token budget, rows that need at most a page of tokens go first, and long prompts
// share what is left, at least a page and a row: neither can starve the other.
func (s *Scheduler) launch(mi int) bool {
	m := &s.models[mi]
	m.rows, m.apart = m.rows[:0], m.calls || m.forgets
	m.ahead = s.c.Ahead && m.seq > 0 && m.endNs == s.now && m.anyEarly()
	m.extend = s.c.Unmixed && m.mixed()
	whole := !m.ahead && !m.extend && s.c.TokenBudget == 0 && len(m.queue) <= m.rowsMax && s.makeRoom(m, mi)
	if whole {
		m.takeAll()
	} else if s.takeSome(mi); len(m.rows) == 0 && m.ahead {
		m.ahead = false
		m.extend = s.c.Unmixed && m.mixed()
		s.takeSome(mi)
	}
	if len(m.rows) == 0 {
		return false
	}
	if whole {
		m.running, m.queue = m.queue, m.running[:0]
	} else {
		s.compact(mi)
	}
	s.busy |= 1 << mi
	m.seq++
	m.startNs = s.now
	s.count.Launches++
	s.count.Rows += uint64(len(m.rows))
	s.count.Fed += uint64(m.fed)
	n := len(s.out.Launches)
	if n == cap(s.out.Launches) {
		s.out.Launches = slices.Grow(s.out.Launches, len(s.models))
	}
	s.out.Launches = s.out.Launches[:n+1]
	l := &s.out.Launches[n]
	l.Model, l.Seq, l.Rows = mi, m.seq, m.rows
	l.Fresh, l.Context, l.Returned, l.WaitNs = m.fed, m.context, m.returned, m.waitNs
	l.Pendings, l.PendingNs, l.Ahead = m.pendings, m.pendingNs, m.ahead
	m.tally = tally{}
	return true
}

// late reports whether the seat's call has come after what is launched was decided.
func (m *model) late(seat *seat) bool { return m.ahead && seat.returned && seat.since > m.startNs }

// anyEarly reports whether somebody was in the queue when the last launch started, or in it and goes on.
func (m *model) anyEarly() bool {
	for _, seat := range m.queue {
		if !seat.returned || seat.since <= m.startNs {
			return true
		}
	}
	return false
}

// mixed reports whether the queue has both requests to be fed more than a token and such as go on by one.
func (m *model) mixed() bool {
	long, short := false, false
	for _, seat := range m.queue {
		if m.late(seat) {
			continue
		}
		one := seat.of.known-seat.kv == 1
		long, short = long || !one, short || one && !seat.returned
	}
	return long && short
}

// takeSome adds rows within rowsMax and the token budget.
func (s *Scheduler) takeSome(mi int) {
	s.takeRows(mi)
	if m := &s.models[mi]; len(m.rows) == 0 && m.extend {
		m.extend = false
		s.takeRows(mi)
	}
}

func (s *Scheduler) takeRows(mi int) {
	m, page := &s.models[mi], int32(s.c.PageTokens)
	if s.c.TokenBudget != 0 && m.rowsMax > 1 && s.anyLong(mi, page) {
		left := s.take(mi, int32(s.c.TokenBudget)-page, m.rowsMax-1, 0, page)
		s.take(mi, left+page, m.rowsMax, page, tokensMax)
		return
	}
	s.take(mi, cmp.Or(int32(s.c.TokenBudget), tokensMax), m.rowsMax, 0, tokensMax)
}

// begun reports whether a request in the queue of model mi has had a chunk and needs more.
func (s *Scheduler) begun(mi int) bool {
	if s.c.TokenBudget == 0 {
		return false
	}
	for _, seat := range s.models[mi].queue {
		if seat.partial {
			return true
		}
	}
	return false
}

func (s *Scheduler) anyLong(mi int, page int32) bool {
	m := &s.models[mi]
	for _, seat := range m.queue {
		if seat.of.known-seat.kv > page && !m.late(seat) {
			return true
		}
	}
	return false
}

// makeRoom gives every seat of the queue the pages that its row needs, and sums up the rows. It
// reports whether that was no more than taking free pages for some: then takeAll may follow. What
// it has given before it met another case, take would have given too.
func (s *Scheduler) makeRoom(m *model, mi int) bool {
	var known, context int64
	var since Time
	returned := 0
	for _, seat := range m.queue {
		r := seat.of
		if r.known > seat.room {
			if seat.rebuild || int(r.known-seat.room) > len(m.pool.free)*s.c.PageTokens {
				return false
			}
			s.grow(r.slot, seat, mi, r.known)
		}
		known += int64(r.known)
		context += int64(seat.kv)
		since += seat.since
		if seat.returned {
			returned++
		}
	}
	m.fed, m.context, m.returned = known-context, context, returned
	m.waitNs = s.now*Time(len(m.queue)) - since
	return true
}

// takeAll adds the whole queue, after makeRoom.
func (m *model) takeAll() {
	queue := m.queue
	rows := m.rows[:len(queue)]
	m.rows = rows
	for k, seat := range queue {
		row := &rows[k]
		row.set(seat, seat.of.known-seat.kv)
		row.Head = true
		seat.state, seat.returned = seatRunning, false
	}
}

// set writes all but Head. Rows are written in place, field by field: appending a literal of
// this size costs twice as much.
func (row *Row) set(seat *seat, fresh int32) {
	r := seat.of
	row.Start, row.Fresh, row.Returned = seat.kv, fresh, seat.returned
	row.ID, row.Since, row.Slot, row.Gen = r.ID, seat.since, r.slot, r.gen
}

// take adds rows, up to rowsMax in all, whose fresh tokens number above low and up to high,
// and returns what is left of the budget. A request whose pages do not fit stays (I2).
func (s *Scheduler) take(mi int, budget int32, rowsMax int, low, high int32) int32 {
	m := &s.models[mi]
	for _, seat := range m.queue {
		if len(m.rows) >= rowsMax || budget == 0 {
			break
		}
		fresh := seat.of.known - seat.kv
		if fresh <= low || fresh > high || seat.state != seatQueued || m.late(seat) ||
			m.extend && fresh == 1 && !seat.returned {
			continue
		}
		if fresh > budget && high == int32(s.c.PageTokens) {
			break // short rows are not split
		}
		budget -= s.takeOne(m, mi, seat, budget)
	}
	return budget
}

// takeOne adds a row of at most budget tokens and returns their number; 0 if its pages do
// not fit: an older request behind it may still take pages from younger ones.
func (s *Scheduler) takeOne(m *model, mi int, seat *seat, budget int32) int32 {
	r := seat.of
	fresh := min(r.known-seat.kv, budget)
	if seat.kv+fresh > seat.room && !s.grow(r.slot, seat, mi, seat.kv+fresh) {
		return 0
	}
	m.fed += int64(fresh)
	m.context += int64(seat.kv)
	m.waitNs += s.now - seat.since
	m.rows = m.rows[:len(m.rows)+1]
	row := &m.rows[len(m.rows)-1]
	row.set(seat, fresh)
	row.Head = seat.kv+fresh == r.known
	m.apart = m.apart || !row.Head
	if seat.rebuild {
		s.count.Recomputed += uint64(fresh)
		seat.rebuild = !row.Head
	}
	seat.partial = !row.Head
	seat.state = seatRunning
	if seat.returned {
		seat.returned = false
		m.returned++
	}
	return fresh
}

// compact removes from the queue what has been taken, and notes whose the rows are.
func (s *Scheduler) compact(mi int) {
	m := &s.models[mi]
	m.queue = slices.DeleteFunc(m.queue, func(q *seat) bool { return q.state != seatQueued })
	m.running = m.running[:0]
	for i := range m.rows {
		m.running = append(m.running, s.seat(m.rows[i].Slot, mi))
	}
}
