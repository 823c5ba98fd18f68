package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tokenrouter/experiments/result"
)

// TestRunHardware: the short form of the hardware experiment, with small models: it runs, replays, and
// compares. Nothing is said of times.
func TestRunHardware(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // where the lock of another test is not
	var report struct {
		Experiment, Out string
		Rows            []map[string]json.RawMessage
	}
	decode(t, mustRun(t, "run", "../hardware-short.toml", "--out", dir, "--json"), &report)
	if len(report.Rows) != 5 {
		t.Fatalf("%d rows, want 2 + 3", len(report.Rows))
	}
	for _, key := range []string{"throughput_tok_s", "predicted_tok_s", "simulated_tok_s", "slm_bookkeeping"} {
		var v float64
		if err := json.Unmarshal(report.Rows[0][key], &v); err != nil || !(v > 0) {
			t.Errorf("%s = %s, want a number above 0", key, report.Rows[0][key])
		}
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "turns", "*.jsonl"))
	if len(logs) != 5 {
		t.Errorf("%d turn logs, want one a point", len(logs))
	}
	for _, log := range logs {
		mustRun(t, "trace", "replay", log)
	}
	var compared comparisonsJSON
	decode(t, mustRun(t, "compare", dir, "--json"), &compared)
	c := compared.Comparisons[0]
	if len(c.Argmax) != 2 || len(c.References) != 1 || c.References[0].Source != "this run, on cpu" {
		t.Errorf("best of %d groups, references %+v", len(c.Argmax), c.References)
	}
	text := mustRun(t, "compare", dir)
	for _, part := range []string{"measured  sim. %", "measured (this run, on cpu), 5 points",
		"within the measured", "steps of LLM: ", "5 seeds in 5 tries, of which", "measured / simulated - 1: "} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func TestRunHardwareRefuses(t *testing.T) {
	short := "../hardware-short.toml"
	dir := t.TempDir()
	putFile(t, dir, "pair.toml", pairText)
	other := putFile(t, dir, "other.toml", `name = "other"
system = { file = "pair.toml", calibrate = true, backend = "cuda" }
router = { algorithm = "r2r", p = 0.35 }
policy = { kind = "eager" }
workload = { kind = "closed", concurrency = 2, requests = 4, prompt = 4, output = 4 }
`)
	refuse(t, []refusal{
		{"simulated without times", []string{"run", short, "--backend", "sim"}, []string{"system.calibrate = true",
			"give a file system.calibration"}},
		{"shards", []string{"run", short, "--shard", "1/2"}, []string{"--shard = \"1/2\": measured points"}},
		{"workers", []string{"run", short, "--workers", "2"}, []string{"--workers = \"2\": measured points"}},
		{"not built", []string{"run", other}, []string{`system.backend = "cuda" is not built in, want sim, cpu`}},
		{"not built, by flag", []string{"run", short, "--backend", "cuda"}, []string{`"cuda" is not built in`}},
		{"predicted without times", []string{"predict", short}, []string{"is not known before it is measured"}},
	})
}

// measuredSummary has four points at N = 2 and 3, measured with intervals of 2.
func measuredSummary() *result.Summary {
	s := &result.Summary{
		Experiment: "made", Backend: "cpu", Models: []string{"SLM", "LLM"}, Replicates: 3,
		Metrics: result.MeasuredMetricsOf([]string{"SLM", "LLM"}),
		Axes:    []result.Axis{{Name: "concurrency"}, {Name: "thresholds"}},
	}
	for _, row := range []struct {
		n, b                           int
		measured, predicted, simulated float64
	}{
		{2, 1, 100, 90, 120}, {2, 2, 101, 110, 110},
		{3, 1, 150, 130, 140}, {3, 2, 160, 120, 200}, {3, 3, 159, 140, 150},
	} {
		r := result.Row{
			Point: result.JoinInts([]int{row.n, row.b}), Policy: "delayed", Concurrency: row.n,
			Thresholds: []int{1, row.b}, Replicate: -1, Replicates: 3,
		}
		for _, m := range s.Metrics {
			v, half := math.NaN(), math.NaN()
			switch m.Name {
			case "throughput_tok_s":
				v, half = row.measured, 2
			case "predicted_tok_s":
				v = row.predicted
			case "simulated_tok_s":
				v, half = row.simulated, 5
			}
			r.Values, r.Half = append(r.Values, v), append(r.Half, half)
		}
		s.Rows = append(s.Rows, r)
	}
	return s
}

// TestCompareMeasured: errors are those of prediction and simulation against what was measured, and the best
// thresholds agree if they are within the measured interval of the best, which is said.
func TestCompareMeasured(t *testing.T) {
	c := compare(measuredSummary())[0]
	value := func(x float64) *float64 { return &x }
	want := measured{Name: "measured", Value: 100, Interval: value(2), SimulatedError: value(120.0/100 - 1),
		PredictedError: value(90.0/100 - 1)}
	if diff := cmp.Diff(want, c.Rows[0].Measured[0], cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("first point (-want +got):\n%s", diff)
	}
	if got := *c.Rows[0].Simulated; got != 120 {
		t.Errorf("simulated %v, want 120", got)
	}
	// N = 2: 1,2 is the best measured and predicted; 1,1, the best simulated, is 1 below. N = 3: 1,2 is the best
	// measured and simulated; 1,3, the best predicted, is 1 below.
	var got []string
	for _, a := range c.Argmax {
		got = append(got, a.PredictedAgrees+" "+a.SimulatedAgrees)
	}
	if diff := cmp.Diff([]string{"yes tie", "tie yes"}, got); diff != "" || c.ArgmaxAgree != 2 {
		t.Errorf("agreement in %d (-want +got):\n%s", c.ArgmaxAgree, diff)
	}
	var text strings.Builder
	if err := c.printErrors(&text); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"agree in 2 of 2 cases",
		"that predicted in 1 and that simulated in 1; in 1 and 1 more", "1,1 (tie)", "1,3 (tie)"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("no %q in\n%s", part, &text)
		}
	}
	far := measuredSummary()
	far.Rows[3].Values[0] = 162
	if a := compare(far)[0].Argmax[1]; a.PredictedAgrees != "no" || a.Agree {
		t.Errorf("3 below the best with an interval of 2: %+v, want no agreement", a)
	}
}

// TestMeasurement: tries are counted over seeds, errors averaged over points, step times over launches.
func TestMeasurement(t *testing.T) {
	s := measuredSummary()
	set := func(r *result.Row, values map[string]float64) {
		for i, m := range s.Metrics {
			if v, ok := values[m.Name]; ok {
				r.Values[i] = v
			}
		}
	}
	s.Rows = s.Rows[:2]
	s.SeedRows = append(s.SeedRows, measuredSummary().Rows[:2]...)
	set(&s.SeedRows[0], map[string]float64{
		"tries": 3, "tries_off": 2, "probe_before": 0.9, "probe_after": 1, "others_share": 0.02})
	set(&s.SeedRows[1], map[string]float64{
		"tries": 2, "tries_off": 2, "seeds_off": 1, "probe_before": 1.1, "probe_after": 1.4, "others_share": 0.04})
	set(&s.Rows[0], map[string]float64{"simulated_error": -0.1, "rescaled_error": 0.02,
		"slm_step_mean_ms": 1, "slm_launches": 300, "slm_bookkeeping": 0.03, "simulated_slm_step_mean_ms": 1})
	set(&s.Rows[1], map[string]float64{"simulated_error": 0.06, "rescaled_error": 0.01,
		"slm_step_mean_ms": 2, "slm_launches": 100, "slm_bookkeeping": 0.07, "simulated_slm_step_mean_ms": 1})
	m := measurementOf(s)
	value := func(x float64) *float64 { return &x }
	want := &measurement{
		Seeds: 2, Tries: 5, TriesOff: 4, SeedsOff: 1,
		ProbeMin: value(0.9), ProbeMean: value(1.1), ProbeMax: value(1.4),
		OthersMean: value(0.03), OthersMax: value(0.04),
		SimulatedErrorMean: value(0.08), SimulatedBias: value(-0.02),
		RescaledErrorMean: value(0.015), RescaledErrorMax: value(0.02), RescaledBias: value(0.015),
		Steps: []modelSteps{{Model: "SLM", MeanMs: value(1.25), SimulatedMs: value(1), Bookkeeping: value(0.04),
			BookkeepingUs: value(50)}, {Model: "LLM"}},
	}
	if diff := cmp.Diff(want, m, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("measurement (-want +got):\n%s", diff)
	}
	if s.Backend = ""; measurementOf(s) != nil {
		t.Error("a simulation measured something")
	}
}
