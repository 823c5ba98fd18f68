package core_test

import (
	"fmt"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// loop is a closed loop of N requests without a single allocation of its own: who leaves is
// replaced in the next turn. All nodes are stepped in the same instant; messages take none.
type loop struct {
	config  core.Config
	nodes   []*loopNode
	next    uint64 // request ID
	now     core.Time
	prefix  []uint64
	tokens  uint64
	longest int32 // output
}

type loopNode struct {
	s        *core.Scheduler
	out      core.Actions
	in       []core.Event
	doneAt   []core.Time
	results  [][]core.Result
	subs     []core.Submission
	handoffs []core.Handoff
	used     int // handoffs in in
}

func newLoop(t testing.TB, config core.Config, n int) *loop {
	t.Helper()
	l := &loop{config: config, longest: 64}
	nodes := 1
	for _, m := range config.Models {
		nodes = max(nodes, m.Node+1)
	}
	for id := range nodes {
		config.Node = id
		s, err := core.New(config)
		if err != nil {
			t.Fatal(err)
		}
		ln := &loopNode{
			s: s, in: make([]core.Event, 0, 16*n+1),
			doneAt: make([]core.Time, len(config.Models), len(config.Models)+1),
			subs:   make([]core.Submission, 0, n), handoffs: make([]core.Handoff, 16*n),
		}
		for range config.Models {
			ln.results = append(ln.results, make([]core.Result, config.Requests))
		}
		l.nodes = append(l.nodes, ln)
	}
	l.prefix = []uint64{71}
	for range n {
		l.submit()
	}
	return l
}

func (l *loop) submit() {
	front := l.nodes[0]
	l.next++
	sub := core.Submission{ID: l.next, PromptTokens: 10 + int32(l.next%30),
		TokensMax: 1 + int32(l.next*7%uint64(l.longest))}
	if l.next%2 == 0 {
		sub.Prefix = l.prefix
	}
	front.subs = append(front.subs, sub)
	front.in = append(front.in, core.Event{Kind: core.Submitted, Submission: &front.subs[len(front.subs)-1]})
}

// step handles the next instant at which a launch ends, a turn is asked for or something waits to be
// handed in.
func (l *loop) step() {
	pending := false
	earliest := core.Time(0)
	for _, n := range l.nodes {
		pending = pending || len(n.in) > 0
		for _, at := range append(n.doneAt, n.out.Wake) {
			if at != 0 && (earliest == 0 || at < earliest) {
				earliest = at
			}
		}
	}
	if !pending {
		l.now = earliest
	}
	for i, n := range l.nodes {
		l.turn(i, n)
	}
}

func (l *loop) turn(id int, n *loopNode) {
	for m, at := range n.doneAt {
		if at != 0 && at == l.now {
			n.doneAt[m] = 0
			n.in = append(n.in, core.Event{Kind: core.BatchDone, Model: m, Results: n.results[m]})
		}
	}
	if n.out.Wake != 0 && n.out.Wake <= l.now {
		n.in = append(n.in, core.Event{Kind: core.Woken})
	}
	if len(n.in) == 0 {
		return
	}
	n.s.Turn(l.now, n.in, &n.out)
	n.in, n.used, n.subs = n.in[:0], 0, n.subs[:0]
	l.tokens += uint64(len(n.out.Tokens))
	for i := range n.out.Launches {
		launch := &n.out.Launches[i]
		n.doneAt[launch.Model] = l.now + core.Time(6+22*launch.Model)*ms
		n.results[launch.Model] = n.results[launch.Model][:len(launch.Rows)]
		for j := range launch.Rows {
			row := &launch.Rows[j]
			r := &n.results[launch.Model][j]
			*r = core.Result{Draw: float64(hash2(row.ID, uint64(row.Start+row.Fresh))>>11) / (1 << 53)}
		}
	}
	for i := range n.out.Sends {
		to := l.nodes[l.config.Models[n.out.Sends[i].To].Node]
		to.handoffs[to.used] = n.out.Sends[i]
		to.in = append(to.in, core.Event{Kind: core.Arrived, Handoff: &to.handoffs[to.used]})
		to.used++
	}
	for i := range n.out.News {
		for j, to := range l.nodes {
			if j != id {
				to.in = append(to.in, core.Event{Kind: core.NewsCame, News: n.out.News[i]})
			}
		}
	}
	if id == 0 {
		for range n.out.Leaves {
			l.submit()
		}
	}
}

func hash2(a, b uint64) uint64 {
	h := (a ^ 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93
	h = (h ^ h>>32 ^ b) * 0xD6E8FEB86659FD93
	return (h ^ h>>29) * 0xA0761D6478BD642F
}

// r2r is R2R as published: routing probability 0.35 (TokenRouter, appendix D).
func r2r(t testing.TB) core.Algorithm {
	t.Helper()
	a, err := route.NewMatrix([][]float64{{0.65, 0.35}, {1, 0}}, [][]float64{{1, 0}, {1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func loopConfig(t testing.TB, n int, policy core.Policy) core.Config {
	return core.Config{
		Models: models(2), Algorithm: r2r(t), Policy: policy, Admission: core.Reserve, Requests: 2 * n, LiveMax: n,
		ContextMax: 256, PageTokens: 8,
	}
}

// TestNoAllocation: after warm-up a turn allocates nothing (I12): at several sizes, under
// all policies, with token budgets, prefixes, preemption, other kinds of engines, and between two
// nodes.
func TestNoAllocation(t *testing.T) {
	for _, n := range []int{1, 4, 16, 64} {
		delayed := core.Delayed{Thresholds: fixed(t, n, 1, max(1, n/2)), MaxWait: 100 * ms}
		for _, c := range []struct {
			name   string
			policy core.Policy
			change func(c *core.Config)
		}{
			{"step-sync", core.StepSync{}, nil},
			{"model-sync", core.ModelSync{}, nil},
			{"eager", core.Eager{}, nil},
			{"delayed", delayed, nil},
			{"budget", core.Eager{}, func(c *core.Config) { c.TokenBudget = 24 }},
			{"rows", core.Eager{}, func(c *core.Config) { c.Models[0].RowsMax = 2 }},
			{"static", delayed, func(c *core.Config) { c.Static = true }},
			{"unmixed", delayed, func(c *core.Config) { c.Unmixed = true }},
			{"ahead", core.Eager{}, func(c *core.Config) { c.Ahead = true }},
			{"calls a token", delayed, func(c *core.Config) {
				c.Models[0].TokenCalls, c.Models[1].TokenCalls = true, true
			}},
			{"forgets tokens", delayed, func(c *core.Config) {
				c.Models[0].TokenCalls, c.Models[0].Forgets = true, true
			}},
			{"calls and a front that take time", delayed, func(c *core.Config) {
				c.FrontNs, c.Models[0].DispatchNs, c.Models[1].DispatchNs = 9*ms, ms, 3*ms
				c.Models[0].TokenCalls = true
			}},
			{"forgets visits", core.Eager{}, func(c *core.Config) {
				c.Models[0].Forgets, c.Models[1].Forgets = true, true
			}},
			{"tight reserve", delayed, func(c *core.Config) { c.Models[0].Pages, c.Models[1].Pages = 30+4*n, 30+4*n }},
			{"preemption", delayed, func(c *core.Config) {
				c.Admission = core.Optimistic
				c.Models[0].Pages, c.Models[1].Pages = 14+4*n, 14+4*n
			}},
			{"two nodes", delayed, func(c *core.Config) { c.Models[1].Node = 1 }},
			{"two nodes, preemption", delayed, func(c *core.Config) {
				c.Admission, c.Models[1].Node = core.Optimistic, 1
				c.Models[0].Pages, c.Models[1].Pages = 14+4*n, 14+4*n
			}},
		} {
			t.Run(fmt.Sprintf("%s N=%d", c.name, n), func(t *testing.T) {
				config := loopConfig(t, n, c.policy)
				if c.change != nil {
					c.change(&config)
				}
				l := newLoop(t, config, n)
				for range 5000 {
					l.step()
				}
				before := l.tokens
				if allocs := testing.AllocsPerRun(2000, l.step); allocs != 0 {
					t.Errorf("%v allocations a step", allocs)
				}
				if l.tokens == before {
					t.Error("no token was committed meanwhile")
				}
				for _, node := range l.nodes {
					if err := node.s.Check(); err != nil {
						t.Error(err)
					}
				}
				if n == 64 && config.Admission == core.Optimistic && l.nodes[0].s.Counters().Preempted == 0 {
					t.Error("nothing was preempted: the case tests nothing")
				}
			})
		}
	}
}

// BenchmarkTurn is the published R2R loop: tokens/s is committed tokens a second of one core.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{4, 64} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			config := loopConfig(b, n, core.Delayed{Thresholds: fixed(b, n, 1, max(1, 5*n/8))})
			config.ContextMax, config.PageTokens = 1024, 16
			config.Models[0].Pages, config.Models[1].Pages = 100*n, 100*n
			l := newLoop(b, config, n)
			l.longest = 512
			for range 5000 {
				l.step()
			}
			before := l.tokens
			b.ReportAllocs()
			for b.Loop() {
				l.step()
			}
			b.ReportMetric(float64(l.tokens-before)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
