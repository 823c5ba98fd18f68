package sim_test

import (
	"fmt"
	"math"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/chain"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// TestThroughputIsThePredicted compares the simulator with the exact chain (TokenRouter, arXiv
// 2610.12242, appendix D; values of figure 10 computed exactly: 6.0 and 27.9 ms, p = 0.35).
func TestThroughputIsThePredicted(t *testing.T) {
	for _, c := range []struct {
		n          int
		thresholds []int
		want       float64
	}{
		{1, []int{1, 1}, 63.431652},
		{2, []int{1, 1}, 98.956913},
		{2, []int{1, 2}, 110.322694},
		{3, []int{1, 2}, 158.117117},
		{4, []int{1, 3}, 207.954041},
		{4, []int{1, 4}, 190.742172},
		{8, []int{1, 5}, 399.049502},
		{8, []int{1, 8}, 332.445060},
	} {
		config := r2r(t, c.n, c.thresholds, 600, 1000)
		_, s := run(t, config)
		got := s.ThroughputTokS
		t.Logf("n=%d %v: %.3f, want %.3f (%+.3f %%)", c.n, c.thresholds, got, c.want, 100*(got/c.want-1))
		if math.Abs(got/c.want-1) > 0.005 {
			t.Errorf("n=%d thresholds %v: %.3f tok/s, want %.3f", c.n, c.thresholds, got, c.want)
		}
	}
}

// TestSimulatorFollowsTheChain compares throughput, utilisation, batches, waits and shares with the
// exact chain, for ME and for general matrices, with step times that depend on the batch.
func TestSimulatorFollowsTheChain(t *testing.T) {
	uniform := func(weights ...float64) chain.Model {
		return chain.Mixture(weights, chain.Constant(6*ms), chain.Constant(10*ms), chain.Constant(28*ms))
	}
	general := chain.Model{
		Routing: [][]float64{{0.5, 0.3, 0.2}, {0.6, 0.2, 0.2}, {0.3, 0.3, 0.4}},
		Commit:  [][]float64{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}},
		Step:    []chain.StepTime{chain.Constant(6 * ms), chain.Affine(8*ms, 2*ms), chain.Constant(28 * ms)},
	}
	r2r := chain.R2R(0.35, chain.Affine(5*ms, ms), chain.Affine(20*ms, 4*ms))
	for _, c := range []struct {
		name       string
		model      chain.Model
		n          int
		thresholds []int
		want       float64 // known from elsewhere, or 0
	}{
		// chain.json: an independent computation of ME, three models.
		{"ME", uniform(0.5, 0.3, 0.2), 4, []int{1, 1, 1}, 282.311151},
		{"ME", uniform(0.5, 0.3, 0.2), 4, []int{3, 1, 2}, 197.843061},
		{"ME", uniform(0.5, 0.3, 0.2), 4, []int{2, 3, 1}, 166.770239},
		{"general", general, 3, []int{1, 1, 1}, 0},
		{"general", general, 4, []int{2, 1, 2}, 0},
		{"R2R with affine steps", r2r, 5, []int{1, 3}, 0},
		{"R2R with affine steps", r2r, 6, []int{2, 2}, 0},
	} {
		t.Run(fmt.Sprintf("%s/%d%v", c.name, c.n, c.thresholds), func(t *testing.T) {
			exact, err := c.model.Solve(c.n, c.thresholds, chain.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if c.want > 0 && math.Abs(exact.ThroughputTokS-c.want) > 1e-6 {
				t.Errorf("the chain says %v tok/s, want %v", exact.ThroughputTokS, c.want)
			}
			_, s := run(t, asSimulated(t, c.model, c.n, c.thresholds))
			near(t, "throughput", s.ThroughputTokS, exact.ThroughputTokS, 0.005)
			for m, want := range exact.Models {
				got := s.Models[m]
				near(t, fmt.Sprintf("utilisation of %d", m), got.Utilisation, want.Utilisation, 0.01)
				near(t, fmt.Sprintf("batch of %d", m), got.BatchMean, want.MeanBatch, 0.01)
				near(t, fmt.Sprintf("queue time at %d", m), got.QueueMeanNs, want.MeanWaitNs, 0.02)
				near(t, fmt.Sprintf("share of %d", m), got.Share, want.TokenShare, 0.01)
			}
		})
	}
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*math.Abs(want) {
		t.Errorf("%s: simulated %v, the chain says %v", what, got, want)
	}
}

// asSimulated is a closed loop of the chain's model.
func asSimulated(t *testing.T, m chain.Model, n int, thresholds []int) sim.Config {
	t.Helper()
	b, err := core.FixedThresholds(thresholds, n)
	if err != nil {
		t.Fatal(err)
	}
	algorithm, err := route.NewMatrix(m.Routing, m.Commit)
	if err != nil {
		t.Fatal(err)
	}
	length, err := workload.Fixed(1500)
	if err != nil {
		t.Fatal(err)
	}
	source, err := workload.NewClosed(3, 500, workload.Lengths{Prompt: length, Output: length})
	if err != nil {
		t.Fatal(err)
	}
	steps := make([]core.Time, len(m.Step))
	c := small(source, outcome.Uniform{}, steps...)
	for i, step := range m.Step {
		affine, err := latency.NewAffine(latency.Coefficients{
			BaseNs: float64(step.BaseNs), PerRowNs: float64(step.PerRowNs),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Latency[i], c.Core.Models[i].Pages = affine, n*200
	}
	c.Core.Algorithm, c.Core.Policy = algorithm, core.Delayed{Thresholds: b}
	c.Core.LiveMax, c.Core.ContextMax, c.Closed, c.Steady, c.Seed = n, 3000, true, true, 3
	c.Meter = meter.New(meter.Config{Models: len(m.Step), Slots: 64, WarmupRequests: n})
	return c
}
