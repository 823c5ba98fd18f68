package route

import "tokenrouter/core"

// Recorded follows the moves of a recorded or scripted run: Result.Next goes on, and a token
// that the record dropped is dropped.
type Recorded struct{}

// Route returns the recorded model.
func (Recorded) Route(_ *core.Visit, r *core.Result) int { return int(r.Next) }

// Judge implements core.Batch.
func (Recorded) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	for i := range results {
		next := int(results[i].Next)
		verdicts[i] = core.Verdict{Next: next, Keep: next == model || !results[i].Drop}
	}
}

// Send keeps the token unless the record dropped it.
func (Recorded) Send(_ *core.Visit, r *core.Result, _ int) bool { return !r.Drop }
