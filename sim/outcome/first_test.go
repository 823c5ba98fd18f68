package outcome

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
)

// TestFirstToken: of the small model's rows those at position 0 have the verdict; all other results, and all
// of the large model, are those of the source.
func TestFirstToken(t *testing.T) {
	requests := []Request{{ID: 1, Key: keyed.NewKey(7, 1), PromptTokens: 3, OutputTokens: 9}}
	rows := []core.Row{{Fresh: 2}, {Start: 2, Fresh: 1, Head: true}, {Start: 3, Fresh: 1, Head: true}}
	want, got := make([]core.Result, len(rows)), make([]core.Result, len(rows))
	for model := range 2 {
		Uniform{}.Fill(model, rows, requests, want)
		if model == 0 {
			want[1].Score, want[1].Draw = AlwaysRouted, AlwaysRouted
		}
		First{Source: Uniform{}, Verdict: AlwaysRouted}.Fill(model, rows, requests, got)
		for i := range rows {
			if got[i] != want[i] {
				t.Errorf("model %d row %d: %+v, want %+v", model, i, got[i], want[i])
			}
		}
	}
}
