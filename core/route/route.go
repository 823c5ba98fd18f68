// Package route has the token-level routing algorithms, each as its publication defines it.
//
// Model 0 is the small model (SLM), model 1 the large one (LLM); ME takes any number. Every
// algorithm sees one request at a time; what it remembers is in Visit.State.
package route

import "tokenrouter/core"

const (
	small = 0
	large = 1
)

// judged is the shape that R2R, CITER and Co-LLM share: the small model's token is judged
// after every one of its forward passes, prefill included; one that is not good enough is
// dropped, and the large model makes exactly one token in its place.
type judged struct{}

// Send keeps the large model's token on the way back and drops the small model's, an EOS
// included, on the way there.
func (judged) Send(v *core.Visit, _ *core.Result, _ int) bool { return v.Model == large }

// judgeAll is the Judge of an Algorithm that keeps a token unless the large model goes on after
// the small one. It is inlined, and next with it.
func judgeAll(model int, results []core.Result, verdicts []core.Verdict, next func(*core.Result) int) {
	verdicts = verdicts[:len(results)]
	for i := range results {
		to := next(&results[i])
		verdicts[i] = core.Verdict{Next: to, Keep: to <= model}
	}
}

// pick returns the first index whose cumulative weight is above u; the last of up, which does not
// fall, is 1, and u is below 1. It is branch-free but for its loop.
func pick(up []float64, u float64) int {
	index := 0
	for _, up := range up[:len(up)-1] {
		if u >= up {
			index++
		}
	}
	return index
}

// to is branch-free: verdicts are what a processor cannot predict.
func to(unsure bool) int {
	model := small
	if unsure {
		model = large
	}
	return model
}
