package core

import (
	"fmt"
	"slices"
)

// dropsMax is the most drafts dropped in a row before the Algorithm is held to go in circles.
const dropsMax = 100

// batchDone takes the results of a launch. Under a barrier nobody sees a step's results
// before all of its launches have ended: they are kept until then.
func (s *Scheduler) batchDone(e *Event) {
	if e.Model < 0 || e.Model >= len(s.models) || s.busy>>e.Model&1 == 0 || s.models[e.Model].ended {
		panic(fmt.Sprintf("core: completion of model %d, which is not running", e.Model))
	}
	m := &s.models[e.Model]
	if !e.Failed && len(e.Results) != len(m.rows) {
		panic(fmt.Sprintf("core: model %d: %d results for %d rows", e.Model, len(e.Results), len(m.rows)))
	}
	if !s.barrier {
		s.complete(e.Model, e.Failed, e.Results)
		return
	}
	m.ended, m.failed = true, e.Failed
	m.results = append(m.results[:0], e.Results...)
	for i := range s.models {
		if s.busy>>i&1 != 0 && !s.models[i].ended {
			return
		}
	}
	for i := len(s.models) - 1; i >= 0; i-- {
		if m := &s.models[i]; m.ended {
			m.ended = false
			s.complete(i, m.failed, m.results)
		}
	}
}

// complete routes each row of a launch on its own.
func (s *Scheduler) complete(mi int, failed bool, results []Result) {
	m := &s.models[mi]
	s.busy &^= 1 << mi
	m.endNs = s.now
	if len(m.rows) > cap(s.out.Tokens)-len(s.out.Tokens) {
		s.out.Tokens = slices.Grow(s.out.Tokens, len(s.requests))
	}
	if failed {
		for i := range m.rows {
			s.unresolved(&m.rows[i], mi)
		}
		return
	}
	s.completeRows(m, mi, results)
}

// rowDone takes any result.
func (s *Scheduler) rowDone(row *Row, m *model, mi int, res *Result) {
	r := &s.requests[row.Slot]
	seat := s.seat(row.Slot, mi)
	if r.phase == draining || r.gen != row.Gen {
		s.unresolved(row, mi)
		return
	}
	if res.Failed {
		seat.state = seatPending
		s.end(row.Slot, mi, Failed, NotANumber)
		return
	}
	seat.kv = row.Start + row.Fresh
	if r.prefixed && row.Start < r.prompt() && !m.forgets {
		s.sharePrefix(row.Slot, seat, m, row.Start)
	}
	if !row.Head {
		s.enqueue(row.Slot, mi, r, seat)
		return
	}
	next := mi
	if r.Models != 1<<mi {
		next = s.alg.Route(&r.Visit, res)
	}
	s.obey(row.Slot, r, seat, mi, next, res)
}

// unresolved ends a row that has no result to route: its request is gone, and then what it
// still held because a launch named it is freed, or its device has failed.
func (s *Scheduler) unresolved(row *Row, m int) {
	r := &s.requests[row.Slot]
	seat := s.seat(row.Slot, m)
	if r.phase != draining && r.gen == row.Gen {
		seat.state = seatPending
		s.end(row.Slot, m, Failed, DeviceFailed)
		return
	}
	if r.phase != draining {
		panic(fmt.Sprintf("core: slot %d of model %d was reused while a launch named it", row.Slot, m))
	}
	s.count.RowsLate++
	s.releaseSeat(seat, m)
	s.freeSlot(row.Slot)
}

// obey does what the verdict says: the request goes on at model next.
func (s *Scheduler) obey(slot int32, r *request, seat *seat, m, next int, res *Result) {
	keep := true
	if next != m {
		if !r.mayGo(next) {
			s.astray(r, next)
		}
		keep = s.alg.Send(&r.Visit, res, next)
	}
	if keep {
		s.commit(r, m, res)
		if res.EOS || r.known >= r.limit {
			seat.state = seatPending
			s.end(slot, m, Finished, endReason(res.EOS))
			return
		}
	} else {
		s.count.Dropped++
		seat.dropped++
		if r.drops++; r.drops >= dropsMax {
			s.noProgress(r, seat, m)
			return
		}
	}
	if next != m {
		s.leaveFor(slot, r, seat, m, next)
		return
	}
	if s.models[m].calls {
		s.endCall(seat, m)
		s.call(slot, m, r, seat)
		return
	}
	s.enqueue(slot, m, r, seat)
}

// commit adds the sampled token to the answer. complete has made room in out.Tokens.
func (s *Scheduler) commit(r *request, m int, res *Result) {
	n := len(s.out.Tokens)
	s.out.Tokens = s.out.Tokens[:n+1]
	r.token(&s.out.Tokens[n], m, res)
	r.Position++
	r.known++
	r.drops = 0
	s.count.Committed++
}

// token writes what is committed of the request in place, field by field: appending a literal of
// this size costs twice as much.
func (r *request) token(t *Token, m int, res *Result) {
	t.ID, t.Slot, t.Position, t.Model = r.ID, r.slot, r.Position, int32(m)
	t.Token, t.LogProb = res.Token, res.LogProb
}

// noProgress ends a request whose algorithm goes in circles.
func (s *Scheduler) noProgress(r *request, seat *seat, m int) {
	seat.state = seatPending
	s.end(r.slot, m, Failed, NoProgress)
}

func endReason(eos bool) Reason {
	if eos {
		return EndOfSequence
	}
	return TokensMax
}

// leaveFor hands the request on to model next: its seat at m becomes pending.
func (s *Scheduler) leaveFor(slot int32, r *request, seat *seat, m, next int) {
	seat.state = seatPending
	seat.seen = r.known
	seat.since = s.now
	s.endCall(seat, m)
	s.count.Handoffs++
	if s.models[next].owned {
		s.comeTo(slot, r, next)
		return
	}
	s.send(slot, r, m, next)
}

// endCall ends a call of model m: the seat loses its pages there if the model forgets.
func (s *Scheduler) endCall(seat *seat, m int) {
	if s.models[m].forgets {
		s.forget(seat, m)
	}
}

// comeTo puts the request into the queue of model m, where its suffix begins with m's own
// last token: sampled there, never fed.
func (s *Scheduler) comeTo(slot int32, r *request, m int) {
	seat := &r.seats[m&(ModelsMax-1)]
	if seat.state == seatPending {
		s.models[m].pendings++
		s.models[m].pendingNs += s.now - seat.since
	}
	if seat.pages == 0 && r.prefixed && !s.models[m].forgets {
		s.adoptPrefix(slot, r, seat, m)
	}
	if seat.kv == r.known {
		seat.kv-- // only dropped drafts since: the last token is fed again, to sample anew
	}
	r.Model = int32(m)
	if s.receiver != nil && r.Models != 1<<m {
		s.receiver.Receive(&r.Visit, int(r.known-seat.seen))
	}
	s.call(slot, m, r, seat)
}

func (s *Scheduler) enqueue(slot int32, m int, r *request, seat *seat) {
	seat.state = seatQueued
	seat.since = s.now
	r.at = int8(m)
	queue := &s.models[m].queue
	*queue = append(*queue, seat)
}

// end takes a request of this node out of the world. The caller has made sure that no queue
// names it. Where a launch still does, pages and slot are kept until its completion (I6).
func (s *Scheduler) end(slot int32, m int, outcome Outcome, reason Reason) {
	r := &s.requests[slot]
	s.live--
	if len(s.peers) > 0 {
		s.out.News = append(s.out.News, News{
			Kind: NewsEnded, ID: r.ID, Outcome: outcome, Reason: reason,
			Tokens: r.Position, Anchor: s.knownAtFront(slot),
		})
	}
	s.leave(slot, m, outcome, reason, r.Position)
}

// leave reports the end and frees all that no launch names.
func (s *Scheduler) leave(slot int32, m int, outcome Outcome, reason Reason, tokens int32) {
	r := &s.requests[slot]
	guest := s.c.Node != 0
	leave := Leave{
		ID: r.ID, Slot: slot, Tokens: tokens, Model: m, Outcome: outcome, Reason: reason, Guest: guest,
	}
	for i := range s.models {
		leave.Dropped += s.seat(slot, i).dropped
	}
	s.out.Leaves = append(s.out.Leaves, leave)
	if !guest {
		s.count.leave(outcome)
	}
	s.byID.remove(r.ID)
	running := false
	for i := range s.models {
		if !s.models[i].owned {
			continue
		}
		if seat := s.seat(slot, i); seat.state == seatRunning {
			running = true
		} else {
			s.releaseSeat(seat, i)
		}
	}
	s.unpromise(r)
	if running {
		r.phase, r.easy = draining, 0
		return
	}
	id, told := r.ID, r.told
	s.freeSlot(slot)
	if !told && guest {
		s.takeTomb(id)
	}
}

func (s *Scheduler) releaseSeat(seat *seat, m int) {
	s.releasePages(seat, m)
	seat.state = seatAbsent
}

// releasePages takes all KV of the seat: the request keeps its place, not its pages.
func (s *Scheduler) releasePages(seat *seat, m int) {
	if seat.pages > 0 {
		s.models[m].pool.release(seat.tail, seat.pages)
	}
	seat.room, seat.pages, seat.tail, seat.kv = 0, 0, noPage, 0
}

// forget is releasePages of a seat that will be fed all again.
func (s *Scheduler) forget(seat *seat, m int) {
	s.releasePages(seat, m)
	seat.rebuild = true
}

func (s *Scheduler) freeSlot(slot int32) {
	r := &s.requests[slot]
	if r.told && s.c.Node != 0 {
		s.out.News = append(s.out.News, News{Kind: NewsFreed, ID: r.ID, Node: int32(s.c.Node)})
	}
	r.phase = absent
	r.gen++
	s.details[slot].prefix = nil
	s.free = append(s.free, slot)
}
