package chain

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// figure10 is the model of the paper's figure 10: step times of 6.0 and 27.9 ms, appendix D.
func figure10(p float64) Model { return R2R(p, Constant(6_000_000), Constant(27_900_000)) }

// TestFeasible holds the sets of the field's case of thresholds that can never fire.
func TestFeasible(t *testing.T) {
	cases := []struct {
		name       string
		n          int
		thresholds []int
		want       string // part of the error, empty: feasible
		infeasible bool
	}{
		{"both wait", 4, []int{2, 4}, "thresholds 2,4 cannot all wait: (2-1)+(4-1) = 4, want below N = 4", true},
		{"one less", 4, []int{2, 3}, "", false},
		{"large waits for all", 4, []int{1, 4}, "", false},
		{"above N", 4, []int{1, 5}, "(1-1)+(5-1) = 4, want below N = 4", true},
		{"three models", 4, []int{2, 2, 2}, "", false},
		{"three models wait", 4, []int{2, 2, 3}, "(2-1)+(2-1)+(3-1) = 4, want below N = 4", true},
		{"one request", 1, []int{1, 1}, "", false},
		{"one request waits", 1, []int{1, 2}, "want below N = 1", true},
		{"dead state of two", 2, []int{2, 2}, "(2-1)+(2-1) = 2, want below N = 2", true},
		{"no request", 0, []int{1, 1}, "N = 0 requests in flight, want at least 1", false},
		{"negative N", -1, []int{1, 1}, "N = -1", false},
		{"threshold 0", 4, []int{0, 1}, "threshold of model 0 is 0, want at least 1", false},
		{"threshold below 0", 4, []int{1, -3}, "threshold of model 1 is -3, want at least 1", false},
		{"none", 4, nil, "no thresholds", false},
		{"huge", 4, []int{math.MaxInt, math.MaxInt}, "want at most N = 4", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Feasible(c.n, c.thresholds)
			wantError(t, err, c.want)
			if errors.Is(err, ErrInfeasible) != c.infeasible {
				t.Errorf("errors.Is(%v, ErrInfeasible) = %v, want %v", err, !c.infeasible, c.infeasible)
			}
			if len(c.thresholds) != 2 {
				return
			}
			_, err = figure10(0.35).Solve(c.n, c.thresholds, Options{})
			if (err != nil) != (c.want != "") {
				t.Errorf("Solve: %v, want an error as Feasible's %q", err, c.want)
			}
		})
	}
}

// wantError checks that err holds want, or is nil if want is empty.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case want != "" && err == nil:
		t.Errorf("got no error, want one with %q", want)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("got error %q, want one with %q", err, want)
	}
}

// TestSets counts and orders the feasible sets.
func TestSets(t *testing.T) {
	cases := []struct {
		name      string
		n, models int
		fixed     []int
		want      [][]int
		err       string
	}{
		{"three requests", 3, 2, nil, [][]int{{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {3, 1}}, ""},
		{"first held", 3, 2, []int{1, 0}, [][]int{{1, 1}, {1, 2}, {1, 3}}, ""},
		{"second held", 3, 2, []int{0, 2}, [][]int{{1, 2}, {2, 2}}, ""},
		{"all held", 3, 2, []int{2, 2}, [][]int{{2, 2}}, ""},
		{"one request", 1, 3, nil, [][]int{{1, 1, 1}}, ""},
		{"held too high", 3, 2, []int{0, 4}, nil, "(4-1) = 3, want below N = 3"},
		{"held below 1", 3, 2, []int{-1, 0}, nil, "held at -1"},
		{"wrong length", 3, 2, []int{1}, nil, "1 thresholds held or free, want 2"},
		{"no request", 0, 2, nil, nil, "N = 0"},
		{"too many", 1000, 4, nil, nil, "feasible threshold sets"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Sets(c.n, c.models, c.fixed)
			wantError(t, err, c.err)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	// binomial(n-1+m, m)
	for _, c := range []struct{ n, models, want int }{{8, 2, 36}, {16, 2, 136}, {4, 3, 20}} {
		sets, err := Sets(c.n, c.models, nil)
		if err != nil || len(sets) != c.want {
			t.Errorf("N=%d, %d models: %d sets, error %v, want %d sets", c.n, c.models, len(sets), err, c.want)
		}
		if !slices.IsSortedFunc(sets, slices.Compare[[]int]) {
			t.Errorf("N=%d, %d models: sets are not in lexicographic order", c.n, c.models)
		}
	}
}

// TestRefuses holds one thing wrong with a model at a time.
func TestRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	cases := []struct {
		name   string
		change func(m *Model)
		want   string
	}{
		{"row sum", func(m *Model) { m.Routing[0] = []float64{0.65, 0.36} }, "routing[0] sums to 1.01"},
		{"row sum by little", func(m *Model) { m.Routing[1][0] = 1 - 2e-12 }, "routing[1] sums to"},
		{"above 1", func(m *Model) { m.Routing[0] = []float64{-0.5, 1.5} }, "routing[0][0] = -0.5, want 0 to 1"},
		{"not a number", func(m *Model) { m.Routing[0][1] = nan }, "routing[0][1] = NaN"},
		{"infinite", func(m *Model) { m.Routing[0][1] = inf }, "routing[0][1] = +Inf"},
		{"too small", func(m *Model) { m.Routing[0] = []float64{1, 1e-100} }, "want 0 or at least 1e-60"},
		{"short row", func(m *Model) { m.Routing[1] = []float64{1} }, "routing[1] has 1 entries, want 2"},
		{"no model", func(m *Model) { m.Routing = nil }, "at least one model"},
		{"commit rows", func(m *Model) { m.Commit = m.Commit[:1] }, "commit matrix has 1 rows, want 2"},
		{"commit row", func(m *Model) { m.Commit[0] = nil }, "commit[0] has 0 entries, want 2"},
		{"commit below 0", func(m *Model) { m.Commit[0][0] = -1 }, "commit[0][0] = -1"},
		{"commit not a number", func(m *Model) { m.Commit[1][1] = nan }, "commit[1][1] = NaN"},
		{"step times", func(m *Model) { m.Step = m.Step[:1] }, "1 step times, want 2"},
		{"step time 0", func(m *Model) { m.Step[0] = Constant(0) }, "model 0: time of a batch of 1 is 0 ns"},
		{"step time below 0", func(m *Model) { m.Step[1] = Constant(-5) }, "time of a batch of 1 is -5 ns"},
		{"falls below 0", func(m *Model) { m.Step[1] = Affine(10, -5) }, "time of a batch of 2 is 0 ns"},
		{"table too short", func(m *Model) { m.Step[1] = Table(5, 6) }, "batch of 3: the table ends at 2"},
		{"table with 0", func(m *Model) { m.Step[1] = Table(5, 0, 6, 7) }, "time of a batch of 2 is 0 ns"},
		{"overflow", func(m *Model) { m.Step[1] = Affine(1, math.MaxInt64/3) }, "does not fit 62 bits"},
		{"start", func(m *Model) { m.Start = 2 }, "start model 2, want 0 to 1"},
		{"quantum", func(m *Model) { m.QuantumNs = -1 }, "quantum -1 ns"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := figure10(0.35)
			c.change(&m)
			_, err := m.Solve(4, []int{1, 1}, Options{})
			wantError(t, err, c.want)
		})
	}
	m := figure10(0.35)
	m.Routing[1][0] = 1 - 0.5e-12 // within the tolerance: the row is divided by its sum
	s, err := m.Solve(1, []int{1, 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "row nearly 1", s.ThroughputTokS, 1e3/(6+0.35*27.9), 1e-14)
	if _, err := m.Solve(4, []int{1, 1, 1}, Options{}); err == nil {
		t.Error("three thresholds for two models: no error")
	}
	if _, err := m.Solve(maxConcurrency+1, []int{1, 1}, Options{}); err == nil {
		t.Error("N above the limit: no error")
	}
}

// within checks got against want to a relative tolerance.
func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %.15g, want %.15g", what, got, want)
	}
}

// TestOffLattice holds step times that do not fit the quantum: refused, or rounded and reported.
func TestOffLattice(t *testing.T) {
	m := figure10(0.35)
	m.QuantumNs = 1_000_000
	_, err := m.Solve(1, []int{1, 1}, Options{})
	if !errors.Is(err, ErrOffLattice) {
		t.Errorf("got %v, want ErrOffLattice", err)
	}
	wantError(t, err, "step time of model 1 is 27.9ms, not a whole number of quanta of 1ms; "+
		"rounding would use 28ms (+0.358 %)")
	s, err := m.Solve(1, []int{1, 1}, Options{Round: true})
	if err != nil {
		t.Fatal(err)
	}
	// Ticks (6, 28): 63.291 tok/s, 0.22 % below 63.432, and loops of 6 and 34 ticks: period 2.
	within(t, "rounded", s.ThroughputTokS, 1e3/(6+0.35*28), 1e-14)
	within(t, "cost", s.RoundingCost, (6+0.35*27.9)/(6+0.35*28)-1, 1e-10)
	if got := s.Classes[0].PeriodNs; got != 2_000_000 {
		t.Errorf("period %d ns, want 2 ms", got)
	}
	want := []Rounding{{Model: 0, Batch: 1, GivenNs: 6_000_000, UsedNs: 6_000_000},
		{Model: 1, Batch: 1, GivenNs: 27_900_000, UsedNs: 28_000_000, Relative: 0.1 / 27.9}}
	for i, r := range s.Rounding {
		within(t, "relative rounding", r.Relative, want[i].Relative, 1e-12)
		r.Relative = want[i].Relative
		if r != want[i] {
			t.Errorf("rounding %+v, want %+v", r, want[i])
		}
	}
	table := R2R(0.35, Table(6_000_000, 7_000_000), Table(27_000_000, 27_400_000))
	table.QuantumNs = 1_000_000
	_, err = table.Solve(2, []int{1, 1}, Options{})
	wantError(t, err, "step time of model 1 at 2 rows is 27.4ms")
	for _, c := range []struct{ ns, quantum, want int64 }{ // halves to even, never 0
		{25, 10, 2}, {35, 10, 4}, {24, 10, 2}, {26, 10, 3}, {1, 10, 1}, {5, 10, 1}, {10, 10, 1},
	} {
		if got := nearestTicks(c.ns, c.quantum); got != c.want {
			t.Errorf("nearestTicks(%d, %d) = %d, want %d", c.ns, c.quantum, got, c.want)
		}
	}
}

// TestTooMany holds chains above the limits: refused with a quantum that fits, or coarsened and reported.
func TestTooMany(t *testing.T) {
	m := R2R(0.35, Constant(6_000_100), Constant(27_900_700)) // exact quantum 100 ns
	limits := Options{MaxStates: 2000}
	_, err := m.Solve(4, []int{1, 1}, limits)
	if !errors.Is(err, ErrTooManyStates) {
		t.Fatalf("got %v, want ErrTooManyStates", err)
	}
	wantError(t, err, "at least 2001 states")
	wantError(t, err, "a quantum of 2µs would fit (715 states, the step time of model 1 off by -0.00251 %)")
	limits.Coarsen = true
	s, err := m.Solve(4, []int{1, 1}, limits)
	if err != nil {
		t.Fatal(err)
	}
	if s.QuantumNs != 2_000 || s.Rounding[0].UsedNs != 6_000_000 || s.Rounding[1].UsedNs != 27_900_000 {
		t.Errorf("quantum %d ns, rounding %+v, want 2 µs", s.QuantumNs, s.Rounding)
	}
	within(t, "coarsened", s.ThroughputTokS, 187.189651, 3e-9) // published value of the rounded times
	if s.RoundingCost == 0 || math.Abs(s.RoundingCost) > 1e-4 {
		t.Errorf("rounding cost %g, want a small one", s.RoundingCost)
	}
	_, err = m.Solve(64, []int{1, 1}, Options{MaxStates: 10, Coarsen: true})
	wantError(t, err, "no coarser quantum fits")
	_, err = m.Solve(4, []int{1, 1}, Options{MaxTransitions: 100})
	wantError(t, err, "want at most 4194304 and 100")
	uniform := make([]float64, 16)
	for j := range uniform {
		uniform[j] = 1.0 / 16
	}
	steps := make([]StepTime, 16)
	ones := make([]int, 16)
	for i := range steps {
		steps[i], ones[i] = Constant(1), 1
	}
	_, err = Mixture(uniform, steps...).Solve(64, ones, Options{}) // 10^15 ways to go at the first completion
	if !errors.Is(err, ErrTooManyStates) {
		t.Errorf("got %v, want ErrTooManyStates", err)
	}
	for _, o := range []Options{{MaxStates: -1}, {MaxStates: 1 << 40}, {MaxTransitions: -1}} {
		if _, err := m.Solve(1, []int{1, 1}, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
