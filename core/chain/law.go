package chain

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
)

// Method names how a stationary law was found.
type Method string

// The methods. Both yield an error bound that does not rest on convergence having been judged right.
const (
	// Elimination is exact elimination without subtractions.
	Elimination Method = "elimination"
	// Iteration solves the watched chain by GMRES and proves the throughput by the bounds of a test function.
	Iteration Method = "iteration"
)

// law is the stationary law of an irreducible chain: how often each state is visited, up to a common factor.
type law struct {
	visits []float64
	cut    int
	method Method
	// relative bounds the relative error of the reward rate; for Elimination that of any ratio of two means
	// of functions that are not negative.
	relative float64
	// low and high enclose the reward rate per unit of hold.
	low, high float64
}

// dense is the most work, in multiplications, for which elimination is taken at once; denseLimit that for
// which it is taken if iteration cannot prove its result. denseStates limits the memory of elimination.
const (
	dense       = 4e8
	denseLimit  = 3e11
	denseStates = 8000
)

// Relative error bounds: iteration stops at wanted; elimination takes over above accepted, if the chain is
// not too large for it; and no result above tolerated is returned.
const (
	wanted    = 1e-10
	accepted  = 1e-9
	tolerated = 1e-6
)

// ErrNotProven is wrapped by the error of a chain that is too large for elimination and for which iteration
// found no result with a sufficient error bound, as may happen when it is nearly decomposable. A coarser
// quantum helps.
var ErrNotProven = errors.New("no sufficient error bound")

// stationaryLaw solves an irreducible chain whose states give reward and last hold, both by state.
func stationaryLaw(g *graph, h *hints, reward, hold []float64) (*law, error) {
	w := newCensored(g, chooseCut(g, h))
	size := float64(len(w.c.cut))
	work := float64(len(g.next))*size + size*size*size/3
	if work <= dense {
		return w.eliminated(reward, hold)
	}
	l := w.iterated(reward, hold)
	if l.relative <= accepted {
		return l, nil
	}
	if work <= denseLimit && size <= denseStates {
		return w.eliminated(reward, hold)
	}
	if l.relative > tolerated {
		return nil, fmt.Errorf("chain: throughput (%d states) proven only to a relative error of %.2g, want %g: %w",
			g.size(), l.relative, tolerated, ErrNotProven)
	}
	return l, nil
}

// eliminated solves the chain by elimination. The error bound is the smaller one of two: that from counting
// the roundings, which the condition of the chain does not touch, and that of certify.
func (w *censored) eliminated(reward, hold []float64) (*law, error) {
	f, visits, relative, err := w.elimination()
	if err != nil {
		return nil, err
	}
	l := &law{visits: visits, cut: f.size, method: Elimination}
	rate := ratio(l.visits, reward, hold)
	counted := 2*relative + unit*(2*w.g.sourceRoundings+12)
	l.low, l.high = rate*(1-counted), rate*(1+counted)

	zero := make([]float64, f.size)
	rewards, times := make([]float64, f.size), make([]float64, f.size)
	values := make([]float64, w.g.size())
	w.backward(reward, zero, values, rewards)
	w.backward(hold, zero, values, times)
	floats.AddScaled(rewards, -rate, times)
	low, high := w.certify(reward, hold, f.bias(rewards), rate)
	l.low, l.high = max(l.low, low), min(l.high, high)
	l.relative = relativeError(rate, l.low, l.high)
	return l, nil
}

// elimination returns the factors of the watched chain, the visits to all states, and a bound on the relative
// error of every visit against any other.
func (w *censored) elimination() (f *factors, visits []float64, relative float64, err error) {
	f, err = eliminate(w.matrix(), len(w.c.cut))
	if err != nil {
		return nil, nil, 0, err
	}
	x, err := f.stationary()
	if err != nil {
		return nil, nil, 0, err
	}
	visits = make([]float64, w.g.size())
	w.forward(x, visits, make([]float64, f.size))
	return f, visits, unit * (eliminationRoundings(f.size, w.backwardRoundings()) + w.forwardRoundings()), nil
}

// ratio returns the mean reward over the mean hold under visits.
func ratio(visits, reward, hold []float64) float64 {
	var top, bottom compensated
	for s, v := range visits {
		top.add(v * reward[s])
		bottom.add(v * hold[s])
	}
	return top.value() / bottom.value()
}

// relativeError returns how far value may be from a number in low to high, relative to the number.
func relativeError(value, low, high float64) float64 {
	if value == 0 && low == 0 && high == 0 {
		return 0
	}
	if !(low > 0) {
		return math.Inf(1)
	}
	return max(high-value, value-low, 0) / low
}

// certify encloses the reward rate of the chain by a test function. For every function f of the states the
// rate lies between the least and the largest, over all states s, of
//
//	(reward(s) + sum over successors t of p(s, t) * (f(t) - f(s))) / hold(s)
//
// (Odoni, Operations Research 17 (1969) 857; for semi-Markov chains Schweitzer, J. Math. Anal. Appl. 34
// (1971) 495). Here f is the bias of the cut states carried back to all states at the given rate; a good bias
// makes the interval narrow, any bias leaves it right. Rounding errors of this last pass are added to it;
// those made on the way to f do not matter.
func (w *censored) certify(reward, hold, bias []float64, rate float64) (low, high float64) {
	g := w.g
	values, source := make([]float64, g.size()), make([]float64, g.size())
	for s := range source {
		source[s] = reward[s] - rate*hold[s]
	}
	w.backward(source, bias, values, make([]float64, len(bias)))
	low, high = math.Inf(1), math.Inf(-1)
	for s := range int32(g.size()) {
		next, probability := g.row(s)
		own := values[s]
		drift, size := source[s], reward[s]+rate*hold[s]
		for e, t := range next {
			step := probability[e] * (values[t] - own)
			drift += step
			size += math.Abs(step)
		}
		slip := unit * (g.roundings + g.sourceRoundings + float64(len(next)) + 8) * size
		low = min(low, (drift-slip)/hold[s])
		high = max(high, (drift+slip)/hold[s])
	}
	return rate + low, rate + high
}
