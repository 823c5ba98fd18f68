package chain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
)

// Point is one threshold set of a search.
type Point struct {
	// Thresholds holds the threshold of each model.
	Thresholds []int
	// Feasible is false if all requests could wait for ever under Thresholds; Solution is nil then.
	Feasible bool
	// Solution holds the figures of a feasible set.
	Solution *Solution
}

// SearchOptions say what Search looks at and how.
type SearchOptions struct {
	// Options hold for every threshold set.
	Options
	// Workers is the number of sets solved at a time; 0 stands for 1. The result does not depend on it.
	Workers int
	// Infeasible lists the infeasible sets of thresholds from 1 to N too, marked.
	Infeasible bool
	// Progress, if not nil, is called after every feasible set with the number done and the number in all;
	// never by two goroutines at a time.
	Progress func(done, total int)
}

// SearchResult is the outcome of Search.
type SearchResult struct {
	// Points holds a point for each threshold set in lexicographic order.
	Points []Point
	// Best is the index in Points of the set with the largest throughput. Of sets whose throughputs do not
	// differ by more than their error bounds it is the first.
	Best int
}

// Search solves m with n requests in flight for every feasible threshold set (Sets). fixed holds some
// thresholds, 0 leaves one free, nil leaves all free. It fails if any set fails, with the error of the first
// such set in order, or if ctx ends; ctx is looked at between sets.
func Search(ctx context.Context, m Model, n int, fixed []int, o SearchOptions) (*SearchResult, error) {
	if err := m.Validate(n); err != nil {
		return nil, err
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("chain: %d workers, want at least 1, or 0 for 1", o.Workers)
	}
	sets, err := Sets(n, len(m.Routing), fixed)
	if err != nil {
		return nil, err
	}
	solutions, err := solveSets(ctx, m, n, sets, o)
	if err != nil {
		return nil, err
	}
	r := &SearchResult{Best: -1}
	for i, set := range sets {
		r.Points = append(r.Points, Point{Thresholds: set, Feasible: true, Solution: solutions[i]})
	}
	if o.Infeasible {
		r.Points, err = withInfeasible(r.Points, n, len(m.Routing), fixed)
		if err != nil {
			return nil, err
		}
	}
	for i, p := range r.Points {
		if p.Feasible && (r.Best < 0 || better(p.Solution, r.Points[r.Best].Solution)) {
			r.Best = i
		}
	}
	return r, nil
}

// Plan returns the best thresholds for every number of requests in flight: row n-1 holds those of n
// requests, n from 1 to most, as Search finds them. fixed must be feasible for one request, so it can hold
// thresholds at 1 only, or be nil. Progress counts the sets of all rows.
func Plan(ctx context.Context, m Model, most int, fixed []int, o SearchOptions) ([][]int, error) {
	if err := m.Validate(most); err != nil {
		return nil, err
	}
	total := 0
	for n := 1; n <= most; n++ {
		sets, err := Sets(n, len(m.Routing), fixed)
		if err != nil {
			return nil, err
		}
		total += len(sets)
	}
	progress, before := o.Progress, 0
	o.Infeasible = false
	var plan [][]int
	for n := 1; n <= most; n++ {
		if progress != nil {
			o.Progress = func(done, _ int) { progress(before+done, total) }
		}
		r, err := Search(ctx, m, n, fixed, o)
		if err != nil {
			return nil, fmt.Errorf("N = %d: %w", n, err)
		}
		before += len(r.Points)
		plan = append(plan, r.Points[r.Best].Thresholds)
	}
	return plan, nil
}

// better reports whether a's throughput is above b's by more than the errors of both.
func better(a, b *Solution) bool {
	slack := math.Max(a.ErrorBound*a.ThroughputTokS+b.ErrorBound*b.ThroughputTokS, 1e-12*b.ThroughputTokS)
	return a.ThroughputTokS-b.ThroughputTokS > slack
}

// solveSets solves every set. Workers take sets in order, so that when one fails all earlier ones are solved
// or fail too, and the error returned is that of the first in order.
func solveSets(ctx context.Context, m Model, n int, sets [][]int, o SearchOptions) ([]*Solution, error) {
	solutions := make([]*Solution, len(sets))
	failures := make([]error, len(sets))
	var lock sync.Mutex
	next, done, failed := 0, 0, false
	work := func() {
		s, err := newSolver(m, n, o.Options)
		for {
			lock.Lock()
			at := next
			next++
			stop := failed || at >= len(sets) || ctx.Err() != nil
			lock.Unlock()
			if stop {
				return
			}
			if err == nil {
				solutions[at], failures[at] = s.solve(sets[at])
			} else {
				failures[at] = err
			}
			lock.Lock()
			failed = failed || failures[at] != nil
			done++
			if o.Progress != nil {
				o.Progress(done, len(sets))
			}
			lock.Unlock()
		}
	}
	var group sync.WaitGroup
	for range min(o.Workers, len(sets)) - 1 {
		group.Go(work)
	}
	work() // one worker is the caller itself, with the priority that it has
	group.Wait()
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("thresholds %s: %w", joinInts(sets[i]), err)
		}
	}
	return solutions, ctx.Err()
}

// withInfeasible returns all sets of thresholds from 1 to n that keep to fixed, in lexicographic order, with
// the points of the feasible ones.
func withInfeasible(points []Point, n, models int, fixed []int) ([]Point, error) {
	total := 1.0
	for i := range models {
		if fixed == nil || fixed[i] == 0 {
			total *= float64(n)
		}
	}
	if total > maxListed {
		return nil, fmt.Errorf("chain: %.0f threshold sets with infeasible ones, want at most %d", total, maxListed)
	}
	var all []Point
	set := make([]int, models)
	var extend func(i int)
	extend = func(i int) {
		if i == models {
			if errors.Is(Feasible(n, set), ErrInfeasible) {
				all = append(all, Point{Thresholds: append([]int(nil), set...)})
			} else {
				all = append(all, points[0])
				points = points[1:]
			}
			return
		}
		from, to := 1, n
		if fixed != nil && fixed[i] > 0 {
			from, to = fixed[i], fixed[i]
		}
		for b := from; b <= to; b++ {
			set[i] = b
			extend(i + 1)
		}
	}
	extend(0)
	return all, nil
}
