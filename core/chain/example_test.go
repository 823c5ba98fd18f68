package chain_test

import (
	"context"
	"errors"
	"fmt"

	"tokenrouter/core/chain"
)

// The published setting: routing probability 0.35, step times of 6.0 and 27.9 ms, four requests in flight.
func ExampleModel_Solve() {
	m := chain.R2R(0.35, chain.Constant(6_000_000), chain.Constant(27_900_000))
	s, err := m.Solve(4, []int{1, 3}, chain.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.6f tok/s, proven to 1e-9: %v\n", s.ThroughputTokS, s.ErrorBound < 1e-9)
	large := s.Models[1]
	fmt.Printf("large model: %.0f %% busy, %.2f rows a batch, %.0f %% of the tokens\n",
		100*large.Utilisation, large.MeanBatch, 100*large.TokenShare)
	// Output:
	// 207.954041 tok/s, proven to 1e-9: true
	// large model: 64 % busy, 3.19 rows a batch, 35 % of the tokens
}

// The best thresholds for eight requests, over all feasible sets.
func ExampleSearch() {
	m := chain.R2R(0.35, chain.Constant(6_000_000), chain.Constant(27_900_000))
	r, err := chain.Search(context.Background(), m, 8, nil, chain.SearchOptions{Workers: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	best := r.Points[r.Best]
	fmt.Printf("%d sets, best %v: %.4f tok/s\n", len(r.Points), best.Thresholds, best.Solution.ThroughputTokS)
	// Output: 36 sets, best [1 5]: 399.0495 tok/s
}

// Three models mixed with fixed weights; the small one's threshold is held at 1.
func ExampleMixture() {
	m := chain.Mixture([]float64{0.5, 0.3, 0.2}, chain.Constant(6e6), chain.Constant(10e6), chain.Constant(28e6))
	r, err := chain.Search(context.Background(), m, 4, []int{1, 0, 0}, chain.SearchOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range r.Points[:3] {
		fmt.Printf("%v %.4f\n", p.Thresholds, p.Solution.ThroughputTokS)
	}
	fmt.Println("best", r.Points[r.Best].Thresholds)
	// Output:
	// [1 1 1] 282.3112
	// [1 1 2] 282.1252
	// [1 1 3] 255.7366
	// best [1 1 1]
}

// A set under which everybody could wait.
func ExampleFeasible() {
	fmt.Println(chain.Feasible(4, []int{2, 4}))
	// Output: chain: thresholds 2,4 cannot all wait: (2-1)+(4-1) = 4, want below N = 4
}

// Step times that do not fit the quantum are refused, or rounded and reported.
func ExampleOptions() {
	m := chain.R2R(0.35, chain.Constant(6_000_000), chain.Constant(27_900_000))
	m.QuantumNs = 1_000_000
	_, err := m.Solve(1, []int{1, 1}, chain.Options{})
	fmt.Println(errors.Is(err, chain.ErrOffLattice))
	s, err := m.Solve(1, []int{1, 1}, chain.Options{Round: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f tok/s, rounding costs %.2f %%\n", s.ThroughputTokS, -100*s.RoundingCost)
	// Output:
	// true
	// 63.291 tok/s, rounding costs 0.22 %
}

// A chain that falls into two classes: from either of two idle ends no request comes back.
func ExampleClass() {
	m := chain.Model{
		Routing: [][]float64{{0.5, 0.5}, {0, 1}},
		Commit:  [][]float64{{1, 1}, {0, 1}},
		Step:    []chain.StepTime{chain.Constant(5e6), chain.Constant(4e6)},
	}
	s, err := m.Solve(2, []int{2, 1}, chain.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range s.Classes {
		fmt.Printf("chance %.4f: %.0f tok/s\n", c.Weight, c.ThroughputTokS)
	}
	fmt.Printf("expected: %.2f tok/s\n", s.ThroughputTokS)
	// Output:
	// chance 0.3333: 500 tok/s
	// chance 0.6667: 250 tok/s
	// expected: 333.33 tok/s
}
