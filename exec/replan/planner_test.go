package replan

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/chain"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/exec"
)

// TestBest: at p = 0.35 and steps of 6.0 and 27.9 ms the best threshold of the large model at N = 8 is 5,
// with 399.05 tok/s, at N = 4 3, with 207.95 (exact chain of 0.3 ms ticks, with the small one's held at 1).
func TestBest(t *testing.T) {
	p := planner(t, 8)
	watch(p, 4, 8)
	f := p.seen.figures()
	if got := f.Routing[0][1]; math.Abs(got-0.35) > 0.06 {
		t.Fatalf("p = %v, want about 0.35", got)
	}
	f.Routing[0] = []float64{0.65, 0.35}
	for _, c := range []struct {
		n    int
		want []int
		rate float64
	}{{4, []int{1, 3}, 207.954}, {8, []int{1, 5}, 399.050}} {
		s, err := best(t.Context(), f, c.n)
		if err != nil || !slices.Equal(s.thresholds, c.want) || math.Abs(s.rateTokS/c.rate-1) > 1e-3 {
			t.Errorf("N = %d: %+v, %v, want %v and %v tok/s", c.n, s, err, c.want, c.rate)
		}
	}
	p.plan(t.Context())
	s := p.State()
	if s.Live != 8 || !s.Planned || s.Thresholds[0] != 1 || s.Thresholds[1] < 3 || s.Err != nil {
		t.Errorf("state %+v, want thresholds near 1,5 at N = 8", s)
	}
	table := p.force.Load().table
	for n := 1; n <= 8; n++ {
		if err := core.Feasible(table.Row(n), n); err != nil {
			t.Errorf("N = %d: %v", n, err)
		}
	}
	// Between the N that have come up, the next smaller one's thresholds hold; below the first, 1.
	if !slices.Equal(table.Row(7), table.Row(4)) || !slices.Equal(table.Row(3), []int{1, 1}) {
		t.Errorf("thresholds of N = 3 to 7: %v", table.Rows()[2:7])
	}
}

// watch shows p verdicts with p = 0.35 and steps of 6.0 and 27.9 ms, at each N of live in turn.
func watch(p *Planner, live ...int) {
	for i := range 4000 {
		to := 0
		if keyed.Float(keyed.Hash(1, uint64(i), 0, 0, keyed.Route)) < 0.35 {
			to = 1
		}
		p.move(0, to, to == 0)
		p.move(1, 0, true)
	}
	at := core.Time(0)
	for i := range 100 {
		for m, ns := range []core.Time{6e6, 27.9e6} {
			rows := slices.Repeat([]core.Row{{Start: 5, Fresh: 1, Head: true}}, 1+i%8)
			launch := core.Launch{Model: m, Rows: rows, Fresh: int64(len(rows))}
			p.Observe(at, nil, &core.Actions{Launches: []core.Launch{launch}}, live[i%len(live)])
			at += ns
			p.Observe(at, []core.Event{{Kind: core.BatchDone, Model: m}}, &core.Actions{}, live[i%len(live)])
		}
	}
}

// TestOthersAreStillPlanned: N = 64 has too many states for a plan that is made in passing. It says so, and
// has the thresholds of N = 4.
func TestOthersAreStillPlanned(t *testing.T) {
	p := planner(t, 64)
	watch(p, 4, 64)
	p.plan(t.Context())
	s := p.State()
	if s.Live != 64 || s.Planned || s.Thresholds[1] < 2 || s.Err == nil {
		t.Errorf("state %+v, want an error, and the thresholds of N = 4", s)
	}
}

func planner(t *testing.T, live int) *Planner {
	t.Helper()
	p, err := New(Config{Models: 2, LiveMax: live})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestWorthwhile: where waiting for four at the large model promises 0.14 % more than not waiting (10,430.84
// to 10,416.37 tok/s, exact chain), nobody waits.
func TestWorthwhile(t *testing.T) {
	f := &Figures{
		Routing: [][]float64{{0.8, 0.2}, {0.4, 0.6}}, Commit: [][]float64{{1, 0}, {1, 1}},
		Step: []chain.StepTime{chain.Constant(2e5), chain.Constant(13e5)},
	}
	s, err := best(t.Context(), f, 8)
	if err != nil || !slices.Equal(s.thresholds, []int{1, 1}) || math.Abs(s.rateTokS-10416.3657) > 1e-3 {
		t.Errorf("%+v, %v, want thresholds 1,1 and 10416.3657 tok/s", s, err)
	}
}

// TestPatience: with thresholds of 5 at the large model, calls that see no fifth are made after four of its
// steps, or after MaxWait if that is given.
func TestPatience(t *testing.T) {
	for _, c := range []struct{ max, want core.Time }{{0, 4 * 28e6}, {7e6, 7e6}} {
		p, err := New(Config{Models: 2, LiveMax: 8, MaxWait: c.max})
		if err != nil {
			t.Fatal(err)
		}
		p.planned = &Figures{Step: []chain.StepTime{chain.Constant(6e6), chain.Constant(28e6)}}
		if err := p.take(8, set{thresholds: []int{1, 5}}); err != nil {
			t.Fatal(err)
		}
		if got := p.force.Load().waits[1]; got != c.want {
			t.Errorf("MaxWait %d: waits %d ns, want %d", c.max, got, c.want)
		}
	}
}

// TestSteps: lines through what was seen; one size alone gives a constant, and no line falls.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		name      string
		at        map[float64]float64
		base, row int64
	}{
		{"line", map[float64]float64{1: 12, 2: 14, 8: 26}, 10, 2},
		{"one size", map[float64]float64{4: 20}, 20, 0},
		{"falling", map[float64]float64{1: 30, 3: 10}, 20, 0},
		{"steeper than from 0", map[float64]float64{1: 1, 3: 30}, 1, 8},
	} {
		var s steps
		for x, y := range c.at {
			s.add(x, y)
		}
		got := s.line()
		// The weights of passes differ by 1/memory.
		if math.Abs(float64(got.BaseNs-c.base)) > 1 || math.Abs(float64(got.PerRowNs-c.row)) > 1 {
			t.Errorf("%s: %d + %d rows, want %d + %d", c.name, got.BaseNs, got.PerRowNs, c.base, c.row)
		}
	}
}

// TestMoved: thresholds are planned again when a value is off by more than a tenth.
func TestMoved(t *testing.T) {
	of := func(p, step float64) *Figures {
		var s steps
		s.add(1, step)
		return &Figures{Routing: [][]float64{{1 - p, p}, {1, 0}}, Step: slices.Repeat(
			[]chain.StepTime{s.line()}, 2)}
	}
	for _, c := range []struct {
		name    string
		p, step float64
		want    bool
	}{
		{"same", 0.3, 1e6, false}, {"near", 0.32, 1.09e6, false}, {"p", 0.34, 1e6, true}, {"step", 0.3, 1.2e6,
			true},
		{"faster", 0.3, 0.8e6, true},
	} {
		if got := moved(of(0.3, 1e6), of(c.p, c.step)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// closed submits a request again and again.
type closed struct {
	loop *exec.Loop
	id   uint64
	done *sync.WaitGroup
	left int
}

func (c *closed) Token(core.Token) {}

func (c *closed) Left(core.Leave) {
	if c.left--; c.left == 0 {
		c.done.Done()
		return
	}
	c.submit()
}

func (c *closed) submit() {
	c.id += 100
	_ = c.loop.Submit(&exec.Request{ID: c.id, Prompt: []int32{1}, TokensMax: 40, Sink: c})
}

// TestLive: in a running loop the large model comes to wait, all requests end, and throughput is better than
// without waiting: 8 requests at steps of 6 and 28 ms gain 8 % by the chain.
func TestLive(t *testing.T) {
	took := func(t *testing.T, plan bool) (seconds float64, state State) {
		synctest.Test(t, func(t *testing.T) {
			p := planner(t, 8)
			c := core.Config{
				Models:    []core.Model{{Name: "small", Pages: 64}, {Name: "large", Pages: 64}},
				Algorithm: route.R2R{Threshold: 0.65}, Policy: core.Eager{}, Admission: core.Reserve,
				Requests: 16, LiveMax: 8, ContextMax: 64, PageTokens: 16,
			}
			if plan {
				c.Policy, c.Algorithm = p, p.Watched(c.Algorithm)
			}
			var loop *exec.Loop
			device := func(m int, step core.Time) exec.Device {
				return &exec.Scripted{
					Now:    func() core.Time { return loop.Now() },
					StepNs: func(core.Launch) core.Time { return step },
					Fill: func(l core.Launch, results []core.Result) error {
						for i, row := range l.Rows {
							at := uint32(row.Start + row.Fresh)
							results[i].Score = keyed.Float(keyed.Hash(1, row.ID, at, uint32(m), keyed.Route))
						}
						return nil
					},
				}
			}
			loop, err := exec.New(exec.Config{
				Core: c, Devices: []exec.Device{device(0, 6e6), device(1, 28e6)}, Gather: 1,
				Observe: func(_ int, now core.Time, in []core.Event, out *core.Actions) {
					p.Observe(now, in, out, loop.Scheduler().Live())
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, end := context.WithCancel(t.Context())
			var running, done sync.WaitGroup
			running.Go(func() { _ = loop.Run(ctx) })
			running.Go(func() { p.Run(ctx) })
			for i := range 8 {
				done.Add(1)
				s := &closed{loop: loop, id: uint64(i), done: &done, left: 20}
				s.submit()
			}
			begun := time.Now()
			done.Wait()
			seconds, state = time.Since(begun).Seconds(), p.State()
			end()
			running.Wait()
		})
		return seconds, state
	}
	eager, _ := took(t, false)
	planned, state := took(t, true)
	if state.Figures == nil || math.Abs(state.Figures.Routing[0][1]-0.35) > 0.1 || planned > 0.97*eager {
		t.Errorf("planned %.2f s, eager %.2f s, want 3 %% less at least; state %+v", planned, eager, state)
	}
}
