package chain

import (
	"fmt"
	"math"
)

// besideMax bounds Model.Beside.
const besideMax = 1000

func (m Model) validateBeside() error {
	if m.Beside != nil && len(m.Beside) != len(m.Routing) {
		return fmt.Errorf("chain: %d factors beside other models, want %d, one a model", len(m.Beside),
			len(m.Routing))
	}
	for i, f := range m.Beside {
		if !(f >= 1 && f <= besideMax) {
			return fmt.Errorf("chain: factor of model %d beside others = %v, want 1 to %d", i, f, besideMax)
		}
	}
	return nil
}

// contended reports whether any model runs slower beside others.
func (m Model) contended() bool {
	for _, f := range m.Beside {
		if f > 1 {
			return true
		}
	}
	return false
}

// EstimateQuantum is a quantum for step times that are estimates, for up to n rows: the largest of 1, 2 or 5
// times powers of ten nanoseconds that is at most a hundredth of the shortest step, so that rounding (see
// Options.Round) moves no time by more than half a percent. m must be valid.
func (m Model) EstimateQuantum(n int) int64 {
	shortest := int64(math.MaxInt64)
	for _, step := range m.Step {
		for rows := 1; rows <= n; rows++ {
			if ns, err := step.At(rows); err == nil {
				shortest = min(shortest, ns)
			}
		}
	}
	const parts = 100
	quanta := roundQuanta(max(shortest/parts, 1), 0)
	return quanta[0]
}

// advance finds what happens next: holding is the time to the next completion, in ticks; ends says by model
// whether its batch completes then, left how much is left of it, as if it ran alone from there on. factors
// are Model.Beside, nil for none: with another model beside it a batch gets on by 1/factor of a tick a tick,
// to the nearest whole one.
func (s *state) advance(factors []float64) (holding int64) {
	busy := 0
	for i, b := range s.running {
		s.left[i] = 0
		if b > 0 {
			s.left[i] = s.residue[i]
			busy++
		}
	}
	if busy < 2 {
		factors = nil
	}
	if factors != nil { // time to the end first
		for i, work := range s.left {
			s.left[i] = nearest(float64(work) * factors[i])
		}
	}
	for i, b := range s.running {
		if b > 0 && (holding == 0 || s.left[i] < holding) {
			holding = s.left[i]
		}
	}
	for i, b := range s.running {
		s.ends[i] = b > 0 && s.left[i] == holding
		switch {
		case b == 0 || s.ends[i]:
			s.left[i] = 0
		case factors == nil:
			s.left[i] -= holding
		default:
			s.left[i] = max(s.residue[i]-nearest(float64(holding)/factors[i]), 1)
		}
	}
	return holding
}

// nearest is a number of ticks, at least 1, but 0 for 0.
func nearest(ticks float64) int64 {
	if ticks == 0 {
		return 0
	}
	return max(int64(ticks+0.5), 1)
}
