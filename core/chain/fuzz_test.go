package chain

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzSolve solves random small models. It never panics; the proven interval holds the throughput, which
// lies within what the models could do if nothing ever waited; a repeated call gives the same; and all
// requests are somewhere.
func FuzzSolve(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint8(seed%6), 0.35, int64(20), int64(93))
	}
	f.Add(uint64(9), uint8(3), 1-1e-9, int64(6), int64(28))
	f.Add(uint64(10), uint8(4), 1e-9, int64(1), int64(1))
	f.Add(uint64(11), uint8(5), math.NaN(), int64(-1), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, seed uint64, size uint8, p float64, first, second int64) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := int(size)%6 + 1
		m := randomModel(r, n)
		if models := len(m.Routing); models > 1 { // a row and two step times from the fuzzer
			m.Routing[0] = make([]float64, models)
			m.Routing[0][0], m.Routing[0][1] = 1-p, p
			m.Step[0], m.Step[1] = Constant(first), Constant(second)
		}
		b := randomThresholds(r, n, len(m.Routing))
		o := Options{MaxStates: 600, MaxTransitions: 30000, Coarsen: seed%2 == 0}
		s, err := m.Solve(n, b, o)
		if err != nil {
			if m.Validate(n) == nil && !errors.Is(err, ErrTooManyStates) && !errors.Is(err, ErrNotProven) {
				var size *sizeError
				if !errors.As(err, &size) && max(first, second) <= maxTicks {
					t.Fatalf("valid model refused: %v", err)
				}
			}
			return
		}
		checkBounds(t, m, n, s)
		again, err := m.Solve(n, b, o)
		if err != nil || again.ThroughputTokS != s.ThroughputTokS || again.ErrorBound != s.ErrorBound {
			t.Fatalf("second call: %v, %v, want %v", again, err, s)
		}
	})
}

// checkBounds checks a Solution against bounds that need no chain.
func checkBounds(t *testing.T, m Model, n int, s *Solution) {
	t.Helper()
	fastest, dearest := math.Inf(1), 0.0
	for i, step := range m.Step {
		for rows := 1; rows <= n; rows++ {
			ns, _ := step.At(rows)
			fastest = min(fastest, float64(ns))
		}
		for _, c := range m.Commit[i] {
			dearest = max(dearest, c)
		}
	}
	for _, r := range s.Rounding {
		fastest = min(fastest, float64(r.UsedNs))
	}
	most := float64(n) * dearest / fastest * 1e9 * (1 + 1e-9)
	if !(s.ThroughputTokS >= 0 && s.ThroughputTokS <= most) {
		t.Fatalf("throughput %v, want 0 to %v", s.ThroughputTokS, most)
	}
	if !(s.LowTokS <= s.ThroughputTokS && s.ThroughputTokS <= s.HighTokS && s.ErrorBound <= tolerated) {
		t.Fatalf("throughput %v in %v to %v, error bound %v", s.ThroughputTokS, s.LowTokS, s.HighTokS, s.ErrorBound)
	}
	weights, waiting := 0.0, 0.0
	for _, c := range s.Classes {
		weights += c.Weight
		if c.Period < 1 || c.PeriodNs < s.QuantumNs || c.States < 1 {
			t.Fatalf("class %+v", c)
		}
	}
	for _, f := range s.Models {
		waiting += f.MeanQueue
		if !(f.Utilisation >= 0 && f.Utilisation <= 1+1e-9) || f.MeanBatch > float64(n)*(1+1e-9) {
			t.Fatalf("model figures %+v", f)
		}
	}
	if math.Abs(weights-1) > 1e-9 || !(waiting >= 0 && waiting < float64(n)) || !(s.MeanHoldingNs > 0) {
		t.Fatalf("weights sum to %v, %v requests wait, mean holding %v ns", weights, waiting, s.MeanHoldingNs)
	}
}
