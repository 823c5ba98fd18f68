package reference_test

import (
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/model/transformers"
)

// TestTransformers compares every case with Hugging Face transformers.
func TestTransformers(t *testing.T) {
	for _, c := range transformers.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			if err := c.Make(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			folder, err := model.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			for i, length := range c.Lengths {
				compare(t, folder, c.Answers[i], length)
			}
		})
	}
}

func compare(t *testing.T, folder *model.Folder, a transformers.Answer, length int) {
	t.Helper()
	if len(a.Prompt) != length || len(a.Greedy) < 16 || a.Lead < 2*transformers.BF16Tolerance {
		t.Errorf("a prompt of %d tokens, a continuation of %d that leads by %v, want %d, 16 or more and %v",
			len(a.Prompt), len(a.Greedy), a.Lead, length, 2*transformers.BF16Tolerance)
	}
	exact, rounded := reference.Of(folder), reference.Of(folder)
	rounded.Round = true
	// One pass over prompt and continuation has every step of the continuation in it.
	all := append(slices.Clone(a.Prompt), a.Greedy...)
	logits, hidden := exact.Logits(all)
	last := length - 1
	for _, row := range []struct {
		name      string
		got, want []float64
		tolerance float64
	}{
		{"logits", logits[last], a.Float32.Logits, transformers.Float32Tolerance},
		{"hidden", hidden[last], a.Float32.Hidden, transformers.Float32Tolerance},
		{"logits of transformers in bf16", a.BF16.Logits, logits[last], 0.12},
		{"hidden of transformers in bf16", a.BF16.Hidden, hidden[last], 0.12},
	} {
		if off := transformers.Distance(row.got, row.want); !(off <= row.tolerance) {
			t.Errorf("%d tokens: %s: %.3g spreads off, want at most %v", length, row.name, off, row.tolerance)
		}
	}
	for i, row := range logits[:length] {
		best, sum := reference.Best(row), reference.LogSumExp(row)
		limit := transformers.Float32Tolerance * transformers.Spread(row)
		if best != a.Best[i] || !near(row[best], a.BestLogit[i], limit) || !near(sum, a.LogSumExp[i], limit) {
			t.Errorf("position %d of %d: token %d, logit %v, log-sum-exp %v, want %d, %v, %v", i, length,
				best, row[best], sum, a.Best[i], a.BestLogit[i], a.LogSumExp[i])
		}
	}
	narrow, _ := rounded.Logits(all)
	for i, want := range a.Greedy {
		if got := reference.Best(logits[last+i]); got != want {
			t.Errorf("%d tokens: token %d of the continuation is %d, want %d", length, i, got, want)
		}
		if got := reference.Best(narrow[last+i]); got != want {
			t.Errorf("%d tokens: token %d of the rounded continuation is %d, want %d", length, i, got, want)
		}
	}
	for i := range all {
		if off := transformers.Distance(narrow[i], logits[i]); !(off <= transformers.BF16Tolerance) {
			t.Errorf("%d tokens: position %d: rounding takes the logits %.3g spreads off, want at most %v",
				length, i, off, transformers.BF16Tolerance)
		}
	}
}

func near(a, b, limit float64) bool { return a-b <= limit && b-a <= limit }

// TestSmolLM compares a real model, where `make smollm` has been run.
func TestSmolLM(t *testing.T) {
	dir := transformers.SmolLMFolder()
	if dir == "" {
		t.Log("no SmolLM2 here: `make smollm` gets it")
		return
	}
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for _, a := range transformers.SmolLM() {
		if a.Lead < 2*transformers.SmolLMTolerance || len(a.Greedy) == 0 {
			t.Errorf("%q: a continuation of %d tokens that leads by %v", a.Text, len(a.Greedy), a.Lead)
		}
		logits, _ := reference.Of(folder).Logits(a.Prompt)
		row := logits[len(logits)-1]
		if off := a.Distance(row); !(off <= transformers.Float32Tolerance) {
			t.Errorf("%q: logits %.3g spreads off, want at most %v", a.Text, off, transformers.Float32Tolerance)
		}
		sum, limit := reference.LogSumExp(row), transformers.Float32Tolerance*a.Spread
		if !near(sum, a.LogSumExp, limit) || reference.Best(row) != a.Greedy[0] {
			t.Errorf("%q: log-sum-exp %v and token %d, want %v and %d", a.Text, sum, reference.Best(row),
				a.LogSumExp, a.Greedy[0])
		}
	}
}
