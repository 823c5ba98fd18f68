package route

import "tokenrouter/core"

// CoLLM defers a position to the large model when the deferral probability, Result.Score =
// sigmoid of the extra head row's raw logit, is above Threshold (arXiv 2403.03870; note >).
type CoLLM struct {
	judged
	Threshold float64
}

// Route judges a small model's token; after one token of the large model it returns.
func (a CoLLM) Route(v *core.Visit, r *core.Result) int { return a.next(int(v.Model), r) }

func (a CoLLM) next(model int, r *core.Result) int {
	return to(model == small && r.Score > a.Threshold)
}

// Judge implements core.Batch.
func (a CoLLM) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	judgeAll(model, results, verdicts, func(r *core.Result) int { return a.next(model, r) })
}
