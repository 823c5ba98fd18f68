package core

import (
	"cmp"
	"math"
	"slices"
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
		for _, r := range s.models[m].queue {
			if age := s.details[r.slot].age; at == nowhere || age < oldest {
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
	begun := s.begun(mi)
	m.rows = m.rows[:0]
	whole := false
	page := int32(s.c.PageTokens)
	if s.c.TokenBudget == 0 && len(m.queue) <= m.rowsMax {
		whole = s.takeAll(mi)
	} else if s.c.TokenBudget != 0 && m.rowsMax > 1 && s.anyLong(mi, page) {
		left := s.take(mi, int32(s.c.TokenBudget)-page, m.rowsMax-1, 0, page)
		s.take(mi, left+page, m.rowsMax, page, tokensMax)
	} else {
		s.take(mi, cmp.Or(int32(s.c.TokenBudget), tokensMax), m.rowsMax, 0, tokensMax)
	}
	if len(m.rows) == 0 {
		return false
	}
	s.view.before(mi, len(m.queue), m.queue[0].seats[mi].since, begun)
	if whole {
		m.running, m.queue = m.queue, m.running[:0]
	} else {
		s.compact(mi)
	}
	m.busy = true
	m.seq++
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
	l.Pendings, l.PendingNs = m.pendings, m.pendingNs
	m.tally = tally{}
	return true
}

// begun reports whether a request in the queue of model mi has had a chunk and needs more.
func (s *Scheduler) begun(mi int) bool {
	if s.c.TokenBudget == 0 {
		return false
	}
	for _, r := range s.models[mi].queue {
		if r.seats[mi].partial {
			return true
		}
	}
	return false
}

func (s *Scheduler) anyLong(mi int, page int32) bool {
	for _, r := range s.models[mi].queue {
		if r.known-r.seats[mi].kv > page {
			return true
		}
	}
	return false
}

// takeAll adds the whole queue, or what pages allow: the case without a bound on rows and
// tokens, which most launches are. It reports whether it took all.
func (s *Scheduler) takeAll(mi int) bool {
	m := &s.models[mi]
	for next := 0; ; next++ {
		next = s.takeRun(m, mi, next)
		if next == len(m.queue) {
			return len(m.rows) == next
		}
		s.takeOne(m, mi, m.queue[next], math.MaxInt32)
	}
}

// takeRun adds rows from queue[next] on, up to the first that needs more than this leaf
// does: pages, or the account of a rebuilt seat. It returns that one's index.
func (s *Scheduler) takeRun(m *model, mi, next int) int {
	queue, n, now := m.queue[next:], len(m.rows), s.now
	rows := m.rows[n : n+len(queue)]
	taken := len(queue)
	var known, context int64
	var since Time
	returned := 0
	for k, r := range queue {
		seat := &r.seats[mi&(ModelsMax-1)]
		if r.known > seat.room || seat.rebuild {
			taken = k
			break
		}
		known += int64(r.known)
		context += int64(seat.kv)
		since += seat.since
		row := &rows[k]
		row.set(r, seat, r.known-seat.kv)
		row.Head = true
		if seat.returned {
			returned++
		}
		seat.state, seat.returned = seatRunning, false
	}
	m.rows = m.rows[:n+taken]
	m.fed += known - context
	m.context += context
	m.waitNs += now*Time(taken) - since
	m.returned += returned
	return next + taken
}

// set writes all but Head. Rows are written in place, field by field: appending a literal of
// this size costs twice as much.
func (row *Row) set(r *request, seat *seat, fresh int32) {
	row.ID, row.Since, row.Slot, row.Gen = r.ID, seat.since, r.slot, r.gen
	row.Start, row.Fresh, row.Returned = seat.kv, fresh, seat.returned
}

// take adds rows, up to rowsMax in all, whose fresh tokens number above low and up to high,
// and returns what is left of the budget. A request whose pages do not fit stays (I2).
func (s *Scheduler) take(mi int, budget int32, rowsMax int, low, high int32) int32 {
	m := &s.models[mi]
	for _, r := range m.queue {
		if len(m.rows) >= rowsMax || budget == 0 {
			break
		}
		seat := &r.seats[mi]
		fresh := r.known - seat.kv
		if fresh <= low || fresh > high || seat.state != seatQueued {
			continue
		}
		if fresh > budget && high == int32(s.c.PageTokens) {
			break // short rows are not split
		}
		budget -= s.takeOne(m, mi, r, budget)
	}
	return budget
}

// takeOne adds a row of at most budget tokens and returns their number; 0 if its pages do
// not fit: an older request behind it may still take pages from younger ones.
func (s *Scheduler) takeOne(m *model, mi int, r *request, budget int32) int32 {
	seat := &r.seats[mi]
	fresh := min(r.known-seat.kv, budget)
	if seat.kv+fresh > seat.room && !s.grow(r.slot, seat, mi, seat.kv+fresh) {
		return 0
	}
	if seat.rebuild {
		s.count.Recomputed += uint64(fresh)
	}
	m.fed += int64(fresh)
	m.context += int64(seat.kv)
	m.waitNs += s.now - seat.since
	m.rows = m.rows[:len(m.rows)+1]
	row := &m.rows[len(m.rows)-1]
	row.set(r, seat, fresh)
	row.Head = seat.kv+fresh == r.known
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
	m.queue = slices.DeleteFunc(m.queue, func(r *request) bool { return r.seats[mi].state != seatQueued })
	m.running = m.running[:0]
	for i := range m.rows {
		m.running = append(m.running, &s.requests[m.rows[i].Slot])
	}
}
