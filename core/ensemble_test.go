package core_test

import (
	"math"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// TestEnsemble: ME with weights 0.5, 0.3, 0.2 (TokenRouter, arXiv 2610.12242, section 6). Of
// all tokens, and of first tokens, each model makes its share; the answers' histogram is the
// mixture of the models' distributions; runs at a model have mean length 1/(1 - weight): 2.0,
// 1.43, 1.25. Bounds are four standard deviations of the binomial.
func TestEnsemble(t *testing.T) {
	weights := []float64{0.5, 0.3, 0.2}
	me, err := route.NewME(weights)
	if err != nil {
		t.Fatal(err)
	}
	// Each model's distribution over the tokens 0, 1, 2.
	p := [][]float64{{0.7, 0.2, 0.1}, {0.1, 0.8, 0.1}, {0.25, 0.25, 0.5}}
	const requests, tokens = 200, 100
	w := newWorld(t, core.Config{
		Models: models(3), Policy: core.Eager{}, Algorithm: me, Requests: requests, LiveMax: 16, ContextMax: 200,
	}, 1*ms, 2*ms, 5*ms)
	w.result = func(id uint64, _, position, model int) core.Result {
		u := uniform(id, uint64(position), uint64(model), 1)
		token := int32(0)
		for ; token < 2 && u >= p[model][token]; token++ {
			u -= p[model][token]
		}
		return core.Result{Token: token, Draw: uniform(id, uint64(position), 2)}
	}
	var made, first, seen [3]int
	runs, models := [3]int{}, map[uint64][]int32{}
	w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
		for _, tok := range out.Tokens {
			made[tok.Model]++
			seen[tok.Token]++
			if tok.Position == 0 {
				first[tok.Model]++
			}
			models[tok.ID] = append(models[tok.ID], tok.Model)
		}
	}
	for id := range uint64(requests) {
		w.submit(0, core.Submission{ID: id, TokensMax: tokens, Draw: uniform(id, 3)}, 1)
	}
	w.run().settled()
	for _, of := range models {
		for i, m := range of {
			if i == 0 || of[i-1] != m {
				runs[m]++
			}
		}
	}
	near := func(what string, got int, n, want float64) {
		t.Helper()
		if share := float64(got) / n; math.Abs(share-want) > 4*math.Sqrt(want*(1-want)/n) {
			t.Errorf("%s: %.4f of %v, want %.4f", what, share, n, want)
		}
	}
	const all = requests * tokens
	for m, weight := range weights {
		near("share of tokens", made[m], all, weight)
		near("share of first tokens", first[m], requests, weight)
		mixture := 0.0
		for i := range weights {
			mixture += weights[i] * p[i][m]
		}
		near("histogram", seen[m], all, mixture)
		// A run ends after each of its tokens with chance 1 - weight.
		near("runs a token", runs[m], float64(made[m]), 1-weight)
	}
	if c := w.nodes[0].s.Counters(); c.Dropped != 0 || c.Committed != all {
		t.Errorf("%d dropped, %d committed, want 0 and %d", c.Dropped, c.Committed, all)
	}
}

// TestEnsembleEntry: the first model is drawn, Submission.Entry is not asked; a request that
// may visit one model only goes there.
func TestEnsembleEntry(t *testing.T) {
	me, err := route.NewME([]float64{0.5, 0.3, 0.2})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, core.Config{Models: models(3), Policy: core.Eager{}, Algorithm: me}, ms, ms, ms)
	w.result = func(uint64, int, int, int) core.Result { return core.Result{EOS: true} }
	by := map[uint64]int32{}
	w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
		for _, tok := range out.Tokens {
			by[tok.ID] = tok.Model
		}
	}
	for id, c := range []core.Submission{
		{Draw: 0.1}, {Draw: 0.6}, {Draw: 0.9}, {Draw: 0.1, Models: 0b100, Entry: 2}, {Draw: 0.75, Models: 0b101},
	} {
		c.ID, c.TokensMax = uint64(id), 3
		w.submit(0, c, 1)
	}
	w.run().settled()
	for id, want := range []int32{0, 1, 2, 2, 2} { // 0.75 is above 5/7
		if by[uint64(id)] != want {
			t.Errorf("request %d began at model %d, want %d", id, by[uint64(id)], want)
		}
	}
}
