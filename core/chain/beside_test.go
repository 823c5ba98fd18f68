package chain

import (
	"math"
	"slices"
	"testing"
)

// TestBesideHand: two requests that never change models after the first step, with steps of 4 and of 6 ms
// that take 2 and 1.5 times as long side by side.
//
// The small model does 4 ms in 8, the large one 6 ms in 9: in 72 ms they make 9 and 8 tokens. Of the 60
// quanta of the large one's step 53.3 are done when the small one's ends, which rounds.
func TestBesideHand(t *testing.T) {
	m := Model{
		Routing: [][]float64{{0, 0.5, 0.5}, {0, 1, 0}, {0, 0, 1}}, Commit: slices.Repeat([][]float64{{0, 1, 1}}, 3),
		Step:      []StepTime{Constant(1e6), Constant(4e6), Constant(6e6)},
		QuantumNs: 1e5, Beside: []float64{1, 2, 1.5},
	}
	s, err := m.Solve(2, []int{1, 1, 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, c := range s.Classes {
		got = append(got, c.ThroughputTokS)
	}
	slices.Sort(got)
	// Both at the large model: 2 in 6 ms, alone. Both at the small one: 2 in 4 ms. One each: 17 in 72 ms.
	want := []float64{17 / 0.072, 2 / 0.006, 2 / 0.004}
	if len(got) != 3 {
		t.Fatalf("classes with %v tok/s, want 3", got)
	}
	for i := range got {
		within(t, "tok/s", got[i], want[i], 1e-3)
	}
}

// TestBesideNobody: where models never run together, factors change nothing: one request alone, or two that
// go to and fro together.
func TestBesideNobody(t *testing.T) {
	together := Model{Routing: [][]float64{{0, 1}, {1, 0}}, Commit: [][]float64{{1, 1}, {1, 1}},
		Step: []StepTime{Constant(2e6), Constant(3e6)}}
	for _, c := range []struct {
		name string
		m    Model
		n    int
		want float64
	}{
		// 1 / (6.0 + 0.35 * 27.9) tokens per ms.
		{"one request", figure10(0.35), 1, 1e3 / (6 + 0.35*27.9)},
		// 4 tokens in 5 ms.
		{"to and fro", together, 2, 800},
	} {
		m := c.m
		m.Beside = []float64{3, 5}
		s, err := m.Solve(c.n, []int{1, 1}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(s.ThroughputTokS/c.want-1) > 1e-9 || s.Models[0].BesideShare != 0 ||
			s.Models[1].BesideShare != 0 {
			t.Errorf("%s: %v tok/s, %+v, want %v and no share beside others", c.name, s.ThroughputTokS, s.Models,
				c.want)
		}
	}
}

// TestBesideShare: two requests that move with probability 1/2 each 1 ms are apart half of the time; each
// model is busy in 3/4 of all steps, and beside the other in 1/2 of them: 2/3 of its time.
func TestBesideShare(t *testing.T) {
	m := Mixture([]float64{0.5, 0.5}, Constant(1e6), Constant(1e6))
	s := solve(t, m, 2, 1, 1)
	for _, f := range s.Models {
		within(t, "utilisation", f.Utilisation, 0.75, 1e-12)
		within(t, "share", f.BesideShare, 2.0/3, 1e-12)
	}
}

func TestBesideRefused(t *testing.T) {
	for _, c := range []struct {
		factors []float64
		want    string
	}{
		{[]float64{2}, "1 factors beside other models, want 2, one a model"},
		{[]float64{2, 0.9}, "factor of model 1 beside others = 0.9, want 1 to 1000"},
		{[]float64{math.NaN(), 1}, "factor of model 0 beside others = NaN"},
	} {
		m := figure10(0.35)
		m.Beside = c.factors
		_, err := m.Solve(2, []int{1, 1}, Options{})
		wantError(t, err, c.want)
	}
}

// TestEstimateQuantum: of the shortest step, 6.0 and 0.0001 ms, at most a hundredth.
func TestEstimateQuantum(t *testing.T) {
	if got := figure10(0.35).EstimateQuantum(4); got != 50_000 {
		t.Errorf("%d ns for steps from 6 ms, want 50000", got)
	}
	if got := R2R(0.5, Constant(99), Constant(5e6)).EstimateQuantum(4); got != 1 {
		t.Errorf("%d ns for steps from 99 ns, want 1", got)
	}
	if got := R2R(0.5, Affine(1e6, -1e5), Constant(5e6)).EstimateQuantum(5); got != 5000 {
		t.Errorf("%d ns for steps from 0.5 ms, want 5000", got)
	}
}
