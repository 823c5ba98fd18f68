package route

import (
	"fmt"
	"math"

	"tokenrouter/core"
)

// ME is the mixture-model-like ensemble (arXiv 2605.00419): the model of every token, the
// first included, is drawn by fixed weights; all tokens are kept. The draw is Result.Draw,
// keyed by request and position, so that it does not depend on what else runs.
type ME struct {
	weights []float64
	up      []float64 // up[i]: sum of weights 0..i, the last exactly 1
}

// NewME takes one weight a model, not all zero; they are divided by their sum.
func NewME(weights []float64) (ME, error) {
	sum := 0.0
	for i, w := range weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return ME{}, fmt.Errorf("weight of model %d is %v, want a number >= 0", i, w)
		}
		sum += w
	}
	if len(weights) == 0 || !(sum > 0) || math.IsInf(sum, 0) {
		return ME{}, fmt.Errorf("weights %v sum to %v, want more than 0", weights, sum)
	}
	up := make([]float64, len(weights))
	total := 0.0
	for i, w := range weights {
		total += w
		up[i] = total / sum
	}
	for i := len(weights) - 1; i >= 0 && up[i] >= up[len(up)-1]; i-- {
		up[i] = 1 // trailing weights of zero are never drawn
	}
	return ME{append([]float64(nil), weights...), up}, nil
}

// Models is the number of weights.
func (a ME) Models() int { return len(a.up) }

// Weights returns the weights as NewME took them.
func (a ME) Weights() []float64 { return append([]float64(nil), a.weights...) }

// Route draws the model of the next token.
func (a ME) Route(v *core.Visit, r *core.Result) int { return a.draw(r.Draw, v.Models) }

// Enter draws the model of the first token.
func (a ME) Enter(draw float64, models uint32) int { return a.draw(draw, models) }

// draw picks the first model whose cumulative weight is above u. A request that may not
// visit all models draws among its own by their relative weights.
func (a ME) draw(u float64, models uint32) int {
	if all := uint32(1)<<len(a.up) - 1; models&all != all {
		return a.drawAmong(u, models)
	}
	return pick(a.up, u)
}

func (a ME) drawAmong(u float64, models uint32) int {
	total := 0.0
	last := -1
	for i := range a.up {
		if models>>i&1 != 0 {
			total += a.weight(i)
			last = i
		}
	}
	sum := 0.0
	for i := range a.up {
		if models>>i&1 == 0 {
			continue
		}
		sum += a.weight(i)
		if u*total < sum {
			return i
		}
	}
	return last
}

func (a ME) weight(i int) float64 {
	if i == 0 {
		return a.up[0]
	}
	return a.up[i] - a.up[i-1]
}

// Judge implements core.Batch.
func (a ME) Judge(_ int, results []core.Result, verdicts []core.Verdict) {
	for i := range results {
		verdicts[i] = core.Verdict{Next: pick(a.up, results[i].Draw), Keep: true}
	}
}

// Send keeps every token.
func (ME) Send(*core.Visit, *core.Result, int) bool { return true }
