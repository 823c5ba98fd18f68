package cpu

import (
	"math"
	"testing"

	"tokenrouter/exec/model"
)

// forwardTolerance bounds |x - exact| for logits and hidden numbers, over the root mean square of the hidden
// ones: a number that the device rounds to another bf16 than the reference is off by 2^-8 of its size.
const forwardTolerance = 0.02

func TestForwardAgainstDouble(t *testing.T) {
	eachShape(t, func(t *testing.T, p Path, c model.Config) {
		tokens := prompt(c, 1, 21)
		want, wantHidden := newPlain(t, c, random(c)).logits(tokens)
		e := newEngine(t, options(p, 2), bf16Weights(c), testLimits(16), random(c))
		for m, token := range tokens {
			b := e.batch(piece{0, []int32{token}, true})
			e.run(b)
			nearAll(t, "logits", m, b.Logits, want[m], wantHidden[m])
			nearAll(t, "hidden", m, b.Hidden, wantHidden[m], wantHidden[m])
		}
	})
}

func nearAll(t *testing.T, what string, position int, got []float32, want, hidden []float64) {
	t.Helper()
	squares, miss := 0.0, 0.0
	for _, h := range hidden {
		squares += h * h
	}
	for i, w := range want {
		miss = max(miss, math.Abs(float64(got[i])-w))
	}
	size := math.Sqrt(squares / float64(len(hidden)))
	if !(miss <= forwardTolerance*size) {
		t.Fatalf("%s at position %d are off by %v, want at most %v x %v", what, position, miss, forwardTolerance,
			size)
	}
}
