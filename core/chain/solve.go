package chain

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Default limits of Options.
const (
	DefaultMaxStates      = 1 << 22
	DefaultMaxTransitions = 1 << 27
)

// Options say how far Solve may go. The zero value refuses all that is not exact.
type Options struct {
	// Round lets step times that do not fit the quantum go to the nearest multiple of it (halves to the even
	// one, at least one quantum). Solution.Rounding reports it.
	Round bool
	// Coarsen lets Solve take a coarser quantum when the chain of that of the Model exceeds the limits: of
	// 1, 2 or 5 times powers of ten nanoseconds, from the shortest step down, the last one before the chain
	// gets too large. Step times are rounded to it, none by more than a half, which Solution.Rounding and
	// Solution.RoundingCost report.
	Coarsen bool
	// MaxStates and MaxTransitions limit the chain; 0 stands for DefaultMaxStates and
	// DefaultMaxTransitions. While a chain is solved a state takes about 250 bytes and a transition 4 to 8,
	// besides up to 256 MiB and, under elimination, 16 bytes for each pair of cut states.
	MaxStates, MaxTransitions int
}

// withDefaults fills in the limits that are 0.
func (o Options) withDefaults() (Options, error) {
	if o.MaxStates < 0 || o.MaxStates > 1<<30 {
		return o, fmt.Errorf("chain: MaxStates = %d, want 0 to %d", o.MaxStates, 1<<30)
	}
	if o.MaxTransitions < 0 {
		return o, fmt.Errorf("chain: MaxTransitions = %d, want at least 0", o.MaxTransitions)
	}
	if o.MaxStates == 0 {
		o.MaxStates = DefaultMaxStates
	}
	if o.MaxTransitions == 0 {
		o.MaxTransitions = DefaultMaxTransitions
	}
	return o, nil
}

// Solve returns the stationary figures of m with n requests in flight under thresholds, one for each model.
//
// It fails if m is not valid (Model.Validate), if the thresholds are infeasible (ErrInfeasible), if a step
// time does not fit the quantum and Options.Round is not set (ErrOffLattice), or if the chain is larger than
// the limits and Options.Coarsen is not set (ErrTooManyStates; the error names a quantum that would fit, if
// there is one).
func (m Model) Solve(n int, thresholds []int, o Options) (*Solution, error) {
	s, err := newSolver(m, n, o)
	if err != nil {
		return nil, err
	}
	return s.solve(thresholds)
}

// solver keeps what the chains of all threshold sets of one Model and n share. It is not safe for concurrent
// use.
type solver struct {
	model   Model
	n       int
	options Options
	routing [][]float64
	lattice *lattice
	spreads *spreads
}

// newSolver validates m.
func newSolver(m Model, n int, o Options) (*solver, error) {
	if err := m.Validate(n); err != nil {
		return nil, err
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	quantumNs := m.QuantumNs
	if m.contended() {
		o.Round = true
		if quantumNs == 0 {
			quantumNs = m.EstimateQuantum(n)
		}
	}
	l, err := newLattice(m, n, quantumNs, o.Round)
	if err != nil {
		return nil, err
	}
	s := &solver{model: m, n: n, options: o, routing: m.normalised(), lattice: l}
	s.spreads = newSpreads(s.routing, o.MaxTransitions)
	return s, nil
}

// solve returns the Solution under thresholds.
func (s *solver) solve(thresholds []int) (*Solution, error) {
	if len(thresholds) != len(s.routing) {
		return nil, fmt.Errorf("chain: %d thresholds, want %d, one a model", len(thresholds), len(s.routing))
	}
	if err := Feasible(s.n, thresholds); err != nil {
		return nil, err
	}
	sp, err := explore(s.model, s.n, thresholds, s.lattice, s.spreads, s.options)
	if err != nil {
		sp, err = s.coarser(thresholds, err)
	}
	if err != nil {
		return nil, err
	}
	return s.stationary(thresholds, sp)
}

// coarser goes through round quanta from the shortest step down for the last one before the chain exceeds the
// limits. If Options.Coarsen is set it
// returns that chain, else the error of the chain that did not fit with the advice added. Any other error is
// returned as it is.
func (s *solver) coarser(thresholds []int, cause error) (*space, error) {
	var size *sizeError
	if !errors.As(cause, &size) {
		return nil, cause
	}
	shortest := int64(math.MaxInt64)
	for i := range s.model.Step {
		for rows := 1; rows <= s.n; rows++ {
			shortest = min(shortest, s.lattice.ticks[i][rows]*s.lattice.quantumNs)
		}
	}
	var fits *space
	for _, quantumNs := range roundQuanta(shortest, s.lattice.quantumNs) {
		l, err := newLattice(s.model, s.n, quantumNs, true)
		if err != nil {
			return nil, err
		}
		sp, err := explore(s.model, s.n, thresholds, l, s.spreads, s.options)
		if err != nil {
			break
		}
		fits = sp
	}
	if fits == nil {
		size.advice = "no coarser quantum fits: take fewer requests or raise the limits: "
		return nil, size
	}
	if !s.options.Coarsen {
		size.advice = fmt.Sprintf("a quantum of %v would fit (%d states, %s): ",
			time.Duration(fits.lattice.quantumNs), fits.graph.size(), fits.lattice.worst())
		return nil, size
	}
	return fits, nil
}

// roundQuanta returns 1, 2, 5 times powers of ten nanoseconds up to most and above least, descending.
func roundQuanta(most, least int64) []int64 {
	var quanta []int64
	power := int64(1)
	for power <= most/10 {
		power *= 10
	}
	for ; power > 0; power /= 10 {
		for _, digit := range []int64{5, 2, 1} {
			if q := digit * power; q > least && q <= most {
				quanta = append(quanta, q)
			}
		}
	}
	return quanta
}
