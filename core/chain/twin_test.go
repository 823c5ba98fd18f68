package chain

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// randomModel draws a small model whose probabilities are fourths, many of them 0 or 1, and whose steps
// take 1 to 4 ticks of 1 ms, by batch size in some models.
func randomModel(r *rand.Rand, n int) Model {
	models := 1 + r.IntN(3)
	m := Model{Start: r.IntN(models)}
	for range models {
		row, commit := make([]float64, models), make([]float64, models)
		parts := []int{1, 2, 4}[r.IntN(3)]
		for range parts {
			row[r.IntN(models)] += 1 / float64(parts)
		}
		for j := range commit {
			commit[j] = float64(r.IntN(4)) / 2
		}
		m.Routing, m.Commit = append(m.Routing, row), append(m.Commit, commit)
		var table []int64
		for range n {
			table = append(table, int64(1+r.IntN(4))*1e6)
		}
		switch r.IntN(3) {
		case 0:
			m.Step = append(m.Step, Table(table...))
		case 1:
			m.Step = append(m.Step, Affine(int64(r.IntN(3))*1e6, 1e6))
		default:
			m.Step = append(m.Step, Constant(table[0]))
		}
	}
	return m
}

// randomThresholds draws a feasible set.
func randomThresholds(r *rand.Rand, n, models int) []int {
	b := make([]int, models)
	slack := n - 1
	for i := range b {
		extra := r.IntN(slack + 1)
		b[i] = 1 + extra
		slack -= extra
	}
	return b
}

// TestTwin compares Solve with the rational twin on many small models.
func TestTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(2610, 12242))
	compared, reducible, several := 0, 0, 0
	for compared < 400 {
		n := 1 + r.IntN(4)
		m := randomModel(r, n)
		b := randomThresholds(r, n, len(m.Routing))
		s, err := m.Solve(n, b, Options{MaxStates: 48})
		if errors.Is(err, ErrTooManyStates) {
			continue // too large for the twin
		}
		if err != nil {
			t.Fatal(err)
		}
		compared++
		ticks := func(model, rows int) int {
			ns, _ := m.Step[model].At(rows)
			return int(ns / 1e6)
		}
		twin := newOracle(m.Routing, m.Commit, ticks, n, m.Start, b)
		perTick, _ := twin.throughput().Float64()
		want := perTick * 1000
		name := fmt.Sprintf("N=%d B=%v %+v", n, b, m)
		if math.Abs(s.ThroughputTokS-want) > 1e-12*want {
			t.Errorf("%s: %.15g tok/s, want %.15g", name, s.ThroughputTokS, want)
		}
		if want < s.LowTokS*(1-1e-15) || want > s.HighTokS*(1+1e-15) {
			t.Errorf("%s: %.17g is outside the proven interval %.17g to %.17g", name, want, s.LowTokS, s.HighTokS)
		}
		if s.States != len(twin.list) {
			t.Errorf("%s: %d states, want %d", name, s.States, len(twin.list))
		}
		if s.TransientStates > 0 {
			reducible++
		}
		if len(s.Classes) > 1 {
			several++
		}
	}
	if reducible < 20 || several < 5 {
		t.Errorf("only %d chains with transient states and %d with several classes", reducible, several)
	}
}

// TestTwinDecimal does so with the probabilities of the paper and with step times that depend on the batch.
func TestTwinDecimal(t *testing.T) {
	cases := []struct {
		name string
		m    Model
		n    int
		b    []int
	}{
		{"R2R", R2R(0.35, Constant(1e6), Constant(3e6)), 3, []int{1, 2}},
		{"R2R affine", R2R(0.35, Affine(0, 1e6), Affine(2e6, 1e6)), 3, []int{1, 1}},
		{"R2R table", R2R(0.35, Table(1e6, 1e6, 2e6), Table(3e6, 5e6, 4e6)), 3, []int{1, 2}},
		{"ME", Mixture([]float64{0.5, 0.3, 0.2}, Constant(1e6), Constant(2e6), Constant(3e6)), 2, []int{1, 1, 2}},
		{"nearly never", R2R(1e-9, Constant(1e6), Constant(3e6)), 3, []int{2, 2}},
		{"nearly always", R2R(1-1e-9, Constant(1e6), Constant(3e6)), 3, []int{1, 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := c.m.Solve(c.n, c.b, Options{})
			if err != nil {
				t.Fatal(err)
			}
			ticks := func(model, rows int) int {
				ns, _ := c.m.Step[model].At(rows)
				return int(ns / 1e6)
			}
			perTick, _ := newOracle(c.m.Routing, c.m.Commit, ticks, c.n, 0, c.b).throughput().Float64()
			if want := perTick * 1000; math.Abs(s.ThroughputTokS-want) > 1e-13*want {
				t.Errorf("%.15g tok/s, want %.15g", s.ThroughputTokS, want)
			}
		})
	}
}
