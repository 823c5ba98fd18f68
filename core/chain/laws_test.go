package chain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// lawCases are models for the laws that hold whatever the numbers.
func lawCases() []struct {
	name string
	m    Model
	n    int
	b    []int
} {
	mixture := Mixture([]float64{0.5, 0.3, 0.2}, Constant(6e6), Constant(10e6), Constant(28e6))
	general := Model{Routing: [][]float64{{0.6, 0.4}, {0.3, 0.7}}, Commit: [][]float64{{1, 0.5}, {2, 1}},
		Step: []StepTime{Constant(4e6), Constant(7e6)}}
	return []struct {
		name string
		m    Model
		n    int
		b    []int
	}{
		{"R2R", figure10(0.35), 8, []int{1, 5}},
		{"R2R small threshold", figure10(0.35), 8, []int{3, 4}},
		{"R2R often", figure10(0.9), 6, []int{2, 1}},
		{"ME", mixture, 4, []int{1, 2, 1}},
		{"ME by iteration", mixture, 8, []int{1, 1, 1}},
		{"general", general, 6, []int{2, 3}},
		{"nearly decomposable", figure10(1e-9), 4, []int{1, 3}},
	}
}

// TestLaws checks laws that tie the figures of a Solution together: every request is somewhere (Little's
// law), what flows into a model flows out, and utilisation is starts times step time.
func TestLaws(t *testing.T) {
	for _, c := range lawCases() {
		t.Run(c.name, func(t *testing.T) {
			s := solve(t, c.m, c.n, c.b...)
			requests, tokens, share := 0.0, 0.0, 0.0
			for i, f := range s.Models {
				stepNs, _ := c.m.Step[i].At(1)
				step := float64(stepNs) / 1e9
				requests += f.MeanQueue + f.RowsPerS*step
				tokens += f.TokensPerS
				share += f.TokenShare
				within(t, "utilisation", f.Utilisation, f.StartsPerS*step, 1e-11)
				within(t, "rows", f.RowsPerS, f.StartsPerS*f.MeanBatch, 1e-12)
				within(t, "wait", f.MeanWaitNs*f.RowsPerS, f.MeanQueue*1e9, 1e-12)
				into := 0.0
				for j, from := range s.Models {
					into += from.RowsPerS * c.m.Routing[j][i]
				}
				within(t, "flow", into, f.RowsPerS, 1e-8)
				if f.MeanBatch < float64(c.b[i]) || f.MeanBatch > float64(c.n) || f.Utilisation > 1 {
					t.Errorf("model %d: %+v under thresholds %v", i, f, c.b)
				}
			}
			within(t, "requests", requests, float64(c.n), 1e-8)
			within(t, "tokens", tokens, s.ThroughputTokS, 1e-13)
			within(t, "share", share, 1, 1e-13)
		})
	}
}

// TestMethodsAgree solves the same chains by elimination and by iteration.
func TestMethodsAgree(t *testing.T) {
	cases := lawCases()
	cases = append(cases, cases[0])
	cases[len(cases)-1].name, cases[len(cases)-1].m = "affine", R2R(0.35, Affine(5e6, 1e6), Affine(27e6, 2e6))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, reward, hold := watched(t, c.m, c.n, c.b)
			exact, err := w.eliminated(reward, hold)
			if err != nil {
				t.Fatal(err)
			}
			iterated := w.iterated(reward, hold)
			tolerance := max(1e-11, iterated.relative)
			within(t, "rate", ratio(iterated.visits, reward, hold), ratio(exact.visits, reward, hold), tolerance)
			if exact.low > iterated.high || iterated.low > exact.high {
				t.Errorf("intervals %.17g to %.17g and %.17g to %.17g do not meet", exact.low, exact.high,
					iterated.low, iterated.high)
			}
			if c.name != "nearly decomposable" && !(iterated.relative < 1e-9) {
				t.Errorf("iteration is proven to %g, want 1e-9", iterated.relative)
			}
		})
	}
}

// watched returns the chain of a model, watched at its cut, with rewards and holding times.
func watched(t *testing.T, m Model, n int, b []int) (w *censored, reward, hold []float64) {
	t.Helper()
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSolver(m, n, o)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := explore(m, n, b, s.lattice, s.spreads, o)
	if err != nil {
		t.Fatal(err)
	}
	classes, _ := closedClasses(sp.graph)
	reward, hold = s.rewards(sp, classes[0])
	part := sp.graph.restrict(classes[0])
	return newCensored(part, chooseCut(part, sp.hints().restrict(classes[0]))), reward, hold
}

// TestCut checks that any hints yield a cut that every cycle meets, with all states in a right order, and
// the same throughput.
func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range lawCases() {
		w, reward, hold := watched(t, c.m, c.n, c.b)
		if len(w.c.cut)+len(w.c.order) > 2000 {
			continue
		}
		want, err := w.eliminated(reward, hold)
		if err != nil {
			t.Fatal(err)
		}
		for trial := range 4 {
			h := randomHints(r, w.g.size(), trial)
			bad := newCensored(w.g, chooseCut(w.g, h))
			checkOrder(t, bad)
			got, err := bad.eliminated(reward, hold)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("%s, hints %d, cut %d", c.name, trial, len(bad.c.cut))
			within(t, name, ratio(got.visits, reward, hold), ratio(want.visits, reward, hold), 1e-11)
		}
	}
}

// randomHints returns hints that say nothing true.
func randomHints(r *rand.Rand, n, trial int) *hints {
	h := &hints{together: make([]uint8, n), leading: make([]bool, n), phase: make([]int32, n)}
	h.phases = 1 + trial*10
	for s := range n {
		if trial > 1 {
			h.together[s] = uint8(r.IntN(3))
			h.leading[s] = r.IntN(4) == 0
		}
		h.phase[s] = int32(r.IntN(h.phases))
	}
	return h
}

// checkOrder checks that every edge from a state in the order leads to itself, to a later state, or to the
// cut.
func checkOrder(t *testing.T, w *censored) {
	t.Helper()
	at := make([]int, w.g.size())
	for i, s := range w.c.order {
		at[s] = i
	}
	if len(w.c.cut)+len(w.c.order) != w.g.size() {
		t.Fatalf("%d states in the cut and %d in order, want %d", len(w.c.cut), len(w.c.order), w.g.size())
	}
	for i, s := range w.c.order {
		next, _ := w.g.row(s)
		for _, to := range next {
			if w.c.place[to] < 0 && to != s && at[to] <= i {
				t.Fatalf("state %d at %d leads to state %d at %d", s, i, to, at[to])
			}
		}
	}
}

// TestWideKeys packs states into several words.
func TestWideKeys(t *testing.T) {
	weights, steps := []float64{0.4, 0.3, 0.2, 0.1}, []StepTime{}
	ones := []int{1, 1, 1, 1}
	for range weights {
		steps = append(steps, Constant(1<<30))
	}
	m := Mixture(weights, steps...)
	m.QuantumNs = 1 // residues of 31 bits each
	wide := solve(t, m, 3, ones...)
	m.QuantumNs = 0
	narrow := solve(t, m, 3, ones...)
	within(t, "wide", wide.ThroughputTokS, narrow.ThroughputTokS, 1e-14)
	if wide.States != narrow.States {
		t.Errorf("%d states in wide keys, want %d", wide.States, narrow.States)
	}
	l, err := newLattice(m, 3, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	places, err := newLayout(l, 3)
	if err != nil || places.words < 2 {
		t.Errorf("%d words, error %v, want at least 2 words", places.words, err)
	}
	long := R2R(0.5, Constant(1), Constant(1<<41))
	_, err = long.Solve(2, []int{1, 1}, Options{})
	wantError(t, err, "quanta of 1 ns, want at most")
}

// TestSpread checks spreads against binomial laws and their sums.
func TestSpread(t *testing.T) {
	s := newSpreads([][]float64{{0.65, 0.35}, {1, 0}, {0.65, 0.35}}, 1<<20)
	if !slices.Equal(s.classOf, []int{0, 1, 0}) {
		t.Errorf("row classes %v, want [0 1 0]", s.classOf)
	}
	for rows := 1; rows <= 200; rows += 13 {
		law := s.of([]int{rows, 2})
		total := 0.0
		for e := range law.count {
			k := int(law.arrivals[e*s.models+1])
			p := s.pool[law.offset+int64(e)]
			total += p
			logs, _ := math.Lgamma(float64(rows + 1))
			a, _ := math.Lgamma(float64(k + 1))
			b, _ := math.Lgamma(float64(rows - k + 1))
			want := math.Exp(logs - a - b + float64(k)*math.Log(0.35) + float64(rows-k)*math.Log(0.65))
			within(t, fmt.Sprintf("binomial(%d, %d)", rows, k), p, want, 1e-11)
			if first := int(law.arrivals[e*s.models]); first != rows-k+2 {
				t.Errorf("rows %d: %d go to model 0, want %d", rows, first, rows-k+2)
			}
		}
		within(t, "sum", total, 1, 1e-13)
	}
}

// TestSimulated plays the slot model with step times that depend on the batch size.
func TestSimulated(t *testing.T) {
	m := R2R(0.35, Affine(5e6, 1e5), Table(27e6, 28e6, 28e6, 29e6, 31e6, 31e6, 32e6, 36e6))
	for _, b := range [][]int{{1, 1}, {1, 5}, {3, 2}} {
		want := solve(t, m, 8, b...).ThroughputTokS
		got := play(rand.New(rand.NewPCG(7, uint64(b[1]))), m, 8, b, 200_000)
		within(t, fmt.Sprintf("B=%v", b), got, want, 0.01) // 200,000 events: the standard error is about 0.2 %
	}
}

// play simulates events completions of R2R and returns tokens per second.
func play(r *rand.Rand, m Model, n int, thresholds []int, events int) float64 {
	waiting, running, due := []int{n, 0}, []int{0, 0}, []int64{0, 0}
	now, tokens := int64(0), 0
	for range events {
		for i := range waiting {
			if running[i] == 0 && waiting[i] >= thresholds[i] {
				running[i], waiting[i] = waiting[i], 0
				ns, _ := m.Step[i].At(running[i])
				due[i] = now + ns
			}
		}
		first := int64(math.MaxInt64)
		for i, b := range running {
			if b > 0 {
				first = min(first, due[i])
			}
		}
		now = first
		for i, b := range running {
			if b == 0 || due[i] != now {
				continue
			}
			running[i] = 0
			for range b {
				if i == 0 && r.Float64() < m.Routing[0][1] {
					waiting[1]++
					continue
				}
				tokens++
				waiting[0]++
			}
		}
	}
	return float64(tokens) / float64(now) * 1e9
}
