package route

import "tokenrouter/core"

// Stay leaves a request at the model that it was born at (core.Submission.Entry): routing by request, whose
// rule has looked at the prompt before it is submitted.
type Stay struct{}

// Route returns the present model.
func (Stay) Route(v *core.Visit, _ *core.Result) int { return int(v.Model) }

// Judge implements core.Batch.
func (Stay) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	for i := range results {
		verdicts[i] = core.Verdict{Next: model, Keep: true}
	}
}

// Send keeps the token; it is never asked.
func (Stay) Send(*core.Visit, *core.Result, int) bool { return true }
