package route

import "tokenrouter/core"

// R2R sends a position to the large model when the router network's probability that the
// small model's token diverges, Result.Score, is at least Threshold ("Roads to Rome", arXiv
// 2505.21600; note >=).
type R2R struct {
	judged
	Threshold float64
}

// Route judges a small model's token; after one token of the large model it returns.
func (a R2R) Route(v *core.Visit, r *core.Result) int { return a.next(int(v.Model), r) }

func (a R2R) next(model int, r *core.Result) int { return to(model == small && r.Score >= a.Threshold) }

// Judge implements core.Batch.
func (a R2R) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	judgeAll(model, results, verdicts, func(r *core.Result) int { return a.next(model, r) })
}
