package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// mixed is a run with a bit of everything: three models on two nodes, of which one is called for
// every token and one forgets, host time and eager launches, time at the front and before calls, delayed
// batching with a maximum wait, tiny pools, shared prefixes, and a trace with many arrivals at once.
func mixed(t testing.TB, seed uint64) sim.Config {
	t.Helper()
	weights, err := route.NewME([]float64{0.5, 0.3, 0.2})
	if err != nil {
		t.Fatal(err)
	}
	thresholds, err := core.FixedThresholds([]int{1, 2, 3}, 6)
	if err != nil {
		t.Fatal(err)
	}
	length, err := workload.Geometric(12, 1, 40)
	if err != nil {
		t.Fatal(err)
	}
	lengths := workload.Lengths{Prompt: length, Output: length, PrefixGroups: 3, PrefixTokens: 16}
	source, err := workload.NewGamma(seed, 60, 300, 2, lengths)
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	for r, ok := source.Next(); ok; r, ok = source.Next() {
		r.ArrivalNs -= r.ArrivalNs % (20 * ms) // clusters
		l.left = append(l.left, r)
	}
	c := small(l, outcome.Uniform{}, 6*ms, 10*ms, 28*ms)
	c.Seed = seed
	c.Core.Algorithm, c.Core.Policy = weights, core.Delayed{Thresholds: thresholds, MaxWait: 30 * ms}
	c.Core.LiveMax, c.Core.PageTokens, c.Core.Admission = 6, 4, core.Optimistic
	c.Core.Models[1].Node, c.Core.Models[2].Node = 1, 1
	c.Core.Models[1].TokenCalls, c.Core.Models[2].Forgets = true, true
	c.Core.FrontNs, c.Core.Models[0].DispatchNs, c.Core.Models[1].DispatchNs = 2*ms, ms/3, ms
	host := latency.Host{StepNs: 1000, RowNs: 100, CallNs: 5000, CallPerContextNs: 0.3}
	if c.Latency[1], err = latency.NewOverhead(c.Latency[1], host); err != nil {
		t.Fatal(err)
	}
	graphs := latency.Launching{
		Graphs: latency.DecodeGraphs, Rows: []int{2, 4}, EagerNs: 5 * ms, EagerFreshNs: 0.7,
	}
	if c.Latency[2], err = latency.NewLaunched(c.Latency[2], graphs); err != nil {
		t.Fatal(err)
	}
	for m := range c.Core.Models {
		c.Core.Models[m].Pages = 70
	}
	c.Meter = meter.New(meter.Config{Models: 3, Slots: 64, Nodes: 2})
	link, err := latency.NewLink(ms/2, 1e7)
	if err != nil {
		t.Fatal(err)
	}
	c.Link = func(int, int) latency.Link { return link }
	return c
}

// TestSameBytes is case 31 (c): the same run 100 times, on one processor and on eight, alone and
// beside seven others, writes the same bytes.
func TestSameBytes(t *testing.T) {
	want := log(t, mixed(t, 5))
	if other := log(t, mixed(t, 6)); bytes.Equal(want, other) {
		t.Fatal("another seed gives the same bytes")
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for _, processors := range []int{1, 8} {
		runtime.GOMAXPROCS(processors)
		for range 20 {
			if got := log(t, mixed(t, 5)); !bytes.Equal(got, want) {
				t.Fatalf("GOMAXPROCS %d: other bytes", processors)
			}
		}
		var runs sync.WaitGroup
		logs := make([][]byte, 8)
		for i := range logs {
			runs.Go(func() { logs[i] = log(t, mixed(t, 5)) })
		}
		runs.Wait()
		for i := range logs {
			if !bytes.Equal(logs[i], want) {
				t.Errorf("GOMAXPROCS %d: run %d of 8 at once: other bytes", processors, i)
			}
		}
	}
}

// TestEnginesAnswerAlike: what a call is and what an engine forgets changes no token, no move and no draft:
// verdicts are keyed by request and position. Only an engine that forgets computes anything again.
func TestEnginesAnswerAlike(t *testing.T) {
	counts := func(change func(c *core.Config)) (sum core.Counters) {
		c := mixed(t, 5)
		c.Core.Admission = core.Reserve // nothing is preempted
		for m := range c.Core.Models {
			c.Core.Models[m].TokenCalls, c.Core.Models[m].Forgets, c.Core.Models[m].DispatchNs = false, false, 0
		}
		c.Core.FrontNs = 0
		change(&c.Core)
		result, err := sim.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range result.Counters {
			sum.Committed += n.Committed
			sum.Handoffs += n.Handoffs
			sum.Dropped += n.Dropped
			sum.Finished += n.Finished
			sum.Recomputed += n.Recomputed
		}
		return sum
	}
	want := counts(func(*core.Config) {})
	if want.Finished != 60 || want.Recomputed != 0 || want.Handoffs == 0 {
		t.Fatalf("counts %+v, want 60 finished, none recomputed, some hand-offs", want)
	}
	for name, change := range map[string]func(c *core.Config){
		"static":        func(c *core.Config) { c.Static = true },
		"unmixed":       func(c *core.Config) { c.Unmixed = true },
		"ahead":         func(c *core.Config) { c.Ahead = true },
		"calls a token": func(c *core.Config) { c.Models[0].TokenCalls, c.Models[2].TokenCalls = true, true },
		"forgets":       func(c *core.Config) { c.Models[1].Forgets = true },
		"a front":       func(c *core.Config) { c.FrontNs = 7 * ms },
		"dispatch":      func(c *core.Config) { c.Models[0].DispatchNs, c.Models[2].DispatchNs = ms, 40*ms },
		"forgets tokens": func(c *core.Config) {
			c.Static, c.Models[0].TokenCalls, c.Models[0].Forgets = true, true, true
		},
	} {
		got := counts(change)
		if again := strings.HasPrefix(name, "forgets"); again != (got.Recomputed > 0) {
			t.Errorf("%s: %d tokens recomputed", name, got.Recomputed)
		}
		if got.Recomputed = 0; got != want {
			t.Errorf("%s: counts %+v, want %+v", name, got, want)
		}
	}
}

// TestOrderOfInsertion is case 31 (d): requests that arrive at one instant may come in any order
// from their source, and models may have any names.
func TestOrderOfInsertion(t *testing.T) {
	want := log(t, mixed(t, 5))
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		c := mixed(t, 5)
		all := c.Workload.(*list).left
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		slices.SortStableFunc(all, func(a, b workload.Request) int { return int(a.ArrivalNs - b.ArrivalNs) })
		if got := log(t, c); !bytes.Equal(got, want) {
			t.Error("requests of one instant in another order: other bytes")
		}
	}
	renamed := mixed(t, 5)
	renamed.Core.Models[0].Name, renamed.Core.Models[2].Name = "z", "a"
	if got := log(t, renamed); !bytes.Equal(turns(got), turns(want)) {
		t.Error("models with other names: other turns")
	}
}

// turns is a log of two nodes without its header.
func turns(log []byte) []byte { return bytes.SplitN(log, []byte("\n"), 4)[3] }

// nudged is Eager with wake-ups at which nothing happens.
type nudged struct{ every core.Time }

// Start asks for another turn and starts.
func (p nudged) Start(_ int, v *core.View) bool {
	v.WakeBy(v.Now() + p.every)
	return true
}

// TestNothingHappening is case 31 (a): three completions, arrivals or launches at one time have
// their order by kind and model, and an event that does nothing, at that time or another,
// changes nothing.
func TestNothingHappening(t *testing.T) {
	run := func(policy core.Policy) (did []string, woken int) {
		// Steps of 2, 3 and 6 ms coincide every 6 ms; arrivals come every 6 ms too.
		c := small(requests(12, 6*ms, 5, 9), outcome.Uniform{}, 2*ms, 3*ms, 6*ms)
		weights, err := route.NewME([]float64{0.4, 0.3, 0.3})
		if err != nil {
			t.Fatal(err)
		}
		c.Core.Algorithm, c.Core.Policy = weights, policy
		c.Observe = func(_ int, now core.Time, in []core.Event, out *core.Actions) {
			for _, e := range in {
				if e.Kind == core.Woken {
					woken++
				}
			}
			if len(out.Tokens)+len(out.Launches)+len(out.Leaves) > 0 {
				did = append(did, fmt.Sprintf("%d: %+v %+v %+v", now, out.Tokens, out.Launches, out.Leaves))
			}
		}
		if _, err := sim.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return did, woken
	}
	want, _ := run(core.Eager{})
	for _, every := range []core.Time{ms, ms / 3, 6 * ms} {
		got, woken := run(nudged{every})
		if woken == 0 || !slices.Equal(got, want) {
			t.Errorf("with %d wake-ups, every %d ns: other actions", woken, every)
		}
	}
}

// TestMillionSteps is case 31 (b): 1,000,000 steps of 0.1 ms end at exactly 100 s. Floats add up
// to 100000.00000133288 ms.
func TestMillionSteps(t *testing.T) {
	c := small(requests(1, 0, 1, 1_000_000), script(nothing), ms/10)
	c.Core.ContextMax, c.Core.Models[0].Pages = 1_000_001, 62_501
	result, summary := run(t, c)
	if result.End != 100_000*ms || summary.Total != 1_000_000 || summary.ThroughputTokS != 10_000 {
		t.Errorf("ends at %d ns with %d tokens, %v tok/s, want 100 s, 1,000,000, 10,000",
			result.End, summary.Total, summary.ThroughputTokS)
	}
}
