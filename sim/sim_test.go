package sim_test

import (
	"context"
	"math"
	"testing"

	"tokenrouter/sim"
)

// TestThroughputIsThePredicted compares the simulator with the exact chain (values of
// TokenRouter, appendix D, as computed exactly: 6.0 and 27.9 ms, p = 0.35).
func TestThroughputIsThePredicted(t *testing.T) {
	for _, c := range []struct {
		n          int
		thresholds []int
		want       float64
	}{
		{1, []int{1, 1}, 63.431652},
		{2, []int{1, 1}, 98.956913},
		{2, []int{1, 2}, 110.322694},
		{3, []int{1, 2}, 158.117117},
		{4, []int{1, 3}, 207.954041},
		{4, []int{1, 4}, 190.742172},
		{8, []int{1, 5}, 399.049502},
		{8, []int{1, 8}, 332.445060},
	} {
		config := r2r(t, c.n, c.thresholds, 2000, 1000)
		if _, err := sim.Run(context.Background(), config); err != nil {
			t.Fatal(err)
		}
		got := config.Meter.Summary().ThroughputTokS
		t.Logf("n=%d %v: %.3f, want %.3f (%+.3f %%)", c.n, c.thresholds, got, c.want, 100*(got/c.want-1))
		if math.Abs(got/c.want-1) > 0.003 {
			t.Errorf("n=%d thresholds %v: %.3f tok/s, want %.3f", c.n, c.thresholds, got, c.want)
		}
	}
}
