package core

import "fmt"

// completeRows asks the Algorithm about each row and does what it says. A processor cannot predict
// verdicts, and would lose more time to wrong guesses than it needs for the rows: so all rows are
// judged, then requests are queued and tokens committed without a branch on a verdict, and at last
// those that go on at another model are handed on. What takes more than these loops stands between
// two runs of rows, so that all comes out as if rows were done one by one.
func (s *Scheduler) completeRows(m *model, mi int, results []Result) {
	running := m.running
	results = results[:len(running)]
	for {
		n := 0
		if !m.apart {
			n = settle(running, results, s.now)
		}
		if n > 0 {
			s.completeRun(m, mi, running[:n], results[:n])
		}
		if n == len(running) {
			return
		}
		s.rowDone(&m.rows[len(m.rows)-len(running)+n], m, mi, &results[n])
		running, results = running[n+1:], results[n+1:]
	}
}

// settle counts the rows up to one that takes rowDone. What they were fed, all that is known, is
// in KV now.
func settle(running []*seat, results []Result, now Time) int {
	results = results[:len(running)]
	for i, seat := range running {
		r := seat.of
		if r.known >= r.easy || results[i].EOS || results[i].Failed {
			return i
		}
		seat.kv, seat.since = r.known, now
	}
	return len(running)
}

// completeRun is completeRows for rows that settle has counted.
func (s *Scheduler) completeRun(m *model, mi int, running []*seat, results []Result) {
	verdicts := s.verdicts[:len(running)]
	if s.batch != nil {
		s.batch.Judge(mi, results, verdicts)
	} else {
		s.route(mi, running, results, verdicts)
	}
	goes := s.stay(m, mi, running, verdicts)
	if s.batch == nil {
		s.ask(running, results, verdicts, goes)
	}
	n := len(s.out.Tokens)
	committed := commitAll(s.out.Tokens[n:n+len(running)], mi, running, results, verdicts)
	s.out.Tokens = s.out.Tokens[:n+committed]
	s.count.Committed += uint64(committed)
	s.handOn(mi, running, verdicts, goes)
}

// route asks the Algorithm of each row who goes on.
func (s *Scheduler) route(mi int, running []*seat, results []Result, verdicts []Verdict) {
	results, verdicts = results[:len(running)], verdicts[:len(running)]
	own := uint32(1) << mi
	for i, seat := range running {
		verdicts[i] = Verdict{Next: mi, Keep: true}
		if r := seat.of; r.Models != own {
			verdicts[i].Next = s.alg.Route(&r.Visit, &results[i])
		}
	}
}

// ask asks the Algorithm whether it keeps the tokens of those who go.
func (s *Scheduler) ask(running []*seat, results []Result, verdicts []Verdict, goes []int32) {
	for _, i := range goes {
		r, v := running[i].of, &verdicts[i]
		if !r.mayGo(v.Next) {
			s.astray(r, v.Next)
		}
		v.Keep = s.alg.Send(&r.Visit, &results[i], v.Next)
	}
}

// commitAll writes the tokens that are kept and returns their number. It has nothing to do after
// its loop, so that all of the loop is in registers.
func commitAll(tokens []Token, mi int, running []*seat, results []Result, verdicts []Verdict) int {
	n := len(running)
	tokens, results, verdicts = tokens[:n], results[:n], verdicts[:n]
	committed := 0
	for i, seat := range running {
		r := seat.of
		r.token(&tokens[committed], mi, &results[i])
		keep := int32(0)
		if verdicts[i].Keep { // without a branch
			keep = 1
		}
		committed += int(keep)
		r.Position += keep
		r.known += keep
		r.drops = (r.drops + 1) * uint8(1-keep)
	}
	return committed
}

// stay queues those who go on at the same model, and returns the rows of the others.
func (s *Scheduler) stay(m *model, mi int, running []*seat, verdicts []Verdict) []int32 {
	end := len(m.queue)
	queue, goes := m.queue[end:end+len(running)], s.goes[:len(running)]
	verdicts = verdicts[:len(running)]
	stay := 0
	for i, seat := range running {
		queue[stay] = seat
		goes[i-stay] = int32(i)
		seat.state = seatQueued
		if verdicts[i].Next == mi { // without a branch
			stay++
		}
	}
	m.queue = m.queue[:end+stay]
	return goes[:len(running)-stay]
}

// handOn does what leaveFor does. Where a request has been before at the other model, which is of
// this node, it is done here.
func (s *Scheduler) handOn(mi int, running []*seat, verdicts []Verdict, goes []int32) {
	for _, i := range goes {
		seat, next := running[i], verdicts[i].Next
		r := seat.of
		if !verdicts[i].Keep {
			s.count.Dropped++
			seat.dropped++
			if r.drops >= dropsMax {
				s.noProgress(r, seat, mi)
				continue
			}
		}
		to, target := s.near[next&(ModelsMax-1)], &r.seats[next&(ModelsMax-1)]
		if uint(next) >= ModelsMax || to == nil || target.pages == 0 {
			if !r.mayGo(next) {
				s.astray(r, next)
			}
			s.leaveFor(r.slot, r, seat, mi, next)
			continue
		}
		s.count.Handoffs++
		seat.state = seatPending
		seat.seen = r.known
		to.pendings++
		to.pendingNs += s.now - target.since
		if target.kv == r.known {
			target.kv-- // as comeTo
		}
		target.returned = true
		target.state = seatQueued
		target.since = s.now
		r.Model, r.at = int32(next), int8(next)
		to.queue = append(to.queue, target)
	}
}

func (r *request) mayGo(to int) bool { return r.Models>>uint(to)&1 != 0 }

// astray stops an Algorithm that leaves the models of its request.
func (s *Scheduler) astray(r *request, to int) {
	panic(fmt.Sprintf("core: %T sent request %d to model %d, which it may not visit", s.alg, r.ID, to))
}
