package chain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
)

// solve returns the Solution or ends the test.
func solve(t *testing.T, m Model, n int, b ...int) *Solution {
	t.Helper()
	s, err := m.Solve(n, b, Options{})
	if err != nil {
		t.Fatalf("N=%d B=%v: %v", n, b, err)
	}
	if !(s.ErrorBound < 1e-9) {
		t.Errorf("N=%d B=%v: error bound %g, want below 1e-9", n, b, s.ErrorBound)
	}
	return s
}

// TestOneRequest holds the closed form of one request, 1/(a + p b): nothing ever waits. Counting dropped
// drafts would give 85.63 tok/s at p = 0.35.
func TestOneRequest(t *testing.T) {
	for _, c := range []struct{ p, want float64 }{{0, 166.667}, {0.35, 63.432}, {1, 29.499}} {
		s := solve(t, figure10(c.p), 1, 1, 1)
		within(t, fmt.Sprintf("p=%v, published", c.p), s.ThroughputTokS, c.want, 2e-5)
		within(t, fmt.Sprintf("p=%v", c.p), s.ThroughputTokS, 1e3/(6+c.p*27.9), 1e-14)
		within(t, "large share", s.Models[1].TokenShare, c.p, 1e-14)
	}
}

// TestLargeThresholds holds the list of the field's case 38 for ticks (20, 93), p = 0.35, small threshold 1.
func TestLargeThresholds(t *testing.T) {
	for _, c := range []struct {
		n, best int
		tokS    []float64
	}{
		{2, 2, []float64{98.957, 110.323}},
		{4, 3, []float64{187.190, 195.439, 207.954, 190.742}},
		{8, 5, []float64{369.207, 370.581, 374.417, 386.799, 399.050, 397.748, 381.132, 332.445}},
	} {
		r, err := Search(context.Background(), figure10(0.35), c.n, []int{1, 0}, SearchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Points[r.Best].Thresholds[1]; got != c.best {
			t.Errorf("N=%d: best large threshold %d, want %d", c.n, got, c.best)
		}
		for i, want := range c.tokS {
			if got := r.Points[i].Solution.ThroughputTokS; math.Abs(got-want) > 0.0005 {
				t.Errorf("N=%d B=%v: %.4f tok/s, want %.3f", c.n, r.Points[i].Thresholds, got, want)
			}
		}
	}
}

// TestBest holds the best sets over all feasible ones: those of figure 10, of N = 8, and of the three-model
// mixture (TokenRouter, arXiv 2610.12242, section 5 and appendix D).
func TestBest(t *testing.T) {
	mixture := Mixture([]float64{0.5, 0.3, 0.2}, Constant(6e6), Constant(10e6), Constant(28e6))
	for _, c := range []struct {
		name string
		m    Model
		n    int
		sets int
		best []int
		tokS float64
	}{
		{"R2R", figure10(0.35), 2, 3, []int{1, 2}, 110.322694},
		{"R2R", figure10(0.35), 3, 6, []int{1, 2}, 158.117117},
		{"R2R", figure10(0.35), 4, 10, []int{1, 3}, 207.954041},
		{"R2R", figure10(0.35), 8, 36, []int{1, 5}, 399.049502},
		{"exact fractions", R2R(0.35, Constant(1e6), Constant(3e6)), 3, 6, []int{1, 2}, 1251.182},
		{"ME", mixture, 4, 20, []int{1, 1, 1}, 282.311151},
	} {
		for _, workers := range []int{1, 3} {
			r, err := Search(context.Background(), c.m, c.n, nil, SearchOptions{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			best := r.Points[r.Best]
			if len(r.Points) != c.sets || !slices.Equal(best.Thresholds, c.best) {
				t.Errorf("%s N=%d: best %v of %d sets, want %v of %d", c.name, c.n, best.Thresholds, len(r.Points),
					c.best, c.sets)
			}
			within(t, fmt.Sprintf("%s N=%d", c.name, c.n), best.Solution.ThroughputTokS, c.tokS, 1e-6)
		}
	}
}

// TestPlan holds the best thresholds by N of figure 10, and those of N = 8.
func TestPlan(t *testing.T) {
	last := [2]int{}
	plan, err := Plan(context.Background(), figure10(0.35), 8, []int{1, 0}, SearchOptions{
		Progress: func(done, total int) { last = [2]int{done, total} }})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 8: 5} {
		if !slices.Equal(plan[n-1], []int{1, want}) {
			t.Errorf("N=%d: %v, want [1 %d]", n, plan[n-1], want)
		}
	}
	if len(plan) != 8 || last != [2]int{36, 36} {
		t.Errorf("%d rows, last progress %v, want 8 rows and 36 of 36", len(plan), last)
	}
	_, err = Plan(context.Background(), figure10(0.35), 4, []int{1, 2}, SearchOptions{})
	wantError(t, err, "(2-1) = 1, want below N = 1")
	_, err = Plan(context.Background(), figure10(0.35), 0, nil, SearchOptions{})
	wantError(t, err, "N = 0")
}

// TestTie takes the first of equal sets: with p = 0 the large threshold cannot matter.
func TestTie(t *testing.T) {
	r, err := Search(context.Background(), figure10(0), 4, []int{1, 0}, SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Best != 0 {
		t.Errorf("best %v, want the first", r.Points[r.Best].Thresholds)
	}
	symmetric := Model{Routing: [][]float64{{0.3, 0.7}, {0.7, 0.3}}, Commit: [][]float64{{1, 1}, {1, 1}},
		Step: []StepTime{Constant(5), Constant(5)}}
	r, err = Search(context.Background(), symmetric, 5, nil, SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	best := r.Points[r.Best].Thresholds
	if best[0] > best[1] {
		t.Errorf("best %v of a symmetric model, want the first of the two", best)
	}
}

// TestSearchListing checks marks, progress, cancellation and errors of a search.
func TestSearchListing(t *testing.T) {
	var calls []int
	r, err := Search(context.Background(), figure10(0.35), 3, nil, SearchOptions{Infeasible: true,
		Progress: func(done, total int) { calls = append(calls, done*100+total) }})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range r.Points {
		got = append(got, fmt.Sprint(p.Thresholds, p.Feasible, p.Solution != nil))
	}
	want := []string{"[1 1] true true", "[1 2] true true", "[1 3] true true", "[2 1] true true",
		"[2 2] true true", "[2 3] false false", "[3 1] true true", "[3 2] false false", "[3 3] false false"}
	if !slices.Equal(got, want) {
		t.Errorf("points %v, want %v", got, want)
	}
	if !slices.Equal(r.Points[r.Best].Thresholds, []int{1, 2}) {
		t.Errorf("best %v, want [1 2]", r.Points[r.Best].Thresholds)
	}
	if !slices.Equal(calls, []int{106, 206, 306, 406, 506, 606}) {
		t.Errorf("progress %v", calls)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Search(ended, figure10(0.35), 3, nil, SearchOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, err = Search(context.Background(), figure10(0.35), 4, []int{2, 4}, SearchOptions{})
	wantError(t, err, "(2-1)+(4-1) = 4, want below N = 4")
	_, err = Search(context.Background(), figure10(0.35), 4, nil, SearchOptions{Options: Options{MaxStates: 300},
		Workers: 2})
	wantError(t, err, "thresholds 1,1: chain: at least 301 states")
	_, err = Search(context.Background(), figure10(0.35), 4, nil, SearchOptions{Workers: -1})
	wantError(t, err, "-1 workers")
	_, err = Search(context.Background(), figure10(2), 4, nil, SearchOptions{})
	wantError(t, err, "routing[0][0] = -1")
}

// TestOneModel holds the trivial chain: one model, all requests in step.
func TestOneModel(t *testing.T) {
	m := Model{Routing: [][]float64{{1}}, Commit: [][]float64{{2.5}}, Step: []StepTime{Affine(1e6, 1e6)}}
	for n := 1; n <= 5; n++ {
		s := solve(t, m, n, n)
		within(t, "one model", s.ThroughputTokS, 2.5e3*float64(n)/float64(1+n), 1e-14)
		if s.States != 1 || s.Models[0].Utilisation != 1 {
			t.Errorf("N=%d: %d states, utilisation %v, want 1 and 1", n, s.States, s.Models[0].Utilisation)
		}
	}
}

// TestNearlyDecomposable holds chains that all but fall apart, against closed forms of the limit. The terms
// left out are of the order of the small probability.
func TestNearlyDecomposable(t *testing.T) {
	for _, e := range []float64{1e-9, 1e-12, 1e-15, 1e-40} {
		// Two requests, each half of the time at either model, commit a token a step.
		two := Model{Routing: [][]float64{{1 - e, e}, {e, 1 - e}}, Commit: [][]float64{{1, 1}, {1, 1}},
			Step: []StepTime{Constant(6_000_000), Constant(27_900_000)}}
		small, large := 1e3/6, 1e3/27.9
		// A request leaves a model at a rate of e a step, so it is at the large one for 27.9/33.9 of the time.
		share := 27.9 / 33.9
		tolerance := 100*e + 1e-13
		one := (1-share)*small + share*large
		within(t, fmt.Sprintf("e=%g N=1", e), solve(t, two, 1, 1, 1).ThroughputTokS, one, tolerance)
		within(t, fmt.Sprintf("e=%g N=2", e), solve(t, two, 2, 1, 1).ThroughputTokS, 2*one, tolerance)
		within(t, fmt.Sprintf("e=%g N=4", e), solve(t, two, 4, 1, 1).ThroughputTokS, 4*one, tolerance)
		// With small threshold 2 a request alone at the small model waits there: of k = 1..4 requests at the small
		// model (0 is never seen again) k -> k+1 at rate (4-k)/27.9, k -> k-1 at rate k/6 for k >= 2.
		weight, total, tokens := 1.0, 0.0, 0.0
		for k := 1; k <= 4; k++ {
			rate := float64(4-k) * large
			if k >= 2 {
				rate += float64(k) * small
			}
			total += weight
			tokens += weight * rate
			weight *= float64(4-k) / 27.9 / (float64(k+1) / 6)
		}
		within(t, fmt.Sprintf("e=%g N=4 B=2,1", e), solve(t, two, 4, 2, 1).ThroughputTokS, tokens/total, tolerance)
		// R2R that hardly ever routes, large threshold 3: k = 0, 1, 2 requests wait there, the next comes
		// at rate (4-k)/6, so the time with k is in proportion to 1/(4-k), and 4-k requests go on: 3 /
		// (1/4+1/3+1/2) / 6 ms.
		if e < 1e-20 {
			continue // 1-e is 1, but the large model is still reached
		}
		never := solve(t, figure10(e), 4, 1, 3)
		within(t, fmt.Sprintf("p=%g", e), never.ThroughputTokS, 3/(1.0/4+1.0/3+1.0/2)*1e3/6, tolerance)
		always := solve(t, figure10(1-e), 1, 1, 1)
		within(t, fmt.Sprintf("p=1-%g", e), always.ThroughputTokS, 1e3/(6+(1-e)*27.9), 1e-14)
		// Mixture with two rare models: four requests at the first one.
		rare := Mixture([]float64{1 - 2*e, e, e}, Constant(6_000_000), Constant(10_000_000), Constant(28_000_000))
		within(t, fmt.Sprintf("ME %g", e), solve(t, rare, 4, 1, 1, 1).ThroughputTokS, 4e3/6, tolerance)
	}
}

// TestReducible holds chains that fall into closed classes, by hand.
func TestReducible(t *testing.T) {
	identity := Model{Routing: [][]float64{{1, 0}, {0, 1}}, Commit: [][]float64{{1, 0}, {0, 2}},
		Step: []StepTime{Constant(5e6), Constant(4e6)}}
	s := solve(t, identity, 3, 1, 1)
	if len(s.Classes) != 1 || s.States != 1 {
		t.Errorf("identity: %d classes, %d states, want 1 and 1", len(s.Classes), s.States)
	}
	within(t, "identity", s.ThroughputTokS, 600, 1e-14)
	identity.Start = 1
	within(t, "identity from model 1", solve(t, identity, 3, 1, 1).ThroughputTokS, 1500, 1e-14)

	// N = 2, B = (2, 1), half of the requests go over for good. The first step sends none, one or both with
	// chance 1/4, 1/2, 1/4; a single one left behind waits for ever. So one runs alone with chance 2/3.
	sink := Model{Routing: [][]float64{{0.5, 0.5}, {0, 1}}, Commit: [][]float64{{1, 1}, {0, 1}},
		Step: []StepTime{Constant(5e6), Constant(4e6)}}
	s = solve(t, sink, 2, 2, 1)
	within(t, "sink", s.ThroughputTokS, 2.0/3*250+1.0/3*500, 1e-14)
	if len(s.Classes) != 2 || s.TransientStates != 1 {
		t.Fatalf("sink: classes %+v, %d transient states, want 2 and 1", s.Classes, s.TransientStates)
	}
	for _, c := range s.Classes {
		want := map[float64]float64{250: 2.0 / 3, 500: 1.0 / 3}[math.Round(c.ThroughputTokS)]
		within(t, fmt.Sprintf("weight of %v tok/s", c.ThroughputTokS), c.Weight, want, 1e-14)
	}
	// Two sinks, one request: the mean of two rates, weighed 3 to 1.
	fork := Model{Routing: [][]float64{{0.2, 0.6, 0.2}, {0, 1, 0}, {0, 0, 1}},
		Commit: [][]float64{{9, 9, 9}, {0, 1, 0}, {0, 0, 1}},
		Step:   []StepTime{Constant(5e6), Constant(4e6), Constant(10e6)}}
	s = solve(t, fork, 1, 1, 1, 1)
	within(t, "fork", s.ThroughputTokS, 0.75*250+0.25*100, 1e-14)
	within(t, "fork share", s.Models[1].TokenShare, 0.75*250/212.5, 1e-14)
	// The same, but all but never leaving the first model: the weights stay, as they are ratios.
	fork.Routing[0] = []float64{1 - 4e-12, 3e-12, 1e-12}
	fork.Routing[0][0] = 1 - 3e-12 - 1e-12
	within(t, "slow fork", solve(t, fork, 1, 1, 1, 1).ThroughputTokS, 0.75*250+0.25*100, 1e-14)
}

// TestPeriods holds chains with a period, which no plain power iteration settles on.
func TestPeriods(t *testing.T) {
	s := solve(t, figure10(1), 4, 1, 1) // small, large, small, large
	if c := s.Classes[0]; c.Period != 2 || c.PeriodNs != 33_900_000 {
		t.Errorf("p=1: period %d, %d ns, want 2 and 33.9 ms", c.Period, c.PeriodNs)
	}
	within(t, "p=1", s.ThroughputTokS, 4e3/33.9, 1e-14)
	s = solve(t, figure10(0.35), 1, 1, 1) // loops of 6 and 33.9 ms
	if c := s.Classes[0]; c.Period != 1 || c.PeriodNs != 300_000 {
		t.Errorf("p=0.35: period %d, %d ns, want 1 and 0.3 ms", c.Period, c.PeriodNs)
	}
	ring := Model{Routing: [][]float64{{0, 1, 0}, {0, 0, 1}, {1, 0, 0}},
		Commit: [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
		Step:   []StepTime{Constant(1e6), Constant(2e6), Constant(4e6)}}
	s = solve(t, ring, 2, 1, 1, 1)
	if c := s.Classes[0]; c.Period != 3 || c.PeriodNs != 7_000_000 {
		t.Errorf("ring: period %d, %d ns, want 3 and 7 ms", c.Period, c.PeriodNs)
	}
	within(t, "ring", s.ThroughputTokS, 6e3/7, 1e-14)
}
