package spec

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tokenrouter/sim/latency"
)

// TestFreshMeans: tokens committed a step over the share of steps at each model, by hand.
func TestFreshMeans(t *testing.T) {
	keep := func(n int) [][]float64 {
		commit := make([][]float64, n)
		for i := range commit {
			for range n {
				commit[i] = append(commit[i], 1)
			}
		}
		return commit
	}
	for _, c := range []struct {
		name            string
		routing, commit [][]float64
		want            []float64
	}{
		// Shares 1/1.35 and 0.35/1.35; 0.65/1.35 + 0.35/1.35 tokens a step.
		{"R2R", [][]float64{{0.65, 0.35}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, []float64{1, 1 / 0.35}},
		// Shares 2/3 and 1/3; 2/3 * 0.7 + 1/3 = 0.8 tokens a step.
		{"R-Stitch", [][]float64{{0.7, 0.3}, {0.6, 0.4}}, [][]float64{{1, 0}, {1, 1}}, []float64{1.2, 2.4}},
		{"ME", [][]float64{{0.5, 0.3, 0.2}, {0.5, 0.3, 0.2}, {0.5, 0.3, 0.2}}, keep(3), []float64{2, 10.0 / 3, 5}},
		{"to and fro", [][]float64{{0, 1}, {1, 0}}, keep(2), []float64{2, 2}},
		{"never left", [][]float64{{1, 0}, {1, 0}}, keep(2), []float64{1, 1}},
		{"rarely left", [][]float64{{1 - 1e-9, 1e-9}, {1, 0}}, keep(2), []float64{1 + 1e-9, 1e9 + 1}},
	} {
		got := freshMeans(c.routing, c.commit)
		if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-6, 0)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestMeanRows: step times that depend on tokens are those of the mean row. At p = 0.35 the LLM is fed 2.857
// tokens a row, and rows have 10 + 20/2 tokens in KV.
func TestMeanRows(t *testing.T) {
	text := strings.Replace(good, `kind = "constant", step = "27.9ms"`,
		`kind = "affine", base = "20ms", per_row = "100us", per_fresh_ns = 1000, per_context_ns = 10,`+
			` beside = 1.25`, 1)
	p := mustParse(t, text).Points[0]
	// 20 ms + n * (100 us + 2.857 * 1 us + 20 * 10 ns), for n of 1 to 4.
	want := []int64{20_103_057, 20_206_114, 20_309_171, 20_412_229}
	if diff := cmp.Diff(want, p.Models[1].ByRows); diff != "" {
		t.Errorf("LLM steps by rows (-want +got):\n%s", diff)
	}
	got, why := p.MeanRows(), p.Unpredictable()
	if got != "2.857 fresh tokens a row at LLM, 20 tokens in KV" || why != "" {
		t.Errorf("mean rows %q, unpredictable %q", got, why)
	}
	if p.Models[0].Beside != 1 || p.Models[1].Beside != 1.25 || p.Models[0].FreshMean != 0 {
		t.Errorf("factors beside others %v and %v, %v fresh tokens at the SLM; want 1, 1.25 and 0",
			p.Models[0].Beside, p.Models[1].Beside, p.Models[0].FreshMean)
	}
	if p := mustParse(t, good).Points[0]; p.MeanRows() != "" {
		t.Errorf("mean rows %q of constant times, want none", p.MeanRows())
	}
}

// TestUnpredictable: why the throughput model can not tell a step time.
func TestUnpredictable(t *testing.T) {
	affine := `kind = "affine", base = "20ms", per_fresh_ns = 1000`
	with := func(old, text string) string {
		return strings.Replace(strings.Replace(good, `kind = "constant", step = "27.9ms"`, affine, 1), old, text, 1)
	}
	for _, c := range []struct{ name, text, want string }{
		{"fresh tokens", with(affine, affine+", fresh_tokens = [1, 8]"), "the step time of LLM is not known for" +
			" 3 rows of 2.857 fresh tokens and 20 in KV: calibrated are fresh tokens 1..8"},
		{"KV", with(affine, affine+", context_tokens = [30, 90]"), "the step time of LLM is not known for" +
			" 1 rows of 2.857 fresh tokens and 20 in KV: calibrated are context tokens 30..90"},
		{"rows", with(affine, `kind = "affine", base = "1ms", rows = [1, 2]`), "the step time of LLM is not" +
			" known for 3 rows of 1 fresh tokens and 0 in KV: calibrated are rows 1..2"},
		{"a full prefill a call", with(`name = "LLM",`, `name = "LLM", reuse = false,`), "the step time of LLM" +
			" depends on tokens, and it is fed all tokens again in every call (reuse = false): few rows are near" +
			" the mean"},
		{"static batches", good + "[scheduler]\nbatching = \"static\"\n", "batches are static: fewer than the" +
			" concurrency run until the last of a batch has left"},
		{"dispatch", with(`name = "LLM",`, `name = "LLM", dispatch = "1ms",`),
			"calls of LLM take time outside its engine (dispatch), side by side"},
		{"dependent verdicts",
			with("p = 0.35", "outcome = \"bursts\"\np = 0.35\neasy = 0.1\nhard = 0.9\nhard_tokens = 5"),
			"verdicts are not independent draws"},
	} {
		if got := mustParse(t, c.text).Points[0].Unpredictable(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestContextMean: prompts and half answers, cut by max_tokens.
func TestContextMean(t *testing.T) {
	for _, c := range []struct {
		lengths string
		want    float64
	}{
		{"prompt = 10\noutput = 20", 20},
		{"prompt = 10\noutput = 20\nmax_tokens = 8", 14},
		{"prompt = 10\nmax_tokens = 8", 14},
		// Half of the answers have 10 tokens, half 8.
		{"prompt = { law = \"uniform\", min = 1, max = 19 }\noutput = { law = \"empirical\", values = [30, 8] }" +
			"\nmax_tokens = 10", 14.5},
	} {
		w := mustParse(t, strings.Replace(good, "prompt = 10\noutput = 20", c.lengths, 1)).Points[0].Workload
		if got := w.contextMean(); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%q: %v tokens in KV, want %v", c.lengths, got, c.want)
		}
	}
}

// TestMeanOfBlocks: of 2 rows with 1 fresh token or more each, geometric with mean 2, 2 have 2 together with
// probability 1/4, 3 with 1/4, 4 with 3/16, 5 with 1/8 and so on; a step takes 1 ms, and 1 ms more from the
// 4th on.
func TestMeanOfBlocks(t *testing.T) {
	law, err := latency.NewTable(latency.Grid{Rows: []int{1, 2}, Fresh: []int{1, 3, 4, 100},
		Ns: []int64{1e6, 1e6, 2e6, 2e6, 1e6, 1e6, 2e6, 2e6}}, latency.Refuse)
	if err != nil {
		t.Fatal(err)
	}
	m := Model{Name: "m", Latency: law}
	ns, ok := m.meanNs(2, meanRow{fresh: 2})
	if want := int64(1.5e6); !ok || max(ns-want, want-ns) > 2 {
		t.Errorf("%d ns, %v, want %d", ns, ok, want)
	}
	// A row alone has 4 or more with probability 1/8.
	if ns, ok := m.meanNs(1, meanRow{fresh: 2}); !ok || max(ns-1_125_000, 1_125_000-ns) > 2 {
		t.Errorf("%d ns, %v, want 1125000", ns, ok)
	}
	if _, ok := m.meanNs(2, meanRow{fresh: 60}); ok {
		t.Error("120 fresh tokens in the mean are known, want them beyond the table")
	}
}
