package run

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tokenrouter/experiments/result"
)

// TestPoolTooSmall: prompts of 10 and answers of 30 tokens take 3 pages of 16; the LLM has 2. Warnings and
// requests.parquet name it, and the 3 seeds of a point have one warning together.
func TestPoolTooSmall(t *testing.T) {
	const large = `{ name = "LLM",`
	s := parse(t, strings.Replace(undrawn, large, large+" kv = { pages = 2 },", 1))
	dir := t.TempDir()
	summary := mustRun(t, s, Options{Out: dir}).Summary
	want := "120 requests were refused: pool too small (model LLM)"
	for i := range summary.Rows {
		if got := summary.Rows[i].Warnings; !slices.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", summary.Rows[i].Point, got, want)
		}
	}
	rows := 0
	err := result.EachRequest(filepath.Join(dir, result.RequestsFile), func(r result.RequestRow) error {
		rows++
		if r.Outcome != "rejected" || r.Reason != "pool too small" || r.RefusedBy != "LLM" {
			t.Errorf("request %+v, want it refused by the pool of LLM", r)
		}
		return nil
	})
	if err != nil || rows != 5*3*40 {
		t.Errorf("%d rows, %v; want 600", rows, err)
	}
}

// TestOutOfTurn: 4 requests of 130 tokens with pages for one and a third at each model keep going by
// launches out of turn; each seed has its count, the point has their sum in one warning. With enough pages
// there are none.
func TestOutOfTurn(t *testing.T) {
	const words = " launches were started out of turn to keep requests going: KV pages ran short"
	for pages, want := range map[string]bool{"12": true, "100": false} {
		text := strings.NewReplacer("[sweep]\nconcurrency = [2, 3]\nthresholds = \"1,_\"\n", "",
			"\"delayed\"", "\"model-sync\"", "[workload]", "[workload]\nconcurrency = 4",
			"output = 30", "output = 120",
			"latency = {", "kv = { pages = "+pages+" }, latency = {",
			"points = [{ concurrency = 2, thresholds = [1, 1], value = 94.4 }]", "points = [{ value = 94.4 }]").
			Replace(undrawn) + "[scheduler]\nadmission = \"optimistic\"\n"
		summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
		counted := 0
		for i := range summary.SeedRows {
			for _, w := range summary.SeedRows[i].Warnings {
				if n, found := strings.CutSuffix(w, words+", and nothing else could run"); found {
					counted += atoi(t, n)
				}
			}
		}
		var together []string
		for _, w := range summary.Rows[0].Warnings {
			if n, _, found := strings.Cut(w, words); found {
				together = append(together, n)
			}
		}
		if !want && (counted != 0 || together != nil) {
			t.Errorf("%s pages: %d launches out of turn, %q; want none", pages, counted, together)
		}
		if want && (len(together) != 1 || atoi(t, together[0]) != counted || counted < 3) {
			t.Errorf("%s pages: %q, want one warning with the sum of the seeds, %d", pages, together, counted)
		}
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPredictionNote: what a prediction takes for granted stands beside it, with numbers.
func TestPredictionNote(t *testing.T) {
	text := strings.Replace(tiny, `"constant", step = "27.9ms"`,
		`"affine", base = "27.9ms", per_fresh_ns = 1000`, 1)
	p := parse(t, text).Points[1]
	rate, note, err := newPlanner().predict(t.Context(), &p)
	want := "predicted for the mean step (2.857 fresh tokens a row at LLM, 25 tokens in KV), with step times" +
		" rounded to 50000 ns, which costs "
	if !strings.HasPrefix(note, want) || err != nil {
		t.Errorf("note %q, error %v, want %q", note, err, want)
	}
	// A little less than 110.322694 at 27.9 ms.
	if rate > 110.4 || rate < 110 {
		t.Errorf("%v tok/s, want a little less than 110.32", rate)
	}
}
