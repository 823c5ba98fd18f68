package exec_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// TestCancelInAQueue is case 15: N = 3, thresholds (1, 3), steps of 50 and 150 ms. Two requests
// wait at the large model's queue; the client of one leaves. It is gone at once, its KV is back
// in both pools, N is 2, and the threshold that belongs to 2 lets the other go on.
func TestCancelInAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config()
		c.LiveMax, c.PageTokens = 3, 16 // a page a request
		c.Policy = core.Delayed{Thresholds: must(core.FixedThresholds([]int{1, 3}, 3))}
		small := &scripted{step: 50 * ms, script: func(id uint64, position int32) core.Result {
			routed := id < 3 || position == 6 // 1 and 2 at once, 3 with its fifth token, at 250 ms
			return core.Result{Token: position, Score: map[bool]float64{true: 1}[routed]}
		}}
		large := &scripted{step: 150 * ms, script: counting}
		s := start(t, c, 0, []exec.Device{small, large}, nil)
		prompt := []int32{1, 2}
		first, second, third := s.submit(1, prompt, 1), s.submit(2, prompt, 1), s.submit(3, prompt, 9)
		s.settle(120 * time.Millisecond)
		if held := s.loops[0].Scheduler().PagesHeld(0); held != 3 {
			t.Errorf("small model holds %d pages, want one a request", held)
		}
		if err := s.loops[0].Cancel(1, core.ClientLeft); err != nil {
			t.Fatal(err)
		}
		s.settle(50 * time.Millisecond) // one step of the small model
		first.ended(core.CancelledOutcome, core.ClientLeft)
		scheduler := s.loops[0].Scheduler()
		if scheduler.Live() != 2 || scheduler.Queued(1) != 1 || scheduler.PagesHeld(0) != 2 {
			t.Errorf("N = %d, %d at the large model, %d pages held, want 2, 1, 2",
				scheduler.Live(), scheduler.Queued(1), scheduler.PagesHeld(0))
		}
		s.settle(time.Second)
		// At 250 ms request 3 comes to the large model too: two wait, and that is the threshold of N = 2.
		if len(large.at) == 0 || large.at[0]/ms != 250 || len(large.passes[0]) != 2 {
			t.Errorf("large model ran %v at %v, want both rows at 250 ms", large.passes, large.at)
		}
		second.ended(core.Finished, core.TokensMax, 2)
		third.ended(core.Finished, core.TokensMax, 2, 3, 4, 5, 6, 7, 8, 9, 10)
		if held := scheduler.PagesHeld(0) + scheduler.PagesHeld(1); held != 0 {
			t.Errorf("%d pages held at the end, want none", held)
		}
		s.stop()
	})
}

// TestCancelBeforeAdmission: of a request whose client leaves before it was admitted there is no
// forward pass at all (case 15).
func TestCancelBeforeAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config()
		c.LiveMax = 1
		small := &scripted{script: counting}
		s := start(t, c, 0, []exec.Device{small, &scripted{script: counting}}, nil)
		first := s.submit(1, []int32{1}, 3)
		second := s.submit(2, []int32{1}, 3)
		third := s.submit(3, []int32{1}, 1)
		s.settle(time.Millisecond)
		if err := s.loops[0].Cancel(2, core.TimedOut); err != nil {
			t.Fatal(err)
		}
		s.settle(time.Second)
		first.ended(core.Finished, core.TokensMax, 1, 2, 3)
		second.ended(core.CancelledOutcome, core.TimedOut)
		third.ended(core.Finished, core.TokensMax, 1)
		for _, pass := range small.passes {
			if slices.ContainsFunc(pass, func(f fed) bool { return f.ID == 2 }) {
				t.Errorf("request 2 was fed: %v", small.passes)
			}
		}
		s.stop()
	})
}

// TestCancelAtEveryStage: whenever the client leaves, the request leaves once, and the one
// behind it goes on. Times cover the queue, a pass, the way to the other node, its queue, its
// pass, the way back, and after the end.
func TestCancelAtEveryStage(t *testing.T) {
	for _, nodes := range [][]int{{0, 0}, {0, 1}, {1, 2}} {
		for at := range 40 {
			synctest.Test(t, func(t *testing.T) {
				small := &scripted{step: 4 * ms, script: func(_ uint64, position int32) core.Result {
					return core.Result{Token: position, Score: float64(position % 2)}
				}}
				large := &scripted{step: 6 * ms, script: counting}
				s := start(t, config(nodes...), 3*time.Millisecond, []exec.Device{small, large}, nil)
				first := s.submit(1, []int32{1, 2, 3}, 3)
				s.settle(time.Millisecond)
				second := s.submit(2, []int32{1, 2, 3}, 3)
				s.settle(time.Duration(at) * time.Millisecond)
				if err := s.loops[0].Cancel(1, core.ClientLeft); err != nil {
					t.Fatal(err)
				}
				s.settle(time.Second)
				second.ended(core.Finished, core.TokensMax, 3, 4, 5)
				want := []int32{3, 4, 5}[:len(first.tokens)]
				if len(first.tokens) == 3 {
					first.ended(core.Finished, core.TokensMax, want...)
				} else {
					first.ended(core.CancelledOutcome, core.ClientLeft, want...)
				}
				for node, loop := range s.loops {
					if live := loop.Scheduler().Live(); live != 0 {
						t.Errorf("nodes %v, cancelled after %d ms: node %d still counts %d", nodes, at, node, live)
					}
				}
				s.stop()
			})
		}
	}
}

// TestStopString: a driver that has seen a stop string ends the request as finished.
func TestStopString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{&scripted{script: counting}, &scripted{}}, nil)
		c := s.submit(1, []int32{1}, 9)
		s.settle(2500 * time.Microsecond)
		if err := s.loops[0].Cancel(1, core.StopString); err != nil {
			t.Fatal(err)
		}
		s.settle(time.Second)
		c.ended(core.Finished, core.StopString, 1, 2)
		s.stop()
	})
}

// TestNoGoroutinesStay: 1000 requests, each cancelled at another moment, and then the end of the
// loop, leave no goroutine behind (case 15). The bubble sees to it: synctest.Test returns once
// every goroutine begun in it has ended, and panics when one stays blocked.
func TestNoGoroutinesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{&scripted{script: counting}, &scripted{script: counting}}, nil)
		var clients []*client
		for id := range uint64(1000) {
			clients = append(clients, s.submit(id, []int32{1}, 50))
			time.Sleep(time.Duration(id%7) * 300 * time.Microsecond)
			if err := s.loops[0].Cancel(id, core.ClientLeft); err != nil {
				t.Fatal(err)
			}
		}
		s.stop()
		for _, c := range clients {
			if len(c.leaves) != 1 || c.leaves[0].Outcome != core.CancelledOutcome {
				t.Errorf("request %d: ends %+v, want one, cancelled", c.id, c.leaves)
			}
		}
	})
}
