package cpu

import (
	"math"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/native"
)

// Bounds on |x - exact| for logits and hidden numbers, over the root mean square of the hidden ones: a number
// that the device rounds to another bf16 than the reference is off by 2^-8 of its size. With AMX queries and
// weights of attention are rounded besides. With int8 weights and activations are off by 1/254 of the largest
// of their group.
const forwardTolerance, forwardTileTolerance, forwardInt8Tolerance = 0.02, 0.05, 0.25

func toleranceOf(p Path) float64 {
	if p == AMX {
		return forwardTileTolerance
	}
	return forwardTolerance
}

// exact is the reference of a source of weights, rounding as the device does.
func exact(t testing.TB, c model.Config, s native.Source) *reference.Model {
	weights := map[string][]float32{}
	for _, e := range c.Expected() {
		raw, kind, err := s.Tensor(e)
		if err != nil {
			t.Fatal(err)
		}
		weights[e.Name] = make([]float32, int64(len(raw))/kind.Bytes())
		model.ToFloat32(weights[e.Name], raw, kind)
	}
	byName := func(name string) []float32 { return weights[name] }
	return &reference.Model{Config: c, Round: true, Weights: byName}
}

// TestForwardAgainstDouble: every path and shape, token by token.
func TestForwardAgainstDouble(t *testing.T) {
	eachShape(t, func(t *testing.T, p Path, c model.Config) {
		tokens := prompt(c, 1, 21)
		want, wantHidden := exact(t, c, random(c)).Logits(tokens)
		e := newEngine(t, options(p, 2), bf16Weights(c), testLimits(16), random(c))
		for m, token := range tokens {
			b := e.batch(piece{0, []int32{token}, true})
			e.run(b)
			nearAll(t, "logits", m, b.Logits, want[m], wantHidden[m], toleranceOf(p))
			nearAll(t, "hidden", m, b.Hidden, wantHidden[m], wantHidden[m], toleranceOf(p))
		}
	})
}

// TestInt8AgainstDouble: weights of 8 bits are near to what they were made of.
func TestInt8AgainstDouble(t *testing.T) {
	eachShape(t, func(t *testing.T, p Path, c model.Config) {
		tokens := prompt(c, 1, 21)
		want, hidden := exact(t, c, random(c)).Logits(tokens)
		for _, group := range []int{0, 64} {
			format := native.Config{Model: c, Weights: native.WeightsInt8, GroupInputs: group}
			e := newEngine(t, options(p, 2), format, testLimits(16), random(c))
			got := e.forward(piece{0, tokens, true})[0]
			nearAll(t, "logits", 20, got, want[20], hidden[20], forwardInt8Tolerance)
		}
	})
}

func nearAll(t *testing.T, what string, position int, got []float32, want, hidden []float64, bound float64) {
	t.Helper()
	squares, miss := 0.0, 0.0
	for _, h := range hidden {
		squares += h * h
	}
	for i, w := range want {
		miss = max(miss, math.Abs(float64(got[i])-w))
	}
	size := math.Sqrt(squares / float64(len(hidden)))
	if !(miss <= bound*size) {
		t.Fatalf("%s at position %d are off by %v, want at most %v x %v", what, position, miss, bound, size)
	}
}

// formats are the ways in which a model of the given shape can be kept.
func formats(c model.Config) map[string]native.Config {
	return map[string]native.Config{
		"bf16":       bf16Weights(c),
		"int8":       {Model: c, Weights: native.WeightsInt8},
		"int8 by 64": {Model: c, Weights: native.WeightsInt8, GroupInputs: 64},
	}
}

// TestSameBits: the logits of a request have the same bits however its prompt is cut, whatever steps with
// it, for any page size and number of threads.
func TestSameBits(t *testing.T) {
	eachShape(t, func(t *testing.T, p Path, c model.Config) {
		for name, format := range formats(c) {
			t.Run(name, func(t *testing.T) { sameBitsEverywhere(t, p, format) })
		}
	})
}

func sameBitsEverywhere(t *testing.T, p Path, c native.Config) {
	const length = 70
	tokens := prompt(c.Model, 1, length)
	alone := newEngine(t, options(p, 1), c, testLimits(16), random(c.Model))
	want := alone.forward(piece{0, tokens, true})[0]
	if slices.ContainsFunc(want, isNaN) {
		t.Fatal("a logit is NaN")
	}
	for _, test := range []struct {
		name                string
		threads, pageTokens int
		chunks              []int // of the prompt
		beside              bool  // other requests are in every step
	}{
		{"2 threads", 2, 16, []int{length}, false},
		{"3 threads, long pages, in two parts", 3, 64, []int{33, length - 33}, false},
		{"2 threads, in parts, beside others", 2, 32, []int{1, 15, 17, 4, length - 37}, true},
		{"1 thread, then token by token", 1, 48, []int{length - 3, 1, 1, 1}, true},
	} {
		e := newEngine(t, options(p, test.threads), c, testLimits(test.pageTokens), random(c.Model))
		var got []float32
		for i, rest := 0, tokens; len(rest) > 0; i++ {
			n := test.chunks[i]
			pieces := []piece{{2, rest[:n], true}}
			if test.beside {
				pieces = append([]piece{{0, prompt(c.Model, uint64(i), 1+3*i), i%2 == 0}}, pieces...)
				pieces = append(pieces, piece{1, prompt(c.Model, uint64(9+i), 8), true})
			}
			logits := e.forward(pieces...)
			rest = rest[n:]
			got = logits[len(logits)-1]
			if test.beside {
				got = logits[1]
			}
		}
		if at := sameBits(got, want); at >= 0 {
			t.Errorf("%s: logit %d = %v, want %v", test.name, at, got[at], want[at])
		}
	}
}
