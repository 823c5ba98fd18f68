package sim_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/chain"
	"tokenrouter/core/meter"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// TestBeside: steps of 10 and 20 ms alone take 1.5 and 1.25 times as long while the other model runs.
// Request 0 is at the SLM from 0 to 10 ms and at the LLM from then on; request 1 comes to the SLM later.
func TestBeside(t *testing.T) {
	first := func(id uint64, _ int32, model int) core.Result {
		if id == 0 && model == 0 {
			return core.Result{Score: 1}
		}
		return core.Result{}
	}
	for _, c := range []struct {
		name          string
		arrival       core.Time
		tokens        int32
		factors       []float64
		first, second core.Time // ends, ns
	}{
		{"no factors", 14 * ms, 1, nil, 30 * ms, 24 * ms},
		{"none above 1", 14 * ms, 1, []float64{1, 1}, 30 * ms, 24 * ms},
		{"never together", 30 * ms, 1, []float64{1.5, 1.25}, 30 * ms, 40 * ms},
		// The SLM ends at 14 + 1.5 * 10 = 29. By then the LLM has done 4 alone and 15 / 1.25 = 12 beside, and
		// 4 are left.
		{"SLM within", 14 * ms, 1, []float64{1.5, 1.25}, 33 * ms, 29 * ms},
		// The LLM has 5 left at 25 and ends at 25 + 1.25 * 5 = 31.25; the SLM has done 6.25 / 1.5 by then.
		{"LLM ends first", 25 * ms, 1, []float64{1.5, 1.25}, 31_250_000, 37_083_333},
		// At 29 the SLM goes on at once, so that the LLM ends at 14 + 1.25 * 16 = 34; of the SLM's second step
		// 5 / 1.5 is done by then, and the third is alone.
		{"SLM again at once", 14 * ms, 3, []float64{1.5, 1.25}, 34 * ms, 50_666_667},
		{"one of them", 14 * ms, 1, []float64{1, 1.25}, 32 * ms, 24 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := small(&list{left: []workload.Request{
				{ID: 0, PromptTokens: 2, OutputTokens: 1},
				{ID: 1, ArrivalNs: c.arrival, PromptTokens: 2, OutputTokens: c.tokens},
			}}, script(first), 10*ms, 20*ms)
			config.Beside = c.factors
			var ends [2]core.Time
			config.Meter = meter.New(meter.Config{Models: 2, Slots: 64,
				OnRequest: func(r *meter.Request) { ends[r.ID] = r.Left }})
			run(t, config)
			if diff := cmp.Diff([2]core.Time{c.first, c.second}, ends); diff != "" {
				t.Errorf("ends of the requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBesideNobody: models on nodes of their own do not slow each other, and factors of 1 change no byte.
func TestBesideNobody(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		factors []float64
	}{{"factors of 1", 1, []float64{1, 1}}, {"own nodes", 2, []float64{3, 2}}} {
		config := func(factors []float64) sim.Config {
			c1 := small(requests(20, 10*ms, 3, 20), outcome.Uniform{}, 6*ms, 28*ms)
			c1.Core.Models[1].Node = c.nodes - 1
			link, err := latency.NewLink(1000, 1e9)
			if err != nil {
				t.Fatal(err)
			}
			c1.Link = func(int, int) latency.Link { return link }
			c1.Beside, c1.Meter = factors, nil
			return c1
		}
		if !bytes.Equal(log(t, config(nil)), log(t, config(c.factors))) {
			t.Errorf("%s: another turn log", c.name)
		}
	}
}

func TestBesideRefused(t *testing.T) {
	for _, c := range []struct {
		factors []float64
		step    core.Time
		want    string
	}{
		{[]float64{1}, ms, "1 contention factors for 2 models"},
		{[]float64{1, 0.5}, ms, "factor of model 1 = 0.5, want 1 to 1000"},
		{[]float64{1, 1001}, ms, "factor of model 1 = 1001, want 1 to 1000"},
		{[]float64{2, 1}, latency.MaxStepNs, "latency of SLM: a launch of 9007199254740992 ns alone is too long"},
	} {
		config := small(requests(1, 0, 2, 1), script(nothing), c.step, ms)
		config.Beside = c.factors
		if _, err := sim.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("factors %v: error %v, want %q in it", c.factors, err, c.want)
		}
	}
}

// TestBesideLikeTheChain: the chain rounds how far a launch has got to a hundredth of a small step, the
// simulator to nothing.
func TestBesideLikeTheChain(t *testing.T) {
	for _, c := range []struct {
		n, threshold int
		factors      []float64
	}{{2, 1, []float64{1.5, 1.3}}, {4, 3, []float64{1.5, 1.3}}, {8, 5, []float64{1.2, 1.6}}} {
		config := r2r(t, c.n, []int{1, c.threshold}, 400, 1000)
		config.Beside = c.factors
		_, s := run(t, config)
		m := chain.R2R(0.35, chain.Constant(6*ms), chain.Constant(27_900_000))
		free, err := m.Solve(c.n, []int{1, c.threshold}, chain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Beside = c.factors
		got, err := m.Solve(c.n, []int{1, c.threshold}, chain.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if off := got.ThroughputTokS/s.ThroughputTokS - 1; math.Abs(off) > 0.01 ||
			s.ThroughputTokS > 0.92*free.ThroughputTokS {
			t.Errorf("N = %d, B1 = %d: the chain says %.1f tok/s, %.1f without contention, the simulator %.1f",
				c.n, c.threshold, got.ThroughputTokS, free.ThroughputTokS, s.ThroughputTokS)
		}
		for i, f := range got.Models {
			if off := f.Utilisation - s.Models[i].Utilisation; math.Abs(off) > 0.01 {
				t.Errorf("N = %d, B1 = %d: utilisation of model %d %.3f by the chain, %.3f", c.n, c.threshold, i,
					f.Utilisation, s.Models[i].Utilisation)
			}
		}
	}
}
