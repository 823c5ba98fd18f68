package core

import "fmt"

// Check verifies every invariant that one state can show and names the first that is broken.
// It is for tests: it takes time in proportion to slots and pages, and allocates.
func (s *Scheduler) Check() error {
	for _, check := range []func() error{
		s.checkCounts, s.checkPages, s.checkPromises, s.checkLiveness, s.checkPlaces, s.checkTokens, s.checkSlots,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scheduler) checkCounts() error {
	c := s.count
	gone := c.Finished + c.Rejected + c.Cancelled + c.Failed
	if s.c.Node == 0 && c.Submitted != gone+uint64(s.live)+uint64(len(s.waiting)) {
		return fmt.Errorf("I1: submitted %d, gone %d, live %d, waiting %d",
			c.Submitted, gone, s.live, len(s.waiting))
	}
	alive := 0
	for i := range s.requests {
		if s.requests[i].phase == live {
			alive++
		}
	}
	if alive != s.live {
		return fmt.Errorf("I1: %d slots are live, N = %d", alive, s.live)
	}
	return nil
}

func (s *Scheduler) checkPages() error {
	for m := range s.models {
		if !s.models[m].owned {
			continue
		}
		held, err := s.checkChains(m)
		if err != nil {
			return err
		}
		if err := s.models[m].pool.check(held); err != nil {
			return fmt.Errorf("I2: model %d: %w", m, err)
		}
	}
	return nil
}

// checkChains counts how many seats hold each page of model m.
func (s *Scheduler) checkChains(m int) ([]int32, error) {
	p := &s.models[m].pool
	held := make([]int32, len(p.refs))
	for slot := range s.requests {
		seat := s.seat(int32(slot), m)
		page := seat.tail
		for i := seat.pages; i > 0; i-- {
			held[page]++
			page = p.prev[page]
		}
		if seat.pages > 0 && page != noPage {
			return nil, fmt.Errorf("I2: model %d slot %d: chain is longer than %d pages", m, slot, seat.pages)
		}
		room := int64(seat.pages) * int64(s.c.PageTokens)
		if int64(seat.kv) > room || int64(seat.room) != room {
			return nil, fmt.Errorf("I2: model %d slot %d: %d tokens in %d pages, room for %d",
				m, slot, seat.kv, seat.pages, seat.room)
		}
	}
	return held, nil
}

// check compares the pool's counts, free list and keys with what seats hold.
func (p *pool) check(held []int32) error {
	free := make([]bool, len(p.refs))
	for _, page := range p.free {
		if free[page] || held[page] != 0 {
			return fmt.Errorf("page %d is free, though free before or held by %d", page, held[page])
		}
		free[page] = true
	}
	for page, n := range held {
		switch {
		case n == 0 && !free[page]:
			return fmt.Errorf("page %d is neither held nor free", page)
		case n > 0 && n != p.refs[page]:
			return fmt.Errorf("page %d: %d seats hold it, count %d", page, n, p.refs[page])
		case n == 0 && p.shared[page]:
			return fmt.Errorf("page %d is free and shared", page)
		case p.shared[page] && p.byKey.get(p.keys[page]) != int32(page):
			return fmt.Errorf("page %d is shared and not found by its key", page)
		}
	}
	return nil
}

// checkPromises compares what is promised in each pool, also of other nodes, with what live
// requests were promised. Only the front promises.
func (s *Scheduler) checkPromises() error {
	for m := range s.models {
		want := 0
		for i := range s.requests {
			r := &s.requests[i]
			if s.c.Node == 0 && r.phase == live && r.Models>>m&1 != 0 {
				want += s.promised(r)
			}
		}
		if got := s.models[m].reserved; got != want || got > s.models[m].pages {
			return fmt.Errorf("I2: model %d: %d of %d pages promised, want %d", m, got, s.models[m].pages, want)
		}
	}
	return nil
}

func (s *Scheduler) checkLiveness() error {
	if s.live == 0 || s.away > 0 {
		return nil
	}
	if s.busy == 0 && s.wake == 0 {
		return fmt.Errorf("I3: %d live, nothing runs, nothing is on its way, no wake-up", s.live)
	}
	return nil
}

func (s *Scheduler) checkPlaces() error {
	places := make([]int, len(s.requests))
	for m := range s.models {
		mo := &s.models[m]
		for _, list := range []struct {
			seats []*seat
			state seatState
			where string
		}{{mo.queue, seatQueued, "in the queue"}, {mo.coming, seatComing, "on its way to the queue"}} {
			for _, seat := range list.seats {
				slot := seat.of.slot
				places[slot]++
				if seat != s.seat(slot, m) || seat.state != list.state {
					return fmt.Errorf("I4: model %d slot %d is %s, its seat is in state %d", m, slot, list.where,
						s.seat(slot, m).state)
				}
			}
		}
		if s.busy>>m&1 == 0 {
			continue
		}
		for _, row := range mo.rows {
			if s.requests[row.Slot].gen != row.Gen {
				return fmt.Errorf("I6: slot %d was reused while model %d runs it", row.Slot, m)
			}
			if s.requests[row.Slot].phase == live {
				places[row.Slot]++
			}
			if st := s.seat(row.Slot, m).state; st != seatRunning {
				return fmt.Errorf("I5: model %d slot %d runs, its seat is in state %d", m, row.Slot, st)
			}
		}
	}
	away := 0
	for slot, n := range places {
		r := &s.requests[slot]
		want := 0
		if r.phase == live && r.at != nowhere {
			want = 1
		}
		if r.phase == live && r.at == nowhere {
			away++
		}
		if n != want {
			return fmt.Errorf("I4: slot %d is in %d places, want %d", slot, n, want)
		}
	}
	if away != s.away {
		return fmt.Errorf("I4: %d requests are away, counted %d", away, s.away)
	}
	return nil
}

func (s *Scheduler) checkTokens() error {
	for slot := range s.requests {
		r := &s.requests[slot]
		if r.phase != live {
			continue
		}
		if r.Position < 0 || r.prompt() != s.details[slot].prompt || r.known > r.limit {
			return fmt.Errorf("I8: slot %d knows %d tokens, want %d to %d",
				slot, r.known, s.details[slot].prompt, r.limit)
		}
		for m := range s.models {
			seat := s.seat(int32(slot), m)
			if seat.kv > r.known || seat.seen > r.known {
				return fmt.Errorf("I7: slot %d model %d: %d tokens in KV, %d seen, %d known",
					slot, m, seat.kv, seat.seen, r.known)
			}
			if s.models[m].forgets && seat.state == seatPending && seat.pages > 0 {
				return fmt.Errorf("I2: slot %d has left model %d, which forgets, and holds %d pages",
					slot, m, seat.pages)
			}
		}
	}
	return nil
}

func (s *Scheduler) checkSlots() error {
	used := 0
	for i := range s.requests {
		switch r := &s.requests[i]; r.phase {
		case absent:
		case draining:
			used++
		default:
			used++
			if s.byID.get(r.ID) != int32(i) {
				return fmt.Errorf("I6: request %d in slot %d is not found by its ID", r.ID, i)
			}
		}
	}
	if used+len(s.free) != len(s.requests) {
		return fmt.Errorf("I6: %d slots used + %d free, want %d", used, len(s.free), len(s.requests))
	}
	return nil
}
