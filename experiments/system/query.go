package system

import (
	"fmt"

	"tokenrouter/exec/model/query"
	"tokenrouter/experiments/spec"
)

// Scorer is a router that looks at prompts, before anything is computed for them: the higher the score, the
// more a request wants the large model.
type Scorer interface {
	// Score is 0 to 1. It may be called by several goroutines at once.
	Score(ids []int32) (float64, error)
	// Threshold is the least score of the share, 0 to 1, of a task's validation prompts that score highest:
	// above all scores for 0, below all for 1.
	Threshold(task string, share float64) (float64, error)
}

// queryThreshold is that of a system whose file has none.
const queryThreshold = 0.5

// openQuery has the router of prompts. given, if not nil, stands for what the folder says.
func (p *Plan) openQuery(r *spec.Router, given Scorer) error {
	if !r.HasThreshold {
		r.Threshold, r.HasThreshold = queryThreshold, true
	}
	if p.scorer = given; given != nil {
		return nil
	}
	opened, err := query.Open(r.Dir, p.Spec.Models[0].Dir)
	if err == nil {
		p.scorer = opened
	}
	return err
}

// Scorer is the router of prompts; nil for an algorithm that routes tokens, or nothing.
func (p *Plan) Scorer() Scorer { return p.scorer }

// Entry is the model that answers a prompt, with routing by request: the small one, or the large one from
// the threshold on, the system's own for nil. It is 0 with any other algorithm.
func (p *Plan) Entry(ids []int32, threshold *float64) (int, error) {
	if p.scorer == nil {
		return 0, nil
	}
	score, err := p.scorer.Score(ids)
	if err != nil {
		return 0, fmt.Errorf("router %s: %w", p.Spec.Router.Dir, err)
	}
	if threshold == nil {
		threshold = &p.Spec.Router.Threshold
	}
	return Born(score, *threshold), nil
}

// Born is the model that a request with a score stays with.
func Born(score, threshold float64) int {
	if score >= threshold {
		return 1
	}
	return 0
}
