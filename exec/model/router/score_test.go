package router

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// golden is testdata/scores.json: scores that PyTorch computes in float64; testdata/make.py has the networks.
type golden struct {
	Hidden, Embeddings, Logits [][]float32
	R2R, CITER, CoLLM          []float64
}

func readGolden(t *testing.T) golden {
	t.Helper()
	text, err := os.ReadFile("testdata/scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func open(t *testing.T, dir string) *Router {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScoreAsPyTorch: folders written from state_dicts score as the modules that they come from. CITER's
// folded weights are rounded to float32, the others are exact.
func TestScoreAsPyTorch(t *testing.T) {
	g := readGolden(t)
	for _, c := range []struct {
		algorithm Algorithm
		want      []float64
		tolerance float64
	}{{R2R, g.R2R, 1e-13}, {CITER, g.CITER, 1e-6}, {CoLLM, g.CoLLM, 1e-13}} {
		t.Run(c.algorithm.String(), func(t *testing.T) {
			r := open(t, filepath.Join("testdata", c.algorithm.String()))
			if len(c.want) != 8 {
				t.Fatalf("%d scores, want 8", len(c.want))
			}
			for i, want := range c.want {
				got := r.Score(g.Hidden[i], g.Embeddings[i], g.Logits[i])
				if math.Abs(got-want) > c.tolerance {
					t.Errorf("score %d is %v, want %v", i, got, want)
				}
			}
		})
	}
}

// TestScoreInputs: R2R reads [h, e, top(z)] in this order, and raw logits: one constant more changes the
// score, as it would not after a softmax.
func TestScoreInputs(t *testing.T) {
	g := readGolden(t)
	r := open(t, "testdata/r2r")
	h, e, z := g.Hidden[0], g.Embeddings[0], g.Logits[0]
	base := r.Score(h, e, z)
	if swapped := r.Score(e, h, z); math.Abs(swapped-base) < 1e-3 {
		t.Errorf("hidden state and embedding exchanged: %v, as before", swapped)
	}
	shifted := slices.Clone(z)
	for i := range shifted {
		shifted[i]++
	}
	if moved := r.Score(h, e, shifted); math.Abs(moved-base) < 1e-3 {
		t.Errorf("all logits one higher: %v, as before", moved)
	}
}

// TestScoreByHand: sigmoid(2 * 0.5 - 1 * 0.25) = sigmoid(0.75) = 0.679178699 for Co-LLM; CITER is written out
// below.
func TestScoreByHand(t *testing.T) {
	deferral := &Router{Shape: Shape{Algorithm: CoLLM, Hidden: 2},
		Tensors: []Tensor{{Output, 0, 1, 2, []float32{2, -1}}}}
	if got := deferral.Score([]float32{0.5, 0.25}, nil, nil); math.Abs(got-0.679178699) > 1e-9 {
		t.Errorf("Co-LLM's score is %v, want 0.679178699", got)
	}
	// One hidden number x = 1.5, two inner ones: 2x + 1 = 4 and -x = -1.5. BatchNorm with mean (1, 0), variance
	// (4, 1) less epsilon, weight (2, 1), bias (0.5, 0): (4 - 1) / 2 * 2 + 0.5 = 3.5 and -1.5, which ReLU takes
	// to 0. mlp.4 = (0.5, 7) with bias 0.25: 2; linear = 1.5 with bias -2: 1. sigmoid(1) = 0.731058579.
	c := &Router{Shape: Shape{Algorithm: CITER, Hidden: 1, Width: 2}}
	err := c.fold(map[string][]float32{
		"mlp.0.weight": {2, -1}, "mlp.0.bias": {1, 0}, "mlp.1.weight": {2, 1}, "mlp.1.bias": {0.5, 0},
		"mlp.1.running_mean": {1, 0}, "mlp.1.running_var": {4 - normEpsilon, 1 - normEpsilon},
		"mlp.4.weight": {0.5, 7}, "mlp.4.bias": {0.25}, "linear.weight": {1.5}, "linear.bias": {-2}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Score([]float32{1.5}, nil, nil); math.Abs(got-0.731058579) > 1e-7 {
		t.Errorf("CITER's score is %v, want 0.731058579", got)
	}
}

// TestScoreMisuse: inputs of another width than the router's are a mistake of the caller.
func TestScoreMisuse(t *testing.T) {
	g := readGolden(t)
	for _, call := range []func(){
		func() { open(t, "testdata/collm").Score(g.Hidden[0][1:], nil, nil) },
		func() { open(t, "testdata/r2r").Score(g.Hidden[0], nil, g.Logits[0]) },
		func() { open(t, "testdata/r2r").Score(g.Hidden[0], g.Embeddings[0], g.Logits[0][1:]) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		}()
	}
}
