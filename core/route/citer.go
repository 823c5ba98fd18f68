package route

import "tokenrouter/core"

// CITER sends a position to the large model when the confidence that the small model's token
// is right, Result.Score, is below Threshold (arXiv 2502.01976; note <).
type CITER struct {
	judged
	Threshold float64
}

// Route judges a small model's token; after one token of the large model it returns.
func (a CITER) Route(v *core.Visit, r *core.Result) int { return a.next(int(v.Model), r) }

func (a CITER) next(model int, r *core.Result) int {
	return to(model == small && r.Score < a.Threshold)
}

// Judge implements core.Batch.
func (a CITER) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	judgeAll(model, results, verdicts, func(r *core.Result) int { return a.next(model, r) })
}
