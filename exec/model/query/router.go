package query

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Kind is the way in which a router scores.
type Kind uint8

// The kinds, by the names that folders have.
const (
	MF     Kind = iota + 1 // "mf": matrix factorisation
	SW                     // "sw": similarity-weighted ranking
	BERT                   // "bert": a bidirectional classifier
	Causal                 // "causal": the small model, fine-tuned to say a label
)

var kindNames = map[Kind]string{MF: "mf", SW: "sw", BERT: "bert", Causal: "causal"}

// String is the name that folders have.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Router is a router folder in memory. Its methods may be called at the same time.
type Router struct {
	Dir                    string
	Kind                   Kind
	SmallModel, LargeModel string // names of the models that it was trained for
	LargeModelHash         string // of the large model's weights, "sha256:..."
	Note                   string

	quantiles map[string][]float64
	vocab     int // of the small model
	tokensMax int // of a prompt: the small model's context
	score     func(ids []int32) float64
}

// Score is the router's estimate, from 0 to 1, of how likely the large model's answer is the better one, from
// the tokens of a prompt through the chat template. It fails for a prompt without tokens or longer than the
// small model's context, for a token that is not in its vocabulary, and if the weights give no number.
func (r *Router) Score(ids []int32) (float64, error) {
	if len(ids) < 1 || len(ids) > r.tokensMax {
		return 0, fmt.Errorf("router %s: prompt of %d tokens, want 1 to %d", r.Dir, len(ids), r.tokensMax)
	}
	for i, id := range ids {
		if id < 0 || int(id) >= r.vocab {
			return 0, fmt.Errorf("router %s: token %d at position %d, want 0 to %d", r.Dir, id, i, r.vocab-1)
		}
	}
	score := r.score(ids)
	if !(score >= 0 && score <= 1) {
		return 0, fmt.Errorf("router %s: score %v, want 0 to 1: its weights or those of %s overflow", r.Dir, score,
			r.SmallModel)
	}
	return score, nil
}

// Tasks are those that Threshold knows, in order of their names.
func (r *Router) Tasks() []string { return slices.Sorted(maps.Keys(r.quantiles)) }

// ThresholdMax is the threshold that no score reaches.
const ThresholdMax = 2

// Threshold returns the score from which on prompts of a task go to the large model if a share of them, 0 to
// 1, shall: the quantile 1 - share of the scores of the task's validation prompts, between the stored ones by
// a straight line (RouteLLM, calibrate_threshold.py). For share 0 it is ThresholdMax and for share 1 it is 0,
// so that none or all go, whatever they score. It fails for other shares and for tasks that the folder does
// not have.
func (r *Router) Threshold(task string, share float64) (float64, error) {
	quantiles, ok := r.quantiles[task]
	switch {
	case !ok:
		return 0, fmt.Errorf("router %s: no quantiles of task %q, want one of %s", r.Dir, task,
			strings.Join(r.Tasks(), ", "))
	case !(share >= 0 && share <= 1):
		return 0, fmt.Errorf("router %s: share %v, want 0 to 1", r.Dir, share)
	case share == 0:
		return ThresholdMax, nil
	case share == 1:
		return 0, nil
	}
	place := (1 - share) * (quantileCount - 1)
	below := min(int(math.Floor(place)), quantileCount-2)
	return quantiles[below] + (place-float64(below))*(quantiles[below+1]-quantiles[below]), nil
}
