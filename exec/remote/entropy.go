package remote

import (
	"math"

	"tokenrouter/exec"
)

// Bounds are the least and the greatest entropy, divided by ln V, of a distribution over V tokens of which
// the most likely ones are known. With S the sum of the known probabilities, r = 1 - S, p_K the least of them
// and H their own part of the entropy, it is at least H + r ln(1/p_K), as no other is likelier than p_K, and
// at most H + r ln((V-K)/r), as if all others were equally likely.
func Bounds(top []exec.Candidate, vocab int) (low, high float64) {
	if vocab < 2 {
		return 0, 0
	}
	sum, entropy, least := 0.0, 0.0, 1.0
	for _, t := range top {
		p := math.Exp(float64(t.LogProb))
		sum += p
		if p > 0 {
			entropy -= p * float64(t.LogProb)
			least = min(least, p)
		}
	}
	unit := math.Log(float64(vocab))
	rest, others := 1-sum, vocab-len(top)
	if rest <= 0 || others <= 0 { // nothing is left but what rounding leaves
		return min(entropy/unit, 1), min(entropy/unit, 1)
	}
	low = entropy + rest*math.Log(1/least)
	high = entropy + rest*math.Log(float64(others)/rest)
	return min(low/unit, 1), min(max(low, high)/unit, 1)
}

// topSteps are how many most likely tokens are asked for in turn until the bounds of an entropy decide; at
// last all.
var topSteps = []int{20, 200, 2000}

// decides reports whether a threshold lies outside of the bounds: the entropy is above it or not, whatever it
// is.
func decides(low, high, threshold float64) bool { return (low > threshold) == (high > threshold) }
