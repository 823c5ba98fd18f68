package cpu

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/native"
)

// scoreTolerance is routerTolerance of router.h: activations of its products are rounded to bf16.
const scoreTolerance = 0.01

// TestStepScores: the score of each request is the router's in double, of the hidden state and the logits
// that the step gives and of the embedding of the token that it sampled.
func TestStepScores(t *testing.T) {
	c := tinyShapes(t)["Qwen3, 6 heads of 2"]
	raw, _, err := random(c).Tensor(c.Expected()[0])
	if err != nil {
		t.Fatal(err)
	}
	embeddings := make([]float32, c.Vocab*c.Hidden)
	model.ToFloat32(embeddings, raw, model.BF16)
	for _, shape := range []router.Shape{
		{Algorithm: router.R2R, Hidden: c.Hidden, Top: 10, Width: 64, Blocks: 2, Expanded: 128},
		router.PublishedShape(router.CITER, c.Hidden), router.PublishedShape(router.CoLLM, c.Hidden),
	} {
		t.Run(shape.Algorithm.String(), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "router")
			if err := router.Make(dir, shape, 5); err != nil {
				t.Fatal(err)
			}
			r, err := router.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			onEachPath(t, func(t *testing.T, p Path) { scoresAgree(t, p, c, r, embeddings) })
		})
	}
}

func scoresAgree(t *testing.T, p Path, c model.Config, r *router.Router, embeddings []float32) {
	device, err := Backend().Open(options(p, 2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(device.Close)
	m, err := device.Load(context.Background(), native.Load{Name: "small", Config: bf16Weights(c),
		Limits: testLimits(16), Source: random(c), Router: r})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{TB: t, model: m, config: c, limits: testLimits(16), filled: make([]int, 4)}
	b := e.batch(piece{0, prompt(c, 1, 9), true}, piece{1, prompt(c, 2, 5), false},
		piece{3, prompt(c, 3, 1), true})
	b.Requests[2].Temperature, b.Requests[2].Random = 3, 1<<63
	e.run(b)
	for _, i := range []int{0, 2} {
		logits := slices.Clone(b.Logits[i*c.Vocab:][:c.Vocab])
		slices.Sort(logits)
		slices.Reverse(logits)
		var top, embedding []float32
		if r.Shape.Algorithm == router.R2R {
			top, embedding = logits[:r.Shape.Top], embeddings[int(b.Results[i].Token)*c.Hidden:][:c.Hidden]
		}
		want := r.Score(b.Hidden[i*c.Hidden:][:c.Hidden], embedding, top)
		if got := b.Results[i].Score; !(math.Abs(got-want) <= scoreTolerance) {
			t.Errorf("request %d: score %v, want %v", i, got, want)
		}
	}
}
