package exec_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// TestStopWithPassesInFlight: a stop waits for the passes in flight, starts none, and every
// request has left before Run returns: those that run, those that wait in a queue, for
// admission, in the inbox, and at other nodes.
func TestStopWithPassesInFlight(t *testing.T) {
	for _, nodes := range [][]int{{0, 0}, {0, 1}, {1, 2}} {
		for _, after := range []time.Duration{0, 1, 20, 33, 47, 90} {
			synctest.Test(t, func(t *testing.T) {
				c := config(nodes...)
				c.LiveMax = 4
				c.Models[0].RowsMax = 2
				small := &scripted{step: 10 * ms, script: func(id uint64, position int32) core.Result {
					return core.Result{Token: position, Score: float64(id % 2)}
				}}
				large := &scripted{step: 100 * ms, script: counting}
				s := start(t, c, 2*time.Millisecond, []exec.Device{small, large}, nil)
				var clients []*client
				for id := range uint64(8) {
					clients = append(clients, s.submit(id, []int32{1, 2, 3}, 20))
				}
				s.settle(after * time.Millisecond)
				before := len(small.passes) + len(large.passes)
				clients = append(clients, s.submit(8, []int32{1}, 20), s.submit(8, []int32{1}, 20))
				s.stop()
				for _, c := range clients {
					if len(c.leaves) != 1 || c.leaves[0].Outcome == core.Finished {
						t.Errorf("stop after %d ms: request %d: ends %+v, want one that is not finished",
							after, c.id, c.leaves)
					}
				}
				if now := len(small.passes) + len(large.passes); now > before+2 {
					t.Errorf("stop after %d ms: %d passes, %d before", after, now, before)
				}
			})
		}
	}
}

// TestAfterTheEnd: a loop that has ended takes nothing more, and says so.
func TestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{&scripted{script: counting}, &scripted{}}, nil)
		s.stop()
		c := &client{t: t, id: 1}
		loop := s.loops[0]
		for name, err := range map[string]error{
			"Submit":  loop.Submit(&exec.Request{ID: 1, Prompt: []int32{1}, TokensMax: 1, Sink: c}),
			"Cancel":  loop.Cancel(1, core.ClientLeft),
			"Deliver": loop.Deliver(0, exec.Message{}),
		} {
			if !errors.Is(err, exec.ErrStopped) {
				t.Errorf("%s after the end: %v, want ErrStopped", name, err)
			}
		}
		if len(c.leaves) > 0 {
			t.Errorf("a request that was not taken is told of %+v", c.leaves)
		}
	})
}

// TestSubmitWhileStopping: on the real clock, whatever the race between clients and the end,
// a request is either refused with ErrStopped or leaves.
func TestSubmitWhileStopping(t *testing.T) {
	for range 20 {
		s := start(t, config(), 0, []exec.Device{
			&scripted{step: 1000, script: counting}, &scripted{step: 1000, script: counting},
		}, func(c *exec.Config) { c.Gather = 0 })
		var wait sync.WaitGroup
		clients := make([]*client, 64)
		taken := make([]bool, len(clients))
		for i := range clients {
			wait.Go(func() {
				clients[i] = &client{t: t, id: uint64(i)}
				err := s.loops[0].Submit(&exec.Request{ID: uint64(i), Prompt: []int32{1}, TokensMax: 5, Sink: clients[i]})
				if taken[i] = err == nil; err != nil && !errors.Is(err, exec.ErrStopped) {
					t.Error(err)
				}
			})
		}
		s.stop()
		wait.Wait()
		for i, c := range clients {
			if (len(c.leaves) == 1) != taken[i] {
				t.Errorf("request %d: taken %v, ends %+v", i, taken[i], c.leaves)
			}
		}
	}
}

// TestSinkMaySubmitAndCancel: a Sink calls the loop from the loop's own goroutine, and far more
// often than any queue is long; nothing blocks.
func TestSinkMaySubmitAndCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, config(), 0, []exec.Device{&scripted{script: counting}, &scripted{}}, nil)
		r := &restless{loop: s.loops[0], left: map[core.Reason]int{}}
		r.submit(0)
		s.settle(time.Minute)
		s.stop()
		if r.left[core.ClientLeft] == 0 || r.left[core.Full] == 0 {
			t.Errorf("ends %v, want both cancelled and refused ones", r.left)
		}
		total := 0
		for _, n := range r.left {
			total += n
		}
		if total != int(r.next) {
			t.Errorf("%d submitted, %d have left", r.next, total)
		}
	})
}

// restless submits 1000 requests when it hears of a token, and cancels its own.
type restless struct {
	loop *exec.Loop
	next uint64
	left map[core.Reason]int
}

func (r *restless) submit(id uint64) {
	request := &exec.Request{ID: id, Prompt: []int32{1}, TokensMax: 9, Sink: r}
	r.next++
	if r.loop.Submit(request) != nil {
		r.next--
	}
}

// Token implements exec.Sink.
func (r *restless) Token(token core.Token) {
	if r.next < 5000 {
		for range 1000 {
			r.submit(r.next)
		}
	}
	_ = r.loop.Cancel(token.ID, core.ClientLeft)
}

// Left implements exec.Sink.
func (r *restless) Left(e core.Leave) { r.left[e.Reason]++ }
