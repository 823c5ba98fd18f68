package core

import "slices"

// Time outside the engines: a request that has been admitted comes to its first call after
// Config.FrontNs, and every call of a model joins its queue Model.DispatchNs after it was sent.
// Nobody is occupied meanwhile, so that such times of several requests pass side by side.

// begin sends an admitted request to its first call.
func (s *Scheduler) begin(slot int32, r *request) {
	entry := int(r.entry)
	if s.models[entry].owned {
		s.comeTo(slot, r, entry)
		return
	}
	s.send(slot, r, entry, entry)
}

// call puts the request into the queue of model m, once the call is there.
func (s *Scheduler) call(slot int32, m int, r *request, seat *seat) {
	seat.returned = true
	if ns := s.models[m].dispatchNs; ns > 0 {
		s.await(m, r, seat, ns)
		return
	}
	s.enqueue(slot, m, r, seat)
}

// await notes that the request comes to model m in ns from now. Until then seat.since is when that will be.
func (s *Scheduler) await(m int, r *request, seat *seat, ns Time) {
	seat.state, seat.since, r.at = seatComing, s.now+ns, int8(m)
	coming := s.models[m].coming
	at := len(coming)
	for at > 0 && coming[at-1].since > seat.since {
		at--
	}
	s.models[m].coming = slices.Insert(coming, at, seat)
	s.coming++
}

// come takes those whose time has come: into the queue, or to the first call from the front.
func (s *Scheduler) come() {
	for m := range s.models {
		for coming := s.models[m].coming; len(coming) > 0 && coming[0].since <= s.now; coming = s.models[m].coming {
			seat := coming[0]
			s.models[m].coming = slices.Delete(coming, 0, 1)
			s.coming--
			r := seat.of
			if seat.returned {
				s.enqueue(r.slot, m, r, seat)
				continue
			}
			seat.state = seatAbsent
			s.begin(r.slot, r)
		}
	}
}

// wakeForCalls asks to be called when the next of them comes.
func (s *Scheduler) wakeForCalls() {
	for m := range s.models {
		if coming := s.models[m].coming; len(coming) > 0 {
			s.wakeBy(coming[0].since)
		}
	}
}
