package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// threads returns n workers, closed at the end of the test.
func threads(t testing.TB, n int) *workers {
	t.Helper()
	w, err := newWorkers(n, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eed)) }

// toBF16 rounds to the nearest bf16, ties to even; for finite values only.
func toBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func fromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// normals are n draws of a normal law with the given deviation.
func normals(r *rand.Rand, n int, deviation float64) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64() * deviation)
	}
	return s
}

// activations are rows of depth random values, padded with zeros to stride.
func activations(r *rand.Rand, rows, depth, stride int) []uint16 {
	x := make([]uint16, rows*stride)
	for m := range rows {
		for k := range depth {
			x[m*stride+k] = toBF16(float32(r.NormFloat64()))
		}
	}
	return x
}

// randomWeights packs a random matrix, closed at the end of the test.
func randomWeights(t testing.TB, r *rand.Rand, columns, depth int) *weights {
	t.Helper()
	s := make([]uint16, columns*depth)
	for i := range s {
		s[i] = toBF16(float32(r.NormFloat64() * 0.05))
	}
	w, err := newWeights(columns, depth, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// sameBits reports the first index at which a and b differ in any bit, or -1.
func sameBits(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

func isNaN(f float32) bool { return f != f }
