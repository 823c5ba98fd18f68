package models_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// made is a token and the model that made it, by its place in the system's file.
type made struct{ Token, Model int32 }

// tokens are those of answers; with the same for all models if origins are not wanted.
func tokens(all []system.Answered, origins bool) [][]made {
	out := make([][]made, len(all))
	for i := range all {
		for _, token := range all[i].Tokens {
			m := made{Token: token.Token}
			if origins {
				m.Model = token.Model
			}
			out[i] = append(out[i], m)
		}
	}
	return out
}

// TestDegenerateThresholds: where all scores are on one side of its threshold, an algorithm gives the answers
// one model alone, token by token, by that model.
func TestDegenerateThresholds(t *testing.T) {
	problems := testProblems(t)[:12]
	alone := [2][][]made{
		tokens(answers(t, load(t, "arith-small.toml"), problems, 12), false),
		tokens(answers(t, load(t, "arith-large.toml"), problems, 12), false),
	}
	for _, c := range []struct {
		name, file string
		threshold  [2]float64 // all small, all large
		weights    [2][]float64
	}{
		{name: "R2R", file: "arith.toml", threshold: [2]float64{2, -1}},
		{name: "CITER", file: "arith-citer.toml", threshold: [2]float64{-1, 2}},
		{name: "Co-LLM", file: "arith-collm.toml", threshold: [2]float64{2, -1}},
		{name: "R-Stitch", file: "arith-rstitch.toml", threshold: [2]float64{2, -1}},
		{name: "ME", file: "arith-me.toml", weights: [2][]float64{{1, 0, 0}, {0, 0, 1}}},
		{name: "query", file: "arith-query-mf.toml", threshold: [2]float64{2, -1}},
	} {
		for side, want := range alone {
			t.Run(c.name+[]string{" small", " large"}[side], func(t *testing.T) {
				s := load(t, c.file)
				s.Router.Weights = c.weights[side]
				if s.Router.HasThreshold = c.weights[side] == nil; s.Router.HasThreshold {
					s.Router.Threshold, s.Router.HasShare = c.threshold[side], false
				}
				if diff := cmp.Diff(want, tokens(answers(t, s, problems, 12), false)); diff != "" {
					t.Errorf("-alone +routed:\n%s", diff)
				}
			})
		}
	}
}

// lastWaits are thresholds for every N of which the last model's is beyond 1, as far as it may be.
func lastWaits(models, inFlight int) [][]int {
	table := make([][]int, inFlight)
	for n := range table {
		table[n] = slices.Repeat([]int{1}, models)
		table[n][models-1] = min(n+1, 3)
	}
	return table
}

// TestAloneAndTogether: a routed answer has the same tokens, by the same models, one request at a time and
// others, at once and delayed.
func TestAloneAndTogether(t *testing.T) {
	problems := testProblems(t)[:24]
	for _, file := range []string{"arith.toml", "arith-citer.toml", "arith-collm.toml", "arith-rstitch.toml",
		"arith-me.toml"} {
		t.Run(file, func(t *testing.T) {
			want := tokens(answers(t, load(t, file), problems, 1), true)
			same := func(a, b made) bool { return a.Model == b.Model }
			if parts := slices.CompactFunc(slices.Concat(want...), same); len(parts) < 10 {
				t.Errorf("only %d changes of the model", len(parts)-1)
			}
			if diff := cmp.Diff(want, tokens(answers(t, load(t, file), problems, 8), true)); diff != "" {
				t.Errorf("8 in flight (-alone +together):\n%s", diff)
			}
			delayed := load(t, file)
			table := lastWaits(len(delayed.Models), 8)
			delayed.Policy = spec.Policy{Kind: "delayed", Table: table}
			if diff := cmp.Diff(want, tokens(answers(t, delayed, problems, 8), true)); diff != "" {
				t.Errorf("8 in flight, delayed (-alone +together):\n%s", diff)
			}
		})
	}
}
