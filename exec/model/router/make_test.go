package router

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestPublishedShape(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		want  int64 // numbers that training finds
	}{
		{PublishedShape(R2R, 1536), 56_302_081}, // the paper's "56M" for DeepSeek-R1-Distill-Qwen-1.5B
		{PublishedShape(R2R, 1024), 54_677_505},
		{PublishedShape(CITER, 1536), 9_449_473}, // 4 h^2 + 8 h + 1
		{PublishedShape(CITER, 1024), 4_202_497},
		{PublishedShape(CoLLM, 4096), 4096},
	} {
		got := int64(0)
		for _, p := range c.shape.table() {
			size := int64(1)
			for _, n := range p.shape {
				size *= n
			}
			if p.name != "mlp.1.running_mean" && p.name != "mlp.1.running_var" {
				got += size
			}
		}
		if got != c.want {
			t.Errorf("%v has %d weights, want %d", c.shape, got, c.want)
		}
	}
}

// TestMakeScores: scores of made routers lie on both sides of the threshold that is written with them, most
// not far off.
func TestMakeScores(t *testing.T) {
	for _, s := range []Shape{{R2R, 32, 20, 48, 6, 192}, PublishedShape(CITER, 64), PublishedShape(CoLLM, 64)} {
		for seed := range uint64(3) {
			dir := t.TempDir()
			if err := Make(dir, s, seed); err != nil {
				t.Fatal(err)
			}
			r := open(t, dir)
			if !r.HasThreshold || r.Threshold != 0.5 || r.Shape != s {
				t.Fatalf("%v with threshold %v, want %v with 0.5", r.Shape, r.Threshold, s)
			}
			random := rand.New(rand.NewPCG(seed, 1))
			var scores []float64
			for range 100 {
				h, e, z := normal(random, s.Hidden), normal(random, s.Hidden), normal(random, s.Top)
				for i := range z {
					z[i] = 15 + 4*z[i]
				}
				slices.SortFunc(z, func(a, b float32) int { return int(math.Copysign(1, float64(b-a))) })
				scores = append(scores, r.Score(h, e, z))
			}
			slices.Sort(scores)
			if low, high := scores[10], scores[90]; !(0.02 < low && low < 0.5 && 0.5 < high && high < 0.98) {
				t.Errorf("%v, seed %d: 80 %% of the scores are %v to %v", s, seed, low, high)
			}
		}
	}
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// TestMakeBytes: the same shape and seed give the same folder, another seed another.
func TestMakeBytes(t *testing.T) {
	made := func(seed uint64) []byte {
		dir := t.TempDir()
		if err := Make(dir, tinyShapes[0], seed); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, weightsFile))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	if first := made(1); !bytes.Equal(first, made(1)) || bytes.Equal(first, made(2)) {
		t.Error("bytes do not follow the seed")
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, s := range []Shape{{}, {Algorithm: 4, Hidden: 6}, {Algorithm: CoLLM}, {Algorithm: CITER, Hidden: 6},
		{R2R, 6, 10, 8, 0, 12}, {R2R, 6, 10, 8, 2000, 12}, {Algorithm: CoLLM, Hidden: 6, Width: 6}} {
		dir := filepath.Join(t.TempDir(), "new")
		if err := Make(dir, s, 1); err == nil {
			t.Errorf("%v was made", s)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v left something behind", s)
		}
	}
	dir := t.TempDir()
	if err := Make(dir, tinyShapes[2], 1); err != nil {
		t.Fatal(err)
	}
	if err := Make(dir, tinyShapes[2], 2); !errors.Is(err, fs.ErrExist) {
		t.Errorf("written over a router: %v, want %v", err, fs.ErrExist)
	}
}
