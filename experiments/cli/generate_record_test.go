package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/sim/outcome/trace"
)

// TestGenerateTrace: a trace has the tokens, origins and lengths of the answers, and is the same bytes
// whatever else is in flight.
func TestGenerateTrace(t *testing.T) {
	small, large := tinyPair(t)
	prompts := writeFile(t, "prompts.txt", []byte("one\ntwo\nthree and more\nfour\n"))
	var before string
	for _, inFlight := range []string{"4", "1"} {
		path := filepath.Join(t.TempDir(), "run.jsonl")
		out := mustRun(t, "generate", "--json", "--small", small, "--large", large, "--algorithm", "rstitch",
			"--threshold", "0.93", "--prompts", prompts, "-n", inFlight, "--max-tokens", "12", "--temperature", "1",
			"--trace", path)
		text := readText(t, path)
		if before != "" && text != before {
			t.Errorf("-n %s: trace\n%s\nwant\n%s", inFlight, text, before)
		}
		before = text
		steps, err := trace.ReadSteps(trace.StepsPath(path), []string{"slm", "llm"})
		if err != nil || len(steps) < 12 {
			t.Errorf("%d steps, %v, want at least 12", len(steps), err)
		}
		var got answersJSON
		decode(t, out, &got)
		checkTrace(t, path, got.Answers)
	}
	refuse(t, []refusal{{"no folder", []string{"generate", "--small", small, "--prompt", "a", "--trace",
		filepath.Join(small, "no", "run.jsonl")}, []string{"--trace = ", "want a file that can be written"}}})
}

// checkTrace compares the requests of a trace with the answers that were printed.
func checkTrace(t *testing.T, path string, answers []answerJSON) {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, a := range answers {
		var q trace.Request
		if err := r.Read(&q); err != nil {
			t.Fatal(err)
		}
		tokens, origin, position := []int32{}, []int{}, 0
		for k := 0; k < len(q.Path); k++ {
			model := int(q.Path[k] - '0')
			if k+1 < len(q.Path) && q.Path[k+1] == 'x' {
				k++
				continue
			}
			tokens = append(tokens, q.Results[model][position].Token)
			origin = append(origin, model)
			position++
		}
		if q.End == trace.EndOfSequence { // an end token is no part of an answer
			tokens, origin = tokens[:len(tokens)-1], origin[:len(origin)-1]
		}
		if !slices.Equal(tokens, a.Tokens) || !slices.Equal(origin, a.Origin) || q.ID != uint64(i) ||
			strings.Count(q.Path, "x") != int(a.DroppedDrafts) || int(q.PromptTokens) != a.PromptTokens {
			t.Errorf("answer %d: %+v, recorded as %+v", i, a, q)
		}
	}
}
