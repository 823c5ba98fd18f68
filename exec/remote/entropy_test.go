package remote_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/exec"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

func TestBounds(t *testing.T) {
	ln := math.Log
	for _, c := range []struct {
		name      string
		p         []float64 // known, the most likely first
		vocab     int
		low, high float64
	}{
		{"all of a coin", []float64{0.5, 0.5}, 2, 1, 1},
		{"certain", []float64{1}, 100, 0, 0},
		// 1/2 is known of four tokens: at least that another has 1/2 too, at most that three share it.
		{"half", []float64{0.5}, 4, ln(2) / ln(4), (0.5*ln(2) + 0.5*ln(6)) / ln(4)},
		{"uniform", []float64{0.25, 0.25}, 4, 1, 1},
		{"one token", []float64{1}, 1, 0, 0},
	} {
		var top []exec.Candidate
		for i, p := range c.p {
			top = append(top, exec.Candidate{Token: int32(i), LogProb: float32(math.Log(p))})
		}
		low, high := remote.Bounds(top, c.vocab)
		const near = 1e-6 // of float32 logarithms
		if math.Abs(low-c.low) > near || math.Abs(high-c.high) > near {
			t.Errorf("%s: %v to %v, want %v to %v", c.name, low, high, c.low, c.high)
		}
	}
}

// The entropy lies within the bounds, which come closer the more is known.
func TestBoundsHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		vocab := 2 + rng.IntN(300)
		logits := make([]float64, vocab)
		spread := 10 * rng.Float64()
		for i := range logits {
			logits[i] = spread * rng.NormFloat64()
		}
		logProbs, h := remotetest.LogProbs(logits), remotetest.Entropy(logits)
		slices.SortFunc(logProbs, func(a, b float64) int {
			if a > b {
				return -1
			}
			return 1
		})
		var top []exec.Candidate
		before := math.Inf(1)
		for k := 1; k <= vocab; k = k*3 + 1 {
			for len(top) < k {
				top = append(top, exec.Candidate{LogProb: float32(logProbs[len(top)])})
			}
			low, high := remote.Bounds(top, vocab)
			const near = 1e-6
			if low > h+near || high < h-near || high-low > before+near {
				t.Fatalf("%d of %d tokens: %v to %v, entropy %v, before %v apart", k, vocab, low, high, h, before)
			}
			before = high - low
		}
	}
}
