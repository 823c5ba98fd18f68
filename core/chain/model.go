package chain

import (
	"fmt"
	"math"
)

// rowTolerance is how far the sum of a row of Routing may be from 1.
const rowTolerance = 1e-12

// leastRouting is the smallest routing probability other than 0. Products of smaller ones leave the range of
// float64 after so few simultaneous moves that the chain would lose transitions that matter.
const leastRouting = 1e-60

// Model describes M models that exchange requests, by the matrices of TokenRouter, arXiv 2610.12242, appendix
// D.
//
// A Model is plain data. Solve and Search validate it; they never change it.
type Model struct {
	// Routing is P, M x M: Routing[i][j] is the probability that a request goes from model i to model j after
	// a step on i. Every row sums to 1 within 1e-12 (and is then divided by its sum). An entry is 0, or from
	// 1e-60 to 1.
	Routing [][]float64
	// Commit is C, M x M: Commit[i][j] is the number of output tokens that the move from i to j commits; any
	// finite number from 0.
	Commit [][]float64
	// Step holds the step time of each model, length M.
	Step []StepTime
	// Start is the model where all requests wait at the beginning, 0 to M-1. It matters only if the chain is
	// reducible.
	Start int
	// QuantumNs is the lattice step of time in nanoseconds. 0 takes the greatest common divisor of all step
	// times, which rounds nothing.
	QuantumNs int64
	// Beside holds a factor of the step time of each model, 1 to 1000, while any other model runs; Step is then
	// of a model that runs alone. nil means that models do not slow each other. A running batch has a residual
	// amount of work in place of a residual time, and gets on by a quantum of it a quantum alone, by 1/factor
	// of one beside others. What has been done at a completion goes to the nearest quantum, which shifts rates
	// by up to half a quantum a step: the throughput is an estimate, whatever its ErrorBound. Step times are
	// rounded to QuantumNs or, if that is 0, to EstimateQuantum.
	Beside []float64
}

// StepTime is the time of one forward pass of a model, in nanoseconds, as a function of the batch size:
// TableNs by size if it is set, else BaseNs + PerRowNs*rows. Every time that is used must be positive.
type StepTime struct {
	// BaseNs is the time of a step without its rows, ns; may be 0 if PerRowNs is positive.
	BaseNs int64
	// PerRowNs is the time that each row of the batch adds, ns.
	PerRowNs int64
	// TableNs, if not empty, is used instead: TableNs[b-1] is the time of a batch of b rows, ns. It must
	// reach to the number of requests in flight; it is never extrapolated.
	TableNs []int64
}

// Constant returns a step time of ns nanoseconds whatever the batch size.
func Constant(ns int64) StepTime { return StepTime{BaseNs: ns} }

// Affine returns a step time of baseNs + perRowNs*rows nanoseconds.
func Affine(baseNs, perRowNs int64) StepTime { return StepTime{BaseNs: baseNs, PerRowNs: perRowNs} }

// Table returns a step time given by batch size: ns[0] for one row, ns[1] for two, ...
func Table(ns ...int64) StepTime { return StepTime{TableNs: append([]int64(nil), ns...)} }

// At returns the time of a batch of rows rows in nanoseconds. It fails if the table does not reach so far, or
// if the time is not positive or does not fit 62 bits.
func (t StepTime) At(rows int) (int64, error) {
	if rows < 1 {
		return 0, fmt.Errorf("a batch of %d rows, want at least 1", rows)
	}
	if len(t.TableNs) > 0 {
		if rows > len(t.TableNs) {
			return 0, fmt.Errorf("no time for a batch of %d: the table ends at %d", rows, len(t.TableNs))
		}
		if ns := t.TableNs[rows-1]; ns <= 0 || ns > math.MaxInt64/2 {
			return 0, fmt.Errorf("time of a batch of %d is %d ns, want above 0", rows, ns)
		}
		return t.TableNs[rows-1], nil
	}
	const limit = math.MaxInt64 / 2
	if max(t.BaseNs, -t.BaseNs) > limit || max(t.PerRowNs, -t.PerRowNs) > limit/int64(rows) {
		return 0, fmt.Errorf("time %d + %d*%d ns does not fit 62 bits", t.BaseNs, t.PerRowNs, rows)
	}
	ns := t.BaseNs + t.PerRowNs*int64(rows)
	if ns <= 0 || ns > limit {
		return 0, fmt.Errorf("time of a batch of %d is %d ns, want above 0", rows, ns)
	}
	return ns, nil
}

// R2R returns the two-model description of R2R: after a step of the small model a request goes to the large
// one with probability p, its draft dropped, or commits one token and stays; a large step commits one token
// and returns it. P = [[1-p, p], [1, 0]], C = [[1, 0], [1, 0]].
func R2R(p float64, small, large StepTime) Model {
	return Model{
		Routing: [][]float64{{1 - p, p}, {1, 0}},
		Commit:  [][]float64{{1, 0}, {1, 0}},
		Step:    []StepTime{small, large},
	}
}

// Mixture returns the description of a mixture of experts at token level (ME): after every step a request
// goes to model j with probability weights[j], whichever model it is on, and every step commits one token.
// P[i][j] = weights[j], C[i][j] = 1.
func Mixture(weights []float64, step ...StepTime) Model {
	m := Model{Step: append([]StepTime(nil), step...)}
	for range weights {
		m.Routing = append(m.Routing, append([]float64(nil), weights...))
		ones := make([]float64, len(weights))
		for j := range ones {
			ones[j] = 1
		}
		m.Commit = append(m.Commit, ones)
	}
	return m
}

// Validate reports the first thing wrong with m for n requests in flight: a size that does not match, a
// number out of its range, a row of Routing that does not sum to 1, a step time that is not positive. It
// names what was given and what was wanted.
func (m Model) Validate(n int) error {
	models := len(m.Routing)
	switch {
	case n < 1 || n > maxConcurrency:
		return fmt.Errorf("chain: N = %d requests in flight, want 1 to %d", n, maxConcurrency)
	case models == 0:
		return fmt.Errorf("chain: routing matrix is empty, want at least one model")
	case models > maxModels:
		return fmt.Errorf("chain: %d models, want at most %d", models, maxModels)
	case len(m.Commit) != models:
		return fmt.Errorf("chain: commit matrix has %d rows, want %d as routing has", len(m.Commit), models)
	case len(m.Step) != models:
		return fmt.Errorf("chain: %d step times, want %d as routing has rows", len(m.Step), models)
	case m.Start < 0 || m.Start >= models:
		return fmt.Errorf("chain: start model %d, want 0 to %d", m.Start, models-1)
	case m.QuantumNs < 0:
		return fmt.Errorf("chain: quantum %d ns, want above 0, or 0 for the exact divisor", m.QuantumNs)
	}
	if err := m.validateBeside(); err != nil {
		return err
	}
	for i := range models {
		if err := m.validateRow(i); err != nil {
			return err
		}
		for rows := 1; rows <= n; rows++ {
			if _, err := m.Step[i].At(rows); err != nil {
				return fmt.Errorf("chain: step time of model %d: %w", i, err)
			}
		}
	}
	return nil
}

// validateRow checks row i of both matrices.
func (m Model) validateRow(i int) error {
	models := len(m.Routing)
	if len(m.Routing[i]) != models {
		return fmt.Errorf("chain: routing[%d] has %d entries, want %d", i, len(m.Routing[i]), models)
	}
	if len(m.Commit[i]) != models {
		return fmt.Errorf("chain: commit[%d] has %d entries, want %d", i, len(m.Commit[i]), models)
	}
	sum := 0.0
	for j, p := range m.Routing[i] {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("chain: routing[%d][%d] = %v, want 0 to 1", i, j, p)
		}
		if p > 0 && p < leastRouting {
			return fmt.Errorf("chain: routing[%d][%d] = %v, want 0 or at least %v", i, j, p, leastRouting)
		}
		if c := m.Commit[i][j]; !(c >= 0 && c <= maxCommit) {
			return fmt.Errorf("chain: commit[%d][%d] = %v, want 0 to %v tokens", i, j, c, maxCommit)
		}
		sum += p
	}
	if math.Abs(sum-1) > rowTolerance {
		return fmt.Errorf("chain: routing[%d] sums to %.17g, want 1 within %v", i, sum, rowTolerance)
	}
	return nil
}

// Limits of a Model that can be described at all.
const (
	maxConcurrency = 1024 // above it, multinomial coefficients come near the end of float64
	maxModels      = 64
	maxCommit      = 1e12
)

// normalised returns Routing with every row divided by its sum.
func (m Model) normalised() [][]float64 {
	out := make([][]float64, len(m.Routing))
	for i, row := range m.Routing {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		out[i] = append([]float64(nil), row...)
		if sum == 1 {
			continue
		}
		for j := range out[i] {
			out[i][j] /= sum
		}
	}
	return out
}
