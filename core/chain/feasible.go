package chain

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInfeasible is wrapped by the error of a threshold set under which all requests could wait for ever.
var ErrInfeasible = errors.New("thresholds are infeasible")

// Feasible reports whether n requests can always make progress under thresholds, one for each model: every
// threshold is at least 1 and the sum of (threshold - 1) is below n (TokenRouter, arXiv 2610.12242, appendix
// D). Otherwise up to that sum of requests could wait with no model allowed to start. The error names n and
// the sum; errors.Is(err, ErrInfeasible) tells an infeasible set from one that is no set at all.
func Feasible(n int, thresholds []int) error {
	if n < 1 {
		return fmt.Errorf("chain: N = %d requests in flight, want at least 1", n)
	}
	if len(thresholds) == 0 {
		return fmt.Errorf("chain: no thresholds, want one for each model")
	}
	sum := 0
	for i, b := range thresholds {
		if b < 1 {
			return fmt.Errorf("chain: threshold of model %d is %d, want at least 1", i, b)
		}
		if b > maxThreshold {
			return fmt.Errorf("chain: threshold of model %d is %d, want at most N = %d: %w", i, b, n, ErrInfeasible)
		}
		sum += b - 1
	}
	if sum < n {
		return nil
	}
	return &infeasibleError{n: n, sum: sum, thresholds: append([]int(nil), thresholds...)}
}

// infeasibleError is the error of thresholds that cannot all wait.
type infeasibleError struct {
	n, sum     int
	thresholds []int
}

func (e *infeasibleError) Error() string {
	terms := make([]string, len(e.thresholds))
	for i, b := range e.thresholds {
		terms[i] = fmt.Sprintf("(%d-1)", b)
	}
	return fmt.Sprintf("chain: thresholds %s cannot all wait: %s = %d, want below N = %d",
		joinInts(e.thresholds), strings.Join(terms, "+"), e.sum, e.n)
}

func (e *infeasibleError) Unwrap() error { return ErrInfeasible }

// maxListed is the most threshold sets that are listed.
const maxListed = 1 << 20

// maxThreshold keeps sums of thresholds far from overflow.
const maxThreshold = 1 << 40

// joinInts writes values as "1,2,3".
func joinInts(values []int) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, ",")
}

// Sets returns every feasible threshold set of models models for n requests in lexicographic order. fixed,
// if not nil, holds one value a model: 0 leaves the threshold free, another value holds it. There are
// binomial(n-1+models, models) sets if nothing is held. It fails if no set is feasible, or if more than
// 2^20 are.
func Sets(n, models int, fixed []int) ([][]int, error) {
	least := make([]int, models)
	for i := range least {
		least[i] = 1
	}
	if fixed != nil {
		if len(fixed) != models {
			return nil, fmt.Errorf("chain: %d thresholds held or free, want %d, one a model", len(fixed), models)
		}
		for i, b := range fixed {
			if b < 0 {
				return nil, fmt.Errorf("chain: threshold of model %d is held at %d, want 1 or more, or 0 for free", i, b)
			}
			least[i] = max(b, 1)
		}
	}
	if err := Feasible(n, least); err != nil {
		return nil, err
	}
	slack := n - 1
	for _, b := range least {
		slack -= b - 1
	}
	free := 0
	count := 1.0
	for i := range models {
		if fixed == nil || fixed[i] == 0 {
			free++
			count *= float64(slack+free) / float64(free)
		}
	}
	if count > maxListed {
		return nil, fmt.Errorf("chain: %.0f feasible threshold sets, want at most %d; hold some", count, maxListed)
	}
	var sets [][]int
	current := append([]int(nil), least...)
	var extend func(i, slack int)
	extend = func(i, slack int) {
		if i == models {
			sets = append(sets, append([]int(nil), current...))
			return
		}
		most := 1 + slack
		if fixed != nil && fixed[i] > 0 {
			extend(i+1, slack)
			return
		}
		for b := 1; b <= most; b++ {
			current[i] = b
			extend(i+1, slack-(b-1))
		}
	}
	extend(0, slack)
	return sets, nil
}
