package exec_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// exact is a device of 1 ms a pass, to the nanosecond, that gives position as the token.
func exact() *exec.Scripted {
	start := time.Now()
	return &exec.Scripted{
		Now:    func() core.Time { return core.Time(time.Since(start)) },
		StepNs: func(core.Launch) core.Time { return ms },
		Fill: func(l core.Launch, results []core.Result) error {
			for i, row := range l.Rows {
				results[i].Token = row.Start + row.Fresh
			}
			return nil
		},
	}
}

// TestDuplicates: of requests that have one ID, each Sink hears of its own and of nothing else,
// whatever falls into one instant.
func TestDuplicates(t *testing.T) {
	short, long := []int32{1, 2}, []int32{1, 2, 3, 4}
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{exact(), exact()}, nil)
		cancel := func() {
			if err := s.loops[0].Cancel(1, core.ClientLeft); err != nil {
				t.Error(err)
			}
		}

		// Two in one instant, the longer first: the first to come is the request.
		first, second := s.submit(1, long, 3), s.submit(1, short, 3)
		time.Sleep(500 * time.Microsecond)
		// While it runs: one more, one that is also malformed, one that is also too long.
		live, malformed := s.submit(1, long, 3), s.submit(1, long, 0)
		tooLong := s.submit(1, make([]int32, 99), 3)
		s.settle(500 * time.Microsecond)

		// Its last pass ends at 3 ms. At that instant its successor comes, and one too many.
		s.settle(2 * time.Millisecond)
		successor, third := s.submit(1, short, 2), s.submit(1, long, 2)
		s.settle(500 * time.Microsecond)
		first.ended(core.Finished, core.TokensMax, 4, 5, 6)
		second.ended(core.Rejected, core.Duplicate)
		live.ended(core.Rejected, core.Duplicate)
		malformed.ended(core.Rejected, core.Malformed)
		tooLong.ended(core.Rejected, core.TooLong)
		third.ended(core.Rejected, core.Duplicate)

		// The successor is cancelled, and another comes at the same instant.
		cancel()
		heir := s.submit(1, long, 1)
		s.settle(time.Second)
		successor.ended(core.CancelledOutcome, core.ClientLeft)
		heir.ended(core.Finished, core.TokensMax, 4)

		// Nobody has the ID: the cancellation meets the request that comes with it.
		cancel()
		gone := s.submit(1, long, 1)
		s.settle(time.Second)
		gone.ended(core.CancelledOutcome, core.ClientLeft)

		// The end of the loop finds several of the ID.
		last := []*client{s.submit(1, long, 1), s.submit(1, long, 1), s.submit(1, short, 1)}
		s.stop()
		for _, c := range last {
			if len(c.leaves) != 1 || c.leaves[0].Outcome == core.Finished {
				t.Errorf("at the end: %+v, want one that is not finished", c.leaves)
			}
		}
	})
}

// TestArrival: delays are counted from the planned arrival, never from a later one.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []core.Time
		s := start(t, config(), 0, []exec.Device{exact(), exact()}, func(c *exec.Config) {
			c.Observe = func(_ int, _ core.Time, _ []core.Event, out *core.Actions) {
				for _, a := range out.Admits {
					got = append(got, a.Arrival)
				}
			}
		})
		planned := func(at core.Time) func(*exec.Request) { return func(r *exec.Request) { r.Arrival = at } }
		s.settle(5 * time.Millisecond)
		s.submit(1, []int32{1}, 1)                // now: 5 ms
		s.submit(2, []int32{1}, 1, planned(3*ms)) // late by 2 ms
		s.submit(3, []int32{1}, 1, planned(9*ms)) // nobody comes before he comes
		s.submit(4, []int32{1}, 1, planned(-1))   // when admitted
		s.settle(time.Second)
		for i, want := range []core.Time{5 * ms, 3 * ms, 5 * ms, -1} {
			if i >= len(got) || got[i] != want {
				t.Errorf("arrivals %v, want entry %d to be %d", got, i, want)
			}
		}
		s.stop()
	})
}
