package route_test

import (
	"math"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

const slm, llm = 0, 1

// verdict asks an algorithm for a request that is at model m.
func verdict(a core.Algorithm, m int, r core.Result) (next int, keep bool) {
	v := core.Visit{ID: 1, Models: 0b11}
	v.Model = int32(m)
	next = a.Route(&v, &r)
	if next == m {
		return next, true
	}
	return next, a.Send(&v, &r, next)
}

// TestThresholdEquality: at equality R2R routes (>=); CITER (<) and Co-LLM (>) stay; R-Stitch
// stays at the SLM (>) and leaves the LLM (<=). A step of one unit in the last place to
// either side decides the other way.
func TestThresholdEquality(t *testing.T) {
	const tau = 0.15
	below, above := math.Nextafter(tau, 0), math.Nextafter(tau, 1)
	score := func(x float64) core.Result { return core.Result{Score: x} }
	entropy := func(x float64) core.Result { return core.Result{Entropy: x} }
	for _, c := range []struct {
		name      string
		algorithm core.Algorithm
		model     int
		result    core.Result
		next      int
		keep      bool
	}{
		{"R2R below", route.R2R{Threshold: tau}, slm, score(below), slm, true},
		{"R2R equal", route.R2R{Threshold: tau}, slm, score(tau), llm, false},
		{"R2R above", route.R2R{Threshold: tau}, slm, score(above), llm, false},
		{"CITER below", route.CITER{Threshold: tau}, slm, score(below), llm, false},
		{"CITER equal", route.CITER{Threshold: tau}, slm, score(tau), slm, true},
		{"CITER above", route.CITER{Threshold: tau}, slm, score(above), slm, true},
		{"Co-LLM below", route.CoLLM{Threshold: tau}, slm, score(below), slm, true},
		{"Co-LLM equal", route.CoLLM{Threshold: tau}, slm, score(tau), slm, true},
		{"Co-LLM above", route.CoLLM{Threshold: tau}, slm, score(above), llm, false},
		{"R-Stitch SLM below", route.RStitch{Threshold: tau}, slm, entropy(below), slm, true},
		{"R-Stitch SLM equal", route.RStitch{Threshold: tau}, slm, entropy(tau), slm, true},
		{"R-Stitch SLM above", route.RStitch{Threshold: tau}, slm, entropy(above), llm, false},
		{"R-Stitch LLM below", route.RStitch{Threshold: tau}, llm, entropy(below), slm, true},
		{"R-Stitch LLM equal", route.RStitch{Threshold: tau}, llm, entropy(tau), slm, true},
		{"R-Stitch LLM above", route.RStitch{Threshold: tau}, llm, entropy(above), llm, true},
	} {
		next, keep := verdict(c.algorithm, c.model, c.result)
		if next != c.next || keep != c.keep {
			t.Errorf("%s: next %d, keep %v, want %d, %v", c.name, next, keep, c.next, c.keep)
		}
	}
}

// TestOneTokenAtTheLargeModel: R2R, CITER and Co-LLM return after one LLM token, whatever its
// signals are, and keep it.
func TestOneTokenAtTheLargeModel(t *testing.T) {
	for _, a := range []core.Algorithm{route.R2R{Threshold: 0.5}, route.CITER{Threshold: 0.5},
		route.CoLLM{Threshold: 0.5}} {
		for _, score := range []float64{0, 0.5, 1} {
			next, keep := verdict(a, llm, core.Result{Score: score, Entropy: 1})
			if next != slm || !keep {
				t.Errorf("%T: after an LLM token of score %v: next %d, keep %v", a, score, next, keep)
			}
		}
	}
}

// TestEntropyOfOneHotIsSure: an entropy of 0 (all mass on one token) is sure at any threshold
// that is not negative, one of 1 (uniform) unsure at any below 1; ln 2 / ln V, two equal
// tokens of Qwen3's V = 151,936, is 0.0581: unsure at 0.03, the paper's threshold.
func TestEntropyOfOneHotIsSure(t *testing.T) {
	for _, c := range []struct {
		entropy, threshold float64
		next               int
	}{
		{0, 0, slm}, {1, 0.999, llm}, {math.Ln2 / math.Log(151936), 0.03, llm}, {0.0581, 0.0582, slm},
	} {
		if next, _ := verdict(route.RStitch{Threshold: c.threshold}, slm,
			core.Result{Entropy: c.entropy}); next != c.next {
			t.Errorf("entropy %v, threshold %v: next %d, want %d", c.entropy, c.threshold, next, c.next)
		}
	}
}

// TestJudge: all at once, an algorithm says of every result what it says of each, thresholds and
// ends of weights included.
func TestJudge(t *testing.T) {
	me, err := route.NewME([]float64{0.25, 0, 0.75})
	if err != nil {
		t.Fatal(err)
	}
	born, err := route.NewBorn([]float64{0.25, 0.75})
	if err != nil {
		t.Fatal(err)
	}
	matrix, err := route.NewMatrix([][]float64{{0.5, 0.3, 0.2}, {1, 0, 0}, {0, 0.25, 0.75}},
		[][]float64{{1, 0, 1}, {1, 0, 1}, {1, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	const tau = 0.5
	var results []core.Result
	for _, x := range []float64{0, 0.25, math.Nextafter(tau, 0), tau, math.Nextafter(tau, 1), 0.8, 0.99} {
		for next := range 2 {
			for _, drop := range []bool{false, true} {
				results = append(results, core.Result{Score: x, Entropy: x, Draw: x, Next: uint8(next), Drop: drop})
			}
		}
	}
	for _, a := range []core.Algorithm{route.R2R{Threshold: tau}, route.CITER{Threshold: tau},
		route.CoLLM{Threshold: tau}, route.RStitch{Threshold: tau}, route.Recorded{}, route.Stay{}, born, me,
		matrix} {
		models := 2
		if sized, ok := a.(core.Sized); ok {
			models = sized.Models()
		}
		for model := range models {
			got := make([]core.Verdict, len(results))
			a.(core.Batch).Judge(model, results, got)
			for i, r := range results {
				v := core.Visit{Models: 1<<models - 1, Model: int32(model)}
				want := core.Verdict{Next: a.Route(&v, &r), Keep: true}
				if want.Next != model {
					want.Keep = a.Send(&v, &r, want.Next)
				}
				if got[i] != want {
					t.Errorf("%T at model %d, %+v: %+v, want %+v", a, model, r, got[i], want)
				}
			}
		}
	}
}

// TestRecorded follows the record.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		r    core.Result
		next int
		keep bool
	}{
		{core.Result{Next: 0}, slm, true}, {core.Result{Next: 1}, llm, true}, {core.Result{Next: 1, Drop: true},
			llm, false},
	} {
		if next, keep := verdict(route.Recorded{}, slm, c.r); next != c.next || keep != c.keep {
			t.Errorf("%+v: next %d, keep %v", c.r, next, keep)
		}
	}
}

// TestStay: whatever a pass says, the request goes on where it is.
func TestStay(t *testing.T) {
	for model := range 2 {
		r := core.Result{Score: 1, Entropy: 1, Draw: 0.99, Next: uint8(1 - model)}
		if next, keep := verdict(route.Stay{}, model, r); next != model || !keep {
			t.Errorf("at model %d: next %d, keep %v", model, next, keep)
		}
	}
}

// TestBorn: a request stays at the model that it is born at, which is drawn by the weights.
func TestBorn(t *testing.T) {
	born, err := route.NewBorn([]float64{3, 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		draw   float64
		models uint32
		want   int
	}{{0, 3, 0}, {0.7499, 3, 0}, {0.75, 3, 1}, {0.99, 3, 1}, {0.99, 1, 0}, {0, 2, 1}} {
		if got := born.Enter(c.draw, c.models); got != c.want {
			t.Errorf("draw %v among %b: born at %d, want %d", c.draw, c.models, got, c.want)
		}
		if got := born.Route(&core.Visit{Models: 3, Model: int32(c.want)}, &core.Result{Draw: 0.9}); got != c.want {
			t.Errorf("at model %d: goes to %d", c.want, got)
		}
	}
	if _, err := route.NewBorn([]float64{0, 0}); err == nil {
		t.Error("no weight above 0: no error")
	}
}
