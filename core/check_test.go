package core

import (
	"strings"
	"testing"
)

// TestCheckNames: a state that is broken by hand is found, with the number of its invariant.
// In slot 0 a request runs, in slot 1 one is queued, slot 2 is free.
func TestCheckNames(t *testing.T) {
	for _, c := range []struct {
		name, number string
		harm         func(s *Scheduler)
	}{
		{"nothing", "", func(*Scheduler) {}},
		{"a request lost from the counts", "I1", func(s *Scheduler) { s.count.Submitted++ }},
		{"N too large", "I1", func(s *Scheduler) { s.live++; s.count.Submitted++ }},
		{"a page lost", "I2", func(s *Scheduler) { s.models[0].pool.free = s.models[0].pool.free[1:] }},
		{"a page twice free", "I2", func(s *Scheduler) { s.models[0].pool.free[0] = s.models[0].pool.free[1] }},
		{"a held page free", "I2", func(s *Scheduler) { s.models[0].pool.free[0] = s.requests[0].seats[0].tail }},
		{"a count too high", "I2", func(s *Scheduler) { s.models[0].pool.refs[s.requests[0].seats[0].tail]++ }},
		{"a chain too short", "I2", func(s *Scheduler) { s.requests[0].seats[0].pages-- }},
		{"a promise too many", "I2", func(s *Scheduler) { s.models[0].reserved++ }},
		{"more in KV than room", "I2", func(s *Scheduler) { s.requests[0].seats[0].kv = 99 }},
		{"nothing to wait for", "I3", func(s *Scheduler) { s.busy = 0 }},
		{"twice in the queue", "I4", func(s *Scheduler) {
			s.models[0].queue = append(s.models[0].queue, s.models[0].queue[0])
		}},
		{"lost from the queue", "I4", func(s *Scheduler) { s.models[0].queue = s.models[0].queue[:0] }},
		{"queued in name only", "I4", func(s *Scheduler) { s.requests[1].seats[0].state = seatPending }},
		{"away in the count only", "I4", func(s *Scheduler) { s.away++ }},
		{"running in no launch", "I5", func(s *Scheduler) { s.requests[0].seats[0].state = seatQueued }},
		{"slot reused under a launch", "I6", func(s *Scheduler) { s.requests[0].gen++ }},
		{"not found by its ID", "I6", func(s *Scheduler) { s.byID.remove(7) }},
		{"a slot lost", "I6", func(s *Scheduler) { s.free = s.free[:0] }},
		{"KV of unknown tokens", "I7", func(s *Scheduler) { s.requests[0].seats[0].kv = 6 }},
		{"seen more than known", "I7", func(s *Scheduler) { s.requests[0].seats[0].seen = 6 }},
		{"a committed token gone", "I8", func(s *Scheduler) { s.requests[0].known = 4 }},
		{"more than the limit", "I8", func(s *Scheduler) { s.requests[0].known = 9 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := New(Config{
				Models: []Model{{Pages: 20}}, Policy: Eager{}, Admission: Reserve, Requests: 3, ContextMax: 64,
				PageTokens: 4,
			})
			if err != nil {
				t.Fatal(err)
			}
			var out Actions
			for _, id := range []uint64{7, 8} {
				s.Turn(0, []Event{{Kind: Submitted, Submission: &Submission{
					ID: id, PromptTokens: 5, TokensMax: 3,
				}}}, &out)
			}
			c.harm(s)
			err = s.Check()
			if (err == nil) != (c.number == "") || err != nil && !strings.HasPrefix(err.Error(), c.number+":") {
				t.Errorf("Check: %v, want %s", err, c.number)
			}
		})
	}
}
