package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/experiments/result"
)

// small is R2R with the published step times, few requests and a reference, so that every column has
// something.
const small = `name = "small"
seed = 1
replicates = 2

[[models]]
name = "SLM"
latency = { kind = "constant", step = "6.0ms" }

[[models]]
name = "LLM"
latency = { kind = "constant", step = "27.9ms" }

[router]
algorithm = "r2r"
p = 0.35

[policy]
kind = "delayed"

[workload]
kind = "closed"
requests = 60
warmup_requests = 4
prompt = 20
output = 64

[sweep]
concurrency = [2, 3]
thresholds = "1,_"

[output]
turn_log = true

[[figure]]
kind = "threshold"

[[reference]]
name = "measured"
source = "TokenRouter, arXiv 2610.12242, figure 10"
metric = "throughput_tok_s"
file = "measured.csv"
`

// writeSpec writes small, changed by pairs of old and new text, and returns its path.
func writeSpec(t *testing.T, changes ...string) string {
	t.Helper()
	dir := t.TempDir()
	measured := "concurrency,thresholds,throughput_tok_s\n2,\"1,1\",94.4\n2,\"1,2\",122.3\n"
	if err := os.WriteFile(filepath.Join(dir, "measured.csv"), []byte(measured), 0o644); err != nil {
		t.Fatal(err)
	}
	text := small
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("no %q in the spec", changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	path := filepath.Join(dir, "small.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// rowFields are the fields of run --json that the contract names.
type rowFields struct {
	Policy      string  `json:"policy"`
	Concurrency int     `json:"concurrency"`
	Thresholds  []int   `json:"thresholds"`
	TokS        float64 `json:"throughput_tok_s"`
	LatencyMs   float64 `json:"latency_mean_ms"`
	Predicted   float64 `json:"predicted_tok_s"`
}

func runJSON(t *testing.T, args ...string) (report reportJSON, rows []rowFields) {
	t.Helper()
	decode(t, mustRun(t, args...), &report)
	if err := json.Unmarshal(report.Rows, &rows); err != nil {
		t.Fatal(err)
	}
	return report, rows
}

// TestSchedules: the four mean latencies of the paper's schedule figure, in SLM steps of 1 ms: 40/3, 39/3,
// 32.5/3 and 26/3.
func TestSchedules(t *testing.T) {
	out := filepath.Join(t.TempDir(), "schedules")
	report, rows := runJSON(t, "run", "../schedules.toml", "--out", out, "--json")
	if report.Experiment != "schedules" || report.Out != out || report.Jobs != 0 {
		t.Errorf("got %+v", report)
	}
	want := map[string]float64{
		"step-sync": 40. / 3, "model-sync": 39. / 3, "eager": 32.5 / 3, "delayed": 26. / 3,
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for _, r := range rows {
		if math.Abs(r.LatencyMs-want[r.Policy]) > 1e-6 {
			t.Errorf("%s: mean latency %v, want %v", r.Policy, r.LatencyMs, want[r.Policy])
		}
	}
}

func TestRunJSON(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	report, rows := runJSON(t, "run", writeSpec(t), "--out", out, "--json")
	if report.Experiment != "small" || report.Out != out {
		t.Errorf("experiment %q, out %q", report.Experiment, report.Out)
	}
	// TokenRouter, arXiv 2610.12242, appendix D.
	predicted := map[string]float64{"1,1 2": 98.956913, "1,2 2": 110.322694,
		"1,1 3": 142.338815, "1,2 3": 158.117117, "1,3 3": 151.891325}
	if len(rows) != len(predicted) {
		t.Fatalf("%d rows, want %d", len(rows), len(predicted))
	}
	for _, r := range rows {
		want := predicted[result.JoinInts(r.Thresholds)+" "+map[int]string{2: "2", 3: "3"}[r.Concurrency]]
		if math.Abs(r.Predicted-want) > 1e-5 || math.Abs(r.TokS/want-1) > 0.02 {
			t.Errorf("N=%d %v: predicted %v, simulated %v, want %v", r.Concurrency, r.Thresholds, r.Predicted,
				r.TokS, want)
		}
	}
	for _, name := range []string{result.SpecFile, result.EnvironmentFile, result.SummaryCSV, result.SummaryJSON,
		result.RequestsFile, "threshold.png", "threshold.svg"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunTable(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	o := runCLI(t, "run", writeSpec(t), "--out", out)
	if o.code != ExitDone {
		t.Fatal(o.stderr)
	}
	for _, part := range []string{"small: 5 points, 2 seeds a point\n", "policy   N  thresholds", "110.323",
		"best thresholds agree in 2 of 2 cases", "results: " + out,
		"figure:  " + filepath.Join(out, "threshold.svg")} {
		if !strings.Contains(o.stdout, part) {
			t.Errorf("no %q in\n%s", part, o.stdout)
		}
	}
	if strings.Contains(o.stderr, "%") {
		t.Errorf("a progress bar on what is no terminal: %q", o.stderr)
	}
}

// TestRunWorkers: the same bytes whatever the number of workers.
func TestRunWorkers(t *testing.T) {
	path := writeSpec(t)
	var texts []string
	for _, workers := range []string{"1", "5"} {
		out := filepath.Join(t.TempDir(), "out")
		mustRun(t, "run", path, "--out", out, "--workers", workers)
		text := ""
		for _, name := range []string{result.SummaryCSV, result.SummaryJSON, result.RequestsFile, "threshold.svg"} {
			text += readText(t, filepath.Join(out, name))
		}
		texts = append(texts, text)
	}
	if texts[0] != texts[1] {
		t.Error("1 and 5 workers give other results")
	}
}

// TestRunShards: two shards and a resumed run give what one run gives.
func TestRunShards(t *testing.T) {
	path, out := writeSpec(t), filepath.Join(t.TempDir(), "out")
	report, rows := runJSON(t, "run", path, "--out", out, "--shard", "1/2", "--json")
	if len(rows) != 0 || report.JobsDone != 6 || report.Jobs != 10 {
		t.Errorf("first shard: %d rows, %d of %d jobs, want 0, 6 of 10", len(rows), report.JobsDone, report.Jobs)
	}
	o := runCLI(t, "plot", out)
	if o.code != ExitMisuse || !strings.Contains(o.stderr, "not finished") {
		t.Errorf("plot of half a run: %+v", o)
	}
	_, rows = runJSON(t, "run", path, "--out", out, "--shard", "2/2", "--json")
	_, whole := runJSON(t, "run", path, "--out", filepath.Join(t.TempDir(), "whole"), "--json")
	equal := func(a, b rowFields) bool { return a.TokS == b.TokS && a.Policy == b.Policy }
	if !slices.EqualFunc(rows, whole, equal) {
		t.Errorf("shards give %v, one run %v", rows, whole)
	}
	_, again := runJSON(t, "run", path, "--out", out, "--resume", "--json")
	if len(again) != len(whole) {
		t.Errorf("resuming a finished run gives %d rows, want %d", len(again), len(whole))
	}
}

// TestRunMerge: shards in two folders give what one run gives.
func TestRunMerge(t *testing.T) {
	path, dir := writeSpec(t), t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	whole := filepath.Join(dir, "whole")
	mustRun(t, "run", path, "--out", first, "--shard", "1/2")
	mustRun(t, "run", path, "--out", second, "--shard", "2/2")
	mustRun(t, "run", path, "--out", first, "--merge", second)
	mustRun(t, "run", path, "--out", whole)
	got := readText(t, filepath.Join(first, result.SummaryCSV))
	want := readText(t, filepath.Join(whole, result.SummaryCSV))
	if got != want {
		t.Error("merged shards give other results than one run")
	}
	refuse(t, []refusal{
		{"merge nothing", []string{"run", path, "--out", whole, "--merge", "absent"}, []string{"merge absent"}},
		{"into nothing", []string{"run", path, "--out", filepath.Join(dir, "no"), "--merge", second},
			[]string{"merge into", "no such file"}},
	})
}

func TestRunInterrupted(t *testing.T) {
	path, out := writeSpec(t), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	code := Main(ctx, []string{"run", path, "--out", out, "--json"}, &stdout, &stderr)
	if code != ExitFailed || stdout.Len() != 0 {
		t.Errorf("exit %d, stdout %q", code, stdout.String())
	}
	for _, part := range []string{"interrupted; 0 of 10 jobs are finished and kept in " + out,
		"tokenrouter run " + path + " --resume --out " + out} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("stderr %q, want %q in it", stderr.String(), part)
		}
	}
	mustRun(t, "run", path, "--resume", "--out", out)
}

func TestRunTurnLog(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "run", writeSpec(t), "--out", out)
	var logs []string
	err := filepath.WalkDir(out, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".jsonl") {
			logs = append(logs, path)
		}
		return err
	})
	if err != nil || len(logs) == 0 {
		t.Fatalf("no turn log in %s: %v", out, err)
	}
	mustRun(t, "trace", "replay", logs[0])
}

func TestRunRefusals(t *testing.T) {
	path, folder := writeSpec(t), t.TempDir()
	file := writeFile(t, "file", nil)
	other := filepath.Join(t.TempDir(), "other")
	mustRun(t, "run", path, "--out", other)
	absent := filepath.Join(t.TempDir(), "absent")
	with := func(changes ...string) []string {
		return []string{"run", writeSpec(t, changes...), "--out", absent}
	}
	run := func(args ...string) []string { return append([]string{"run", path, "--out", absent}, args...) }
	refuse(t, []refusal{
		{"no spec", []string{"run"}, []string{"want a SPEC.toml"}},
		{"missing spec", []string{"run", "absent.toml"}, []string{`spec "absent.toml" does not exist`}},
		{"directory", []string{"run", folder}, []string{"is a directory, want a file"}},
		{"two specs", []string{"run", path, path}, []string{"2 arguments"}},
		{"shard 0/3", run("--shard", "0/3"), []string{`--shard = "0/3", want PART/PARTS`}},
		{"shard 4/3", run("--shard", "4/3"), []string{`--shard = "4/3"`}},
		{"shard of none", run("--shard", "1/0"), []string{`--shard = "1/0"`}},
		{"shard a number", run("--shard", "2"), []string{`--shard = "2"`}},
		{"shard a word", run("--shard", "a/b"), []string{`--shard = "a/b"`}},
		{"no workers", run("--workers", "0"), []string{`--workers = "0", want a whole number from 1`}},
		{"negative workers", run("--workers", "-2"), []string{`--workers = "-2"`}},
		{"unknown backend", run("--backend", "tpu"), []string{`--backend = "tpu", want sim, cpu, cuda`}},
		{"backend cpu", run("--backend", "cpu"), []string{`--backend = "cpu", and `, "has no [system]"}},
		{"backend cuda", run("--backend", "cuda"), []string{"not built in"}},
		{"backend http", run("--backend", "http"), []string{`--backend = "http", want sim, cpu, cuda`}},
		{"out is a file", []string{"run", path, "--out", file}, []string{"is a file, want a folder"}},
		{"out is blank", []string{"run", path, "--out", " "}, []string{`--out = " ", want a folder`}},
		{"nothing to resume", run("--resume"), []string{"nothing to resume in " + absent}},
		{"results of another spec", []string{"run", writeSpec(t, "seed = 1", "seed = 2"), "--out", other},
			[]string{other, "another spec"}},
		{"resume another spec", []string{"run", writeSpec(t, "seed = 1", "seed = 2"), "--out", other, "--resume"},
			[]string{other, "another spec"}},
		{"typo", with("requests = 60", "request = 60"), []string{"small.toml:22", "request", "requests"}},
		{"bare duration", with(`"6.0ms"`, "6.0"), []string{"small.toml:7", "step = 6", "ms"}},
		{"infeasible", with(`thresholds = "1,_"`, "thresholds = [[2, 4]]"), []string{"small.toml", "2"}},
		{"not TOML", with("seed = 1", "seed = = 1"), []string{"small.toml:2"}},
	})
	if _, err := os.Stat(absent); err == nil {
		t.Errorf("%s was written though every run was refused", absent)
	}
}

func TestPlotAndCompare(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "run", writeSpec(t), "--out", out)
	svg := filepath.Join(out, "threshold.svg")
	before := readText(t, svg)
	if err := os.Remove(svg); err != nil {
		t.Fatal(err)
	}
	if got := mustRun(t, "plot", out); got != filepath.Join(out, "threshold.png")+"\n"+svg+"\n" {
		t.Errorf("plot prints %q", got)
	}
	if readText(t, svg) != before {
		t.Error("plot draws another figure than run")
	}
	var figures figuresJSON
	decode(t, mustRun(t, "plot", out, "--json"), &figures)
	if len(figures.Figures) != 2 {
		t.Errorf("figures %v, want two", figures.Figures)
	}

	var got comparisonsJSON
	decode(t, mustRun(t, "compare", out, "--json"), &got)
	if len(got.Comparisons) != 1 {
		t.Fatalf("%d comparisons, want 1", len(got.Comparisons))
	}
	c := got.Comparisons[0]
	if len(c.Rows) != 5 || c.ArgmaxAgree != 2 || len(c.Argmax) != 2 || *c.PredictedErrorMax > 0.02 {
		t.Errorf("got %+v", c)
	}
	if a := c.Argmax[0]; a.Group != "N = 2" || result.JoinInts(a.Measured["measured"]) != "1,2" || !a.Agree {
		t.Errorf("argmax %+v", a)
	}
	// 98.956913 predicted against 94.4 measured is 4.827 % too much; 110.322694 against 122.3 is 9.793 % too
	// little.
	if r := c.References[0]; r.Points != 2 || math.Abs(*r.PredictedErrorMean-(0.0482724+0.0979339)/2) > 1e-6 {
		t.Errorf("reference %+v, predicted error %v", r, *r.PredictedErrorMean)
	}
	table := mustRun(t, "compare", out)
	for _, part := range []string{"small: throughput_tok_s\n", "110.323", "122.300", "-9.8",
		"best thresholds agree in 2 of 2 cases:\n", "figure 10"} {
		if !strings.Contains(table, part) {
			t.Errorf("no %q in\n%s", part, table)
		}
	}
}

func TestResultsRefusals(t *testing.T) {
	damaged := t.TempDir()
	path := filepath.Join(damaged, result.SummaryJSON)
	if err := os.WriteFile(path, []byte("{\n\"rows\": 3,\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, "file", nil)
	for _, command := range []string{"plot", "compare"} {
		refuse(t, []refusal{
			{command + " nothing", []string{command}, []string{"want a results folder"}},
			{command + " missing", []string{command, "absent"}, []string{`results folder "absent" does not exist`}},
			{command + " a file", []string{command, file}, []string{"is a file, want a results folder"}},
			{command + " another folder", []string{command, t.TempDir()}, []string{result.SummaryJSON}},
			{command + " damaged", []string{command, damaged}, []string{damaged, "damaged"}},
		})
	}
}

func TestPredictSpec(t *testing.T) {
	path := writeSpec(t)
	var several severalJSON
	decode(t, mustRun(t, "predict", path, "--json"), &several)
	if several.Experiment != "small" || len(several.Predictions) != 2 {
		t.Fatalf("got %+v", several)
	}
	for i, want := range []struct {
		n, points int
		tokS      float64
	}{{2, 2, 110.322694}, {3, 3, 158.117117}} { // TokenRouter, arXiv 2610.12242, appendix D
		p := several.Predictions[i]
		if p.Concurrency != want.n || len(p.Points) != want.points ||
			math.Abs(p.Best.ThroughputTokS-want.tokS) > 1e-5 {
			t.Errorf("got %+v, want %+v", p, want)
		}
	}
	var one predictionJSON
	decode(t, mustRun(t, "predict", path, "-n", "3", "--fix", "_,_", "--json"), &one)
	if one.Concurrency != 3 || len(one.Points) != 6 {
		t.Errorf("got %+v, want all 6 sets of N = 3", one)
	}
	refuse(t, []refusal{
		{"a concurrency that it lacks", []string{"predict", path, "-n", "5"}, []string{"-n = 5", "2,3"}},
		{"two systems", []string{"predict", path, "--p", "0.5"}, []string{"both describe a system"}},
		{"a directory", []string{"predict", t.TempDir()}, []string{"is a directory"}},
		{"recorded verdicts", []string{"predict", "../schedules.toml"}, []string{"does not describe it"}},
		{"infeasible at one N", []string{"predict", path, "--thresholds", "1,3"}, []string{"N = 2"}},
	})
}
