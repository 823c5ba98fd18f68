package core

import (
	"fmt"
	"slices"
)

// dropsMax is the most drafts dropped in a row before the Algorithm is held to go in circles.
const dropsMax = 100

// batchDone takes the results of a launch: each row is routed on its own.
func (s *Scheduler) batchDone(e *Event) {
	if e.Model < 0 || e.Model >= len(s.models) || !s.models[e.Model].busy {
		panic(fmt.Sprintf("core: completion of model %d, which is not running", e.Model))
	}
	m := &s.models[e.Model]
	if !e.Failed && len(e.Results) != len(m.rows) {
		panic(fmt.Sprintf("core: model %d: %d results for %d rows", e.Model, len(e.Results), len(m.rows)))
	}
	m.busy = false
	for i := range m.rows {
		row := &m.rows[i]
		r := &s.requests[row.Slot]
		seat := s.seat(row.Slot, e.Model)
		if r.phase == draining || r.gen != row.Gen {
			s.count.RowsLate++
			s.drained(row.Slot, r, seat, e.Model)
			continue
		}
		if e.Failed {
			seat.state = seatPending
			s.end(row.Slot, e.Model, Failed, DeviceFailed)
			continue
		}
		seat.kv = row.Start + row.Fresh
		if row.Start < r.prompt && len(r.prefix) > 0 {
			s.sharePrefix(r, seat, m, row.Start)
		}
		if !row.Head {
			s.enqueue(row.Slot, e.Model, seat)
			continue
		}
		seat.rebuild = false
		s.route(row.Slot, r, seat, e.Model, &e.Results[i])
	}
}

// drained frees what a gone request still held because a launch named it.
func (s *Scheduler) drained(slot int32, r *request, seat *seat, m int) {
	if r.phase != draining {
		panic(fmt.Sprintf("core: slot %d of model %d was reused while a launch named it", slot, m))
	}
	s.releaseSeat(seat, m)
	s.freeSlot(slot)
}

// route lets the request's algorithm judge the sampled token and say where it goes on.
func (s *Scheduler) route(slot int32, r *request, seat *seat, m int, res *Result) {
	next := m
	keep := true
	if r.models != 1<<m {
		v := &s.visit
		v.ID, v.Model, v.Position, v.Models, v.State = r.id, m, int(r.known-r.prompt), r.models, &r.state
		next = s.alg.Route(v, res)
		if next != m {
			if uint(next) >= uint(len(s.models)) || r.models>>next&1 == 0 {
				panic(fmt.Sprintf("core: %T sent request %d to model %d, which it may not visit",
					s.alg, r.id, next))
			}
			keep = s.alg.Send(v, res, next)
		}
	}
	if keep {
		s.commit(slot, r, m, res)
		r.drops = 0
		s.count.Committed++
		if res.EOS || r.known >= r.limit {
			seat.state = seatPending
			s.end(slot, m, Finished, endReason(res.EOS))
			return
		}
	} else {
		s.count.Dropped++
		r.drops++
		if r.drops >= dropsMax {
			seat.state = seatPending
			s.end(slot, m, Failed, NoProgress)
			return
		}
	}
	if next == m {
		s.enqueue(slot, m, seat)
		return
	}
	s.leaveFor(slot, r, seat, m, next)
}

// commit adds the sampled token to the answer.
func (s *Scheduler) commit(slot int32, r *request, m int, res *Result) {
	if len(s.out.Tokens) == cap(s.out.Tokens) {
		s.out.Tokens = slices.Grow(s.out.Tokens, len(s.requests))
	}
	n := len(s.out.Tokens)
	s.out.Tokens = s.out.Tokens[:n+1]
	t := &s.out.Tokens[n]
	t.ID, t.Slot, t.Position, t.Model = r.id, slot, r.known-r.prompt, int32(m)
	t.Token, t.LogProb = res.Token, res.LogProb
	r.known++
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
	s.count.Handoffs++
	if s.models[next].owned {
		s.comeTo(slot, r, next)
		return
	}
	s.send(slot, r, m, next)
}

// comeTo puts the request into the queue of model m, where its suffix begins with m's own
// last token: sampled there, never fed.
func (s *Scheduler) comeTo(slot int32, r *request, m int) {
	seat := s.seat(slot, m)
	suffix := r.known - seat.seen
	if seat.pages == 0 && len(r.prefix) > 0 {
		s.adoptPrefix(slot, r, seat, m)
	}
	seat.returned = true
	if s.alg != nil && r.models != 1<<m {
		v := &s.visit
		v.ID, v.Model, v.Position, v.Models, v.State = r.id, m, int(r.known-r.prompt), r.models, &r.state
		s.alg.Receive(v, int(suffix))
	}
	s.enqueue(slot, m, seat)
}

func (s *Scheduler) enqueue(slot int32, m int, seat *seat) {
	seat.state = seatQueued
	seat.since = s.now
	s.requests[slot].at = int8(m)
	s.models[m].queue = append(s.models[m].queue, slot)
}

// end takes a request of this node out of the world. The caller has made sure that no queue
// names it. Where a launch still does, pages and slot are kept until its completion (I6).
func (s *Scheduler) end(slot int32, m int, outcome Outcome, reason Reason) {
	r := &s.requests[slot]
	s.live--
	if len(s.peers) > 0 {
		s.out.News = append(s.out.News, News{
			Kind: NewsEnded, ID: r.id, Outcome: outcome, Reason: reason,
			Tokens: r.known - r.prompt, Anchor: s.knownAtFront(slot),
		})
	}
	s.leave(slot, m, outcome, reason, r.known-r.prompt)
}

// leave reports the end and frees all that no launch names.
func (s *Scheduler) leave(slot int32, m int, outcome Outcome, reason Reason, tokens int32) {
	r := &s.requests[slot]
	guest := s.c.Node != 0
	s.out.Leaves = append(s.out.Leaves, Leave{
		ID: r.id, Slot: slot, Tokens: tokens, Model: m, Outcome: outcome, Reason: reason, Guest: guest,
	})
	if !guest {
		s.count.leave(outcome)
	}
	s.byID.remove(r.id)
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
		r.phase = draining
		return
	}
	id, told := r.id, r.told
	s.freeSlot(slot)
	if !told && guest {
		s.takeTomb(id)
	}
}

func (s *Scheduler) releaseSeat(seat *seat, m int) {
	if seat.pages > 0 {
		s.models[m].pool.release(seat.tail, seat.pages)
	}
	seat.pages, seat.tail, seat.kv = 0, noPage, 0
	seat.state = seatAbsent
}

func (s *Scheduler) freeSlot(slot int32) {
	r := &s.requests[slot]
	if r.told && s.c.Node != 0 {
		s.out.News = append(s.out.News, News{Kind: NewsFreed, ID: r.id, Node: int32(s.c.Node)})
	}
	r.phase = absent
	r.gen++
	r.prefix = nil
	s.free = append(s.free, slot)
}
