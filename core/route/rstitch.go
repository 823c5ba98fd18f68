package route

import "tokenrouter/core"

// RStitch hands over by entropy, both ways: the model that runs next is the large one while
// the entropy of the active model, Result.Entropy (divided by ln V), is above Threshold
// (arXiv 2507.17307; > to leave the small model, <= to return).
type RStitch struct {
	Threshold float64
}

// Route asks the active model how sure it is.
func (a RStitch) Route(_ *core.Visit, r *core.Result) int { return a.next(r) }

func (a RStitch) next(r *core.Result) int { return to(r.Entropy > a.Threshold) }

// Judge implements core.Batch.
func (a RStitch) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	judgeAll(model, results, verdicts, a.next)
}

// Send drops the unsure token of the small model and keeps the sure one of the large model.
// Dropping that too, as the pseudo-code read literally does, can go in circles for ever.
func (RStitch) Send(v *core.Visit, _ *core.Result, _ int) bool { return v.Model == large }
