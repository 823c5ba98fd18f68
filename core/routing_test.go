package core_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

const slm, llm = 0, 1

// step is one forward pass of a request, as its client's trace would show it.
type step struct {
	position, model int
	token           int32
}

// toys makes every model a table from prefix to logits: what a pass gives hangs on the
// prefix, the model and the request's own keyed draws alone. seeds holds each request's seed.
// It returns the passes of every request.
func (w *world) toys(seeds map[uint64]uint64) map[uint64][]step {
	steps := map[uint64][]step{}
	w.result = func(id uint64, n, position, model int) core.Result {
		prefix := w.nodes[w.config.Models[model].Node].shadow.tokens[id]
		key := uint64(model)
		for _, token := range prefix {
			key = hash(key, uint64(token))
		}
		draw := uniform(seeds[id], uint64(position), uint64(model), 1)
		r := core.Result{
			Token: int32(hash(key, uint64(draw*4)) % 1000), EOS: hash(key, 2)%1009 == 0,
			Score: uniform(key, 3), Entropy: uniform(key, 4), Draw: uniform(seeds[id], uint64(position),
				uint64(model), 2),
		}
		steps[id] = append(steps[id], step{position, model, r.Token})
		return r
	}
	return steps
}

// play runs one request of an algorithm alone, on toy models.
func play(t testing.TB, a core.Algorithm, sub core.Submission) (answer []int32, steps []step, w *world) {
	t.Helper()
	w = newWorld(t, core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: a}, 10*ms, 35*ms)
	all := w.toys(map[uint64]uint64{sub.ID: 7})
	w.submit(0, sub, 1, 5, 9)
	w.run().settled()
	return w.answers[sub.ID], all[sub.ID], w
}

// TestDegenerateThresholds: with a threshold that is never met the output is the SLM's alone;
// with one that is always met it is the LLM's alone, token by token, R-Stitch's too after its
// first SLM step. Over 50 tokens and more, so that a rare wrong verdict would show.
func TestDegenerateThresholds(t *testing.T) {
	alone := func(m int) []int32 {
		answer, _, _ := play(t, route.Recorded{}, core.Submission{ID: 1, TokensMax: 300, Entry: m, Models: 1 << m})
		return answer
	}
	never, always := alone(slm), alone(llm)
	if len(never) < 50 || len(always) < 50 || slices.Equal(never, always) {
		t.Fatalf("the toys answer with %d and %d tokens", len(never), len(always))
	}
	for _, c := range []struct {
		name      string
		algorithm core.Algorithm
		want      []int32
		passes    [2]int // of each model
	}{
		{"R2R above 1", route.R2R{Threshold: math.Nextafter(1, 2)}, never, [2]int{len(never), 0}},
		{"CITER 0", route.CITER{Threshold: 0}, never, [2]int{len(never), 0}},
		{"Co-LLM 1", route.CoLLM{Threshold: 1}, never, [2]int{len(never), 0}},
		{"R-Stitch 1", route.RStitch{Threshold: 1}, never, [2]int{len(never), 0}},
		{"R2R 0", route.R2R{Threshold: 0}, always, [2]int{len(always), len(always)}},
		{"CITER above 1", route.CITER{Threshold: math.Nextafter(1, 2)}, always, [2]int{len(always), len(always)}},
		{"Co-LLM below 0", route.CoLLM{Threshold: -1e-300}, always, [2]int{len(always), len(always)}},
		{"R-Stitch below 0", route.RStitch{Threshold: -1e-300}, always, [2]int{1, len(always)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, steps, _ := play(t, c.algorithm, core.Submission{ID: 1, TokensMax: 300})
			var passes [2]int
			for _, s := range steps {
				passes[s.model]++
			}
			if !slices.Equal(answer, c.want) || passes != c.passes {
				t.Errorf("answer %v after %v passes, want %v after %v", answer, passes, c.want, c.passes)
			}
		})
	}
}

// scripted plays one request whose passes are given, under an algorithm that reads signals.
func scripted(t testing.TB, a core.Algorithm, tokensMax int32, passes ...core.Result) *world {
	t.Helper()
	w := newWorld(t, core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: a}, 10*ms, 35*ms)
	w.result = func(_ uint64, n, _, _ int) core.Result { return passes[n] }
	w.submit(0, core.Submission{ID: 1, TokensMax: tokensMax}, 1, 5, 9)
	return w.run()
}

func (w *world) wants(t testing.TB, answer []int32, reason core.Reason) {
	t.Helper()
	w.settled()
	if !slices.Equal(w.answers[1], answer) || w.leaves[1].Reason != reason {
		t.Errorf("answer %v, %v, want %v, %v", w.answers[1], w.leaves[1].Reason, answer, reason)
	}
}

// TestFirstTokenRouted: the prefill's token is judged like any other; the LLM is fed the whole
// prompt and makes token 0.
func TestFirstTokenRouted(t *testing.T) {
	w := scripted(t, route.R2R{Threshold: 0.5}, 2, core.Result{Token: 10, Score: 1}, core.Result{Token: 20},
		core.Result{Token: 11})
	w.wants(t, []int32{20, 11}, core.TokensMax)
	if fed := w.nodes[0].shadow.fed; !reflect.DeepEqual(fed, [][]int32{{1, 5, 9, 20}, {1, 5, 9}}) {
		t.Errorf("fed %v", fed)
	}
}

// TestSmallEOSOverruled: an EOS of the SLM at a routed position is dropped like any token and
// the request goes on; one that is not routed ends it and is in the answer.
func TestSmallEOSOverruled(t *testing.T) {
	for _, a := range []core.Algorithm{route.R2R{Threshold: 0.5}, route.CoLLM{Threshold: 0.5},
		route.RStitch{Threshold: 0.5}} {
		w := scripted(t, a, 9, core.Result{Token: 2, EOS: true, Score: 1, Entropy: 1}, core.Result{Token: 20},
			core.Result{Token: 2, EOS: true})
		w.wants(t, []int32{20, 2}, core.EndOfSequence)
	}
}

// TestLargeEOSEnds: an EOS of the LLM ends the request there; KV of both is free (settled).
func TestLargeEOSEnds(t *testing.T) {
	w := scripted(t, route.R2R{Threshold: 0.5}, 9, core.Result{Token: 10, Score: 1}, core.Result{Token: 2,
		EOS: true})
	w.wants(t, []int32{2}, core.EndOfSequence)
	if got := w.leaves[1].Model; got != llm {
		t.Errorf("ended at model %d, want the LLM", got)
	}
}

// TestOneTokenRouted: at most 1 token, and it is routed: exactly one token, the LLM's.
func TestOneTokenRouted(t *testing.T) {
	for _, a := range []core.Algorithm{route.R2R{Threshold: 0.5}, route.CoLLM{Threshold: 0.5},
		route.RStitch{Threshold: 0.5}} {
		w := scripted(t, a, 1, core.Result{Token: 10, Score: 1, Entropy: 1}, core.Result{Token: 20})
		w.wants(t, []int32{20}, core.TokensMax)
		if c := w.nodes[0].s.Counters(); c.Committed != 1 || c.Dropped != 1 || c.Handoffs != 1 {
			t.Errorf("%T: %+v", a, c)
		}
	}
}

// TestRStitchProgress: the SLM is unsure and the LLM sure at every position. The LLM's sure
// token is kept on return, or this would never end.
func TestRStitchProgress(t *testing.T) {
	w := newWorld(t, core.Config{Models: models(2), Policy: core.Eager{},
		Algorithm: route.RStitch{Threshold: 0.03}}, 10*ms, 35*ms)
	w.result = func(_ uint64, n, position, model int) core.Result {
		return core.Result{Token: int32(100*model + position), Entropy: float64(1 - model)}
	}
	w.submit(0, core.Submission{ID: 1, TokensMax: 4}, 1)
	w.run()
	w.wants(t, []int32{100, 101, 102, 103}, core.TokensMax)
	if c := w.nodes[0].s.Counters(); c.Dropped != 4 || c.Handoffs != 7 {
		t.Errorf("%d dropped, %d hand-offs, want 4 and 7", c.Dropped, c.Handoffs)
	}
}

// TestRStitchStaysWhileUnsure: the LLM keeps the turn, and its tokens, while it is unsure.
func TestRStitchStaysWhileUnsure(t *testing.T) {
	unsure := func(token int32) core.Result { return core.Result{Token: token, Entropy: 0.5} }
	sure := func(token int32) core.Result { return core.Result{Token: token, Entropy: 0.01} }
	w := scripted(t, route.RStitch{Threshold: 0.03}, 5, sure(10), unsure(11), unsure(20), unsure(21), sure(22),
		sure(12))
	w.wants(t, []int32{10, 20, 21, 22, 12}, core.TokensMax)
	if fed := w.nodes[0].shadow.fed; !reflect.DeepEqual(fed, [][]int32{{1, 5, 9, 10, 20, 21, 22}, {1, 5, 9, 10,
		20, 21}}) {
		t.Errorf("fed %v", fed)
	}
}

// TestSuffix: routed at positions 3 and 7, the LLM is first fed the prompt and tokens 0 to 2,
// then tokens 3 to 6, of which 3 is its own.
func TestSuffix(t *testing.T) {
	score := func(token int32, routed float64) core.Result { return core.Result{Token: token, Score: routed} }
	w := scripted(t, route.R2R{Threshold: 0.5}, 8, score(10, 0), score(11, 0), score(12, 0), score(99, 1),
		score(23, 0),
		score(14, 0), score(15, 0), score(16, 0), score(99, 1), score(27, 0))
	w.wants(t, []int32{10, 11, 12, 23, 14, 15, 16, 27}, core.TokensMax)
	if fed := w.nodes[0].shadow.fed[llm]; !slices.Equal(fed, []int32{1, 5, 9, 10, 11, 12, 23, 14, 15, 16}) {
		t.Errorf("LLM was fed %v", fed)
	}
}

// TestVerdicts: (a) never, (b) always, (c) every third index: no verdict is lost, flipped or
// applied to another row.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name   string
		routed func(position int) bool
		tokens int32
		large  []int
	}{
		{"never", func(int) bool { return false }, 50, nil},
		{"always", func(int) bool { return true }, 50, upTo(50)},
		{"every third", func(p int) bool { return p%3 == 2 }, 9, []int{2, 5, 8}},
	} {
		w := newWorld(t, core.Config{Models: models(2), Policy: core.Eager{},
			Algorithm: route.R2R{Threshold: 0.5}}, 10*ms, 35*ms)
		w.result = func(_ uint64, _, position, _ int) core.Result {
			if c.routed(position) {
				return core.Result{Score: 1}
			}
			return core.Result{}
		}
		var large []int
		w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
			for _, tok := range out.Tokens {
				if tok.Model == llm {
					large = append(large, int(tok.Position))
				}
			}
		}
		w.submit(0, core.Submission{ID: 1, TokensMax: c.tokens}, 1)
		w.run().settled()
		if !slices.Equal(large, c.large) || len(w.answers[1]) != int(c.tokens) {
			t.Errorf("%s: LLM tokens at %v, want %v", c.name, large, c.large)
		}
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestAloneAndInABatch: a request's passes, drafts that were dropped included, are the same
// alone, among others, twice in one batch, under thresholds (1,1) and (1,3), on one node and
// on two. Its draws are keyed by its seed, position and model. Seed 0 is a seed.
func TestAloneAndInABatch(t *testing.T) {
	me, err := route.NewME([]float64{0.6, 0.4})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []core.Algorithm{
		route.R2R{Threshold: 0.6}, route.CITER{Threshold: 0.4}, route.CoLLM{Threshold: 0.6},
		route.RStitch{Threshold: 0.4}, me,
	} {
		for _, seed := range []uint64{0, 7} {
			t.Run(fmt.Sprintf("%T seed %d", a, seed), func(t *testing.T) {
				alone := playBatch(t, a, map[uint64]uint64{1: seed}, fixed(t, 4, 1, 1), 0)[1]
				for _, b := range [][]int{{1, 1}, {1, 3}, {2, 3}} {
					for node := range 2 {
						// Request 2 has the same seed; 3 ends early and changes everybody's row.
						all := playBatch(t, a, map[uint64]uint64{1: seed, 2: seed, 3: 8, 4: 9}, fixed(t, 4, b...), node)
						if !reflect.DeepEqual(all[1], alone) || !reflect.DeepEqual(all[2], alone) {
							t.Errorf("thresholds %v, LLM on node %d:\n%v\n%v, alone\n%v", b, node, all[1], all[2], alone)
						}
						if reflect.DeepEqual(all[4], alone) {
							t.Errorf("seed 9 gives what seed %d gives", seed)
						}
					}
				}
			})
		}
	}
}

func playBatch(t *testing.T, a core.Algorithm, seeds map[uint64]uint64, b core.Thresholds,
	node int) map[uint64][]step {
	config := core.Config{Models: models(2), Policy: core.Delayed{Thresholds: b}, Algorithm: a, Requests: 8,
		LiveMax: 4}
	config.Models[1].Node = node
	w := newWorld(t, config, 10*ms, 35*ms)
	w.delay = func(int, int) core.Time { return 3 * ms }
	steps := w.toys(seeds)
	for id, seed := range seeds {
		tokens := int32(30)
		if id == 3 {
			tokens = 1
		}
		w.submit(0, core.Submission{ID: id, TokensMax: tokens, Draw: uniform(seed)}, 1, 5, 9)
	}
	w.run().settled()
	return steps
}

// contrarian has the Judge of R2R, but not its Route.
type contrarian struct{ route.R2R }

func (contrarian) Route(v *core.Visit, _ *core.Result) int { return 1 - int(v.Model) }

// TestEmbeddedJudge: a Judge that comes from an embedded type does not stand for the Route that
// takes the place of that type's: the large model makes every token, where R2R would ask it for
// none.
func TestEmbeddedJudge(t *testing.T) {
	never := route.R2R{Threshold: 2}
	for _, a := range []core.Algorithm{contrarian{never}, &contrarian{never}} {
		answer, steps, _ := play(t, a, core.Submission{ID: 1, TokensMax: 20})
		large := 0
		for _, step := range steps {
			large += step.model
		}
		if len(answer) < 2 || large != len(answer) {
			t.Errorf("%T: the large model made %d of %d tokens", a, large, len(answer))
		}
	}
}
