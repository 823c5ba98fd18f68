package run

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/experiments/spec"
)

// me is TokenRouter's ME with three models (arXiv 2610.12242, appendix D and table 1).
const me = `name = "me"
models = [
  { name = "small", latency = { kind = "constant", step = "6ms" } },
  { name = "middle", latency = { kind = "constant", step = "10ms" } },
  { name = "large", latency = { kind = "constant", step = "28ms" } },
]
[router]
algorithm = "me"
weights = [0.5, 0.3, 0.2]
[workload]
kind = "closed"
concurrency = 4
requests = 400
warmup_requests = 8
prompt = 10
output = 500
[policy]
kind = "delayed"
thresholds = [1, 1, 1]
`

// TestPredictedAndSimulated: the chain's exact values (of an independent program), and the simulator within
// 0.5 % of them, for R2R, for three models, for other matrices and for step times that depend on the batch.
func TestPredictedAndSimulated(t *testing.T) {
	r2r := strings.Replace(tiny, "requests = 40", "requests = 800", 1)
	r2r = strings.Replace(r2r, "output = 30", "output = 300", 1)
	rstitch := strings.Replace(r2r, "p = 0.35", "p = 0.3\np_return = 0.6", 1)
	tests := []struct {
		name, text string
		want       map[string]float64 // by point; tok/s
	}{
		{"r2r", r2r, map[string]float64{
			"concurrency=2 thresholds=1,1": 98.956913, "concurrency=2 thresholds=1,2": 110.322694,
			"concurrency=3 thresholds=1,1": 142.338815, "concurrency=3 thresholds=1,2": 158.117117,
			"concurrency=3 thresholds=1,3": 151.891325,
		}},
		{"me", me, map[string]float64{"point": 282.311151}},
		{"me, thresholds 3,1,2", strings.Replace(me, "[1, 1, 1]", "[3, 1, 2]", 1),
			map[string]float64{"point": 197.843061}},
		{"rstitch", strings.Replace(rstitch, `"r2r"`, `"rstitch"`, 1), nil},
		{"step times by batch", strings.Replace(r2r, `kind = "constant", step = "27.9ms"`,
			`kind = "affine", base = "27ms", per_row = "300us"`, 1), nil},
		{"step times by tokens", strings.Replace(r2r, `kind = "constant", step = "27.9ms"`,
			`kind = "affine", base = "27ms", per_fresh_ns = 150000, per_context_ns = 1000`, 1), nil},
		{"calls a token", strings.NewReplacer(`name = "SLM",`, `name = "SLM", call = "token", host_call = "2ms",`,
			`name = "LLM",`, `name = "LLM", call = "token", host_call = "1ms",`).Replace(r2r), nil},
		{"host time of returns to the large model", strings.Replace(r2r, `name = "LLM",`,
			`name = "LLM", host_call = "1ms",`, 1), nil},
		{"no graphs", strings.Replace(r2r, `name = "SLM",`,
			`name = "SLM", launch = { graphs = "none", eager = "3ms", eager_per_row = "300us" },`, 1), nil},
		{"contention", strings.NewReplacer(`"6.0ms"`, `"6.0ms", beside = 1.4`, `"27.9ms"`,
			`"27.9ms", beside = 1.2`).Replace(r2r), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := parse(t, test.text)
			agreement := shorten(s, 0.005)
			summary := mustRun(t, s, Options{Out: t.TempDir(), Workers: 2}).Summary
			for i := range summary.Rows {
				r := &summary.Rows[i]
				predicted, _ := summary.Value(r, "predicted_tok_s")
				if want, ok := test.want[r.Point]; ok && math.Abs(predicted-want) > 1e-6 {
					t.Errorf("%s: predicted %v tok/s, want %v", r.Point, predicted, want)
				}
				simulated, _ := summary.Value(r, "throughput_tok_s")
				if !(math.Abs(simulated/predicted-1) < agreement) {
					t.Errorf("%s: simulated %v tok/s, predicted %v; want them within %v",
						r.Point, simulated, predicted, agreement)
				}
			}
		})
	}
}

// shorten makes runs small under -short, which is for the race detector, and gives the agreement of chain
// and simulation that can then be asked for.
func shorten(s *spec.Spec, agreement float64) float64 {
	if !testing.Short() {
		return agreement
	}
	s.Replicates = 1
	for i := range s.Points {
		s.Points[i].Workload.Requests = 60
		s.Points[i].Workload.WarmupRequests = 4
	}
	return 20 * agreement
}

// TestThresholdExperiment runs a shorter form of experiments/threshold.toml: predicted and simulated agree
// within 0.5 % at every point, and the best threshold of prediction, simulation and measurement is the same
// at every N that was measured (TokenRouter, arXiv 2610.12242, figure 10).
func TestThresholdExperiment(t *testing.T) {
	s, err := spec.Load("../threshold.toml")
	if err != nil {
		t.Fatal(err)
	}
	s.Replicates = 2
	for i := range s.Points {
		s.Points[i].Workload.Requests = 500
	}
	agreement := shorten(s, 0.005)
	if testing.Short() {
		s.Points = s.Points[:9]
	}
	summary := mustRun(t, s, Options{Out: t.TempDir(), Workers: 2}).Summary
	best := make(map[int]map[string]int) // N: series: B1
	top := make(map[int]map[string]float64)
	for i := range summary.Rows {
		r := &summary.Rows[i]
		if best[r.Concurrency] == nil {
			best[r.Concurrency], top[r.Concurrency] = make(map[string]int), make(map[string]float64)
		}
		values := map[string]float64{}
		values["predicted"], _ = summary.Value(r, "predicted_tok_s")
		values["simulated"], _ = summary.Value(r, "throughput_tok_s")
		if d := values["simulated"]/values["predicted"] - 1; !(math.Abs(d) < agreement) {
			t.Errorf("%s: simulated is %.3f %% off", r.Point, 100*d)
		}
		for _, p := range s.References[0].Points {
			if p.At["concurrency"] == r.Text("concurrency") && p.At["thresholds"] == r.Text("thresholds") {
				values["measured"] = p.Value
			}
		}
		for name, v := range values {
			if v > top[r.Concurrency][name] {
				top[r.Concurrency][name], best[r.Concurrency][name] = v, r.Thresholds[1]
			}
		}
	}
	want := map[int]map[string]int{
		2: {"predicted": 2, "simulated": 2, "measured": 2}, 3: {"predicted": 2, "simulated": 2, "measured": 2},
		4: {"predicted": 3, "simulated": 3, "measured": 3}, 6: {"predicted": 4, "simulated": 4},
		8: {"predicted": 5, "simulated": 5}, 12: {"predicted": 8, "simulated": 8}, 16: {"predicted": 10,
			"simulated": 10},
	}
	for n := range want {
		if best[n] == nil {
			delete(want, n)
		}
	}
	if diff := cmp.Diff(want, best); diff != "" {
		t.Errorf("best B1 (-want +got):\n%s", diff)
	}
}

// TestPlanned: the chain plans the best set for each N up to the concurrency: (1,1), (1,2), (1,2), (1,3) for
// R2R with p = 0.35 and 6.0 and 27.9 ms.
func TestPlanned(t *testing.T) {
	text := strings.Replace(tiny, "kind = \"delayed\"",
		"kind = \"delayed\"\nthresholds = \"planned\"\nhold = [1, 0]", 1)
	text = strings.Replace(text, "thresholds = \"1,_\"\n[[figure]]\nkind = \"threshold\"\n", "", 1)
	text = strings.Replace(text, "points = [{ concurrency = 2, thresholds = [1, 1],",
		"points = [{ concurrency = 2,", 1)
	s := parse(t, strings.Replace(text, "[2, 3]", "[2, 4]", 1))
	table, err := newPlanner().thresholds(context.Background(), &s.Points[1])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{1, 1}, {1, 2}, {1, 2}, {1, 3}}, table); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
	if diff := cmp.Diff([]int{1, 3}, summary.Rows[1].Thresholds); diff != "" {
		t.Errorf("thresholds of the row at N = 4 (-want +got):\n%s", diff)
	}
}

// TestNotPredicted: where the chain does not describe a point there is no prediction, never a wrong one.
func TestNotPredicted(t *testing.T) {
	base := strings.Replace(me, "requests = 400", "requests = 20", 1)
	tests := []struct{ name, old, new string }{
		{"barrier", "kind = \"delayed\"\nthresholds = [1, 1, 1]", `kind = "step-sync"`},
		{"longest wait", "thresholds = [1, 1, 1]", "thresholds = [1, 1, 1]\nmax_wait = \"1ms\""},
		{"open loop", `kind = "closed"`, "kind = \"poisson\"\nrate = 5.0"},
		{"token budget", "[policy]", "[scheduler]\ntoken_budget = 64\n[policy]"},
		{"rows_max", `name = "large",`, `name = "large", rows_max = 2,`},
		{"small pool", `name = "large",`, `name = "large", kv = { pages = 64 },`},
		{"not calibrated", `kind = "constant", step = "6ms"`,
			`kind = "affine", base = "6ms", per_fresh_ns = 100, fresh_tokens = [1, 7], outside = "clamp"`},
		{"static batches", "[policy]", "[scheduler]\nbatching = \"static\"\n[policy]"},
		{"a full prefill a call", `name = "small", latency = { kind = "constant", step = "6ms" }`,
			`name = "small", reuse = false, latency = { kind = "affine", base = "6ms", per_fresh_ns = 100 }`},
		{"two nodes", `name = "large",`, `name = "large", node = 1,`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(base, test.old, test.new, 1)
			if strings.Contains(text, "node = 1") {
				text += "[[links]]\nbetween = [0, 1]\nlatency = \"10us\"\n"
			}
			summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
			if v, _ := summary.Value(&summary.Rows[0], "predicted_tok_s"); !math.IsNaN(v) {
				t.Errorf("predicted %v tok/s, want none", v)
			}
			if v, _ := summary.Value(&summary.Rows[0], "throughput_tok_s"); !(v > 0) {
				t.Errorf("throughput %v", v)
			}
		})
	}
}
