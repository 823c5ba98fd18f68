package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core/turnlog"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/native/nativetest"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// realPair is the system of real; models of random weights.
const realPair = `[[models]]
name = "SLM"
shape = "tiny,layers=1,hidden=64,heads=2,head_dim=32,intermediate=64"
rows_max = 1
[[models]]
name = "LLM"
shape = "tiny,layers=2,hidden=64,heads=2,head_dim=32,intermediate=128"
[device]
shared = true
[router]
algorithm = "me"
`

// steps are made up step times of these models.
const steps = `[calibration]
device = "made up"
engine = "none"
date = "2026"
source = "a test"
range = "everywhere"

[[models]]
name = "SLM"
latency = { kind = "affine", base = "100us", per_fresh_ns = 1000, beside = 1.5 }
[[models]]
name = "LLM"
latency = { kind = "constant", step = "400us" }
`

// real is tiny, run by real models with made up step times.
var real = strings.NewReplacer(
	tiny[strings.Index(tiny, "models = ["):strings.Index(tiny, "[router]")],
	"system = { file = \"pair.toml\", calibration = \"steps.toml\","+
		" probe = { tries = 1, wait = \"0s\" } }\noutput.turn_log = true\n",
	"replicates = 3", "replicates = 2",
	tiny[strings.Index(tiny, "[[reference]]"):], "",
).Replace(tiny)

// realSpec writes a spec and its system, and loads it.
func realSpec(t *testing.T, text string) *spec.Spec {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pair.toml": realPair, "steps.toml": steps, "real.toml": text,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := spec.Load(filepath.Join(dir, "real.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// onFake are the options of a run on devices that compute nothing, which take next to no time.
func onFake(dir string) Options { return Options{Out: dir, Backend: nativetest.Fake()} }

// measuring lets a spec measure the step times itself, which takes devices that compute; with fewer requests.
func measuring(text string) string {
	return strings.NewReplacer(`calibration = "steps.toml"`, "calibrate = true", "requests = 40",
		"requests = 12").Replace(text)
}

// TestHardware: points are measured, simulated and predicted side by side, with step times that were measured
// first. No time is judged.
func TestHardware(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // where another test's lock is not
	var doing []string
	o := Options{Out: dir, Backend: cpu.Backend(), Doing: func(what string) { doing = append(doing, what) }}
	s := realSpec(t, measuring(real))
	report := mustRun(t, s, o)
	summary := report.Summary
	if len(summary.Rows) != 5 || len(summary.SeedRows) != 10 || summary.Backend != "cpu" {
		t.Fatalf("%d rows, %d a seed, of backend %q; want 5, 10 and cpu", len(summary.Rows),
			len(summary.SeedRows), summary.Backend)
	}
	for i := range summary.Rows {
		r := &summary.Rows[i]
		v := func(metric string) float64 { x, _ := summary.Value(r, metric); return x }
		for _, metric := range []string{"throughput_tok_s", "simulated_tok_s", "predicted_tok_s",
			"slm_step_mean_ms", "simulated_llm_step_mean_ms", "llm_bookkeeping", "slm_pages_peak"} {
			if !(v(metric) > 0) {
				t.Errorf("%s: %s = %v, want above 0", r.Point, metric, v(metric))
			}
		}
		// 12 requests of 30 tokens under 2 seeds.
		if v("tokens_total") != 2*12*30 {
			t.Errorf("%s: %v tokens, want %d", r.Point, v("tokens_total"), 2*12*30)
		}
		if want := v("throughput_tok_s")/v("predicted_tok_s") - 1; math.Abs(v("predicted_error")-want) > 1e-9 {
			t.Errorf("%s: predicted_error %v, want %v", r.Point, v("predicted_error"), want)
		}
	}
	if diff := cmp.Diff([]string{"loading models", "measuring step times"}, doing); diff != "" {
		t.Errorf("long work (-want +got):\n%s", diff)
	}
	for _, name := range []string{calibrationFile, "calibration.csv", "threshold.png"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	again, err := result.Read(dir)
	if err != nil || again.Backend != "cpu" {
		t.Errorf("read back: %v", err)
	}
}

// TestHardwareDrawsLikeTheSimulator: drafts are dropped at the same places, whatever the times; so the counts
// of drafts and of moves between models are those of the simulator under the same seed.
func TestHardwareDrawsLikeTheSimulator(t *testing.T) {
	measured := mustRun(t, realSpec(t, real), onFake(t.TempDir())).Summary
	simulated := mustRun(t, parse(t, tiny), Options{Out: t.TempDir()}).Summary
	for i := range measured.SeedRows {
		m := &measured.SeedRows[i]
		at := slices.IndexFunc(simulated.SeedRows, func(r result.Row) bool {
			return r.Point == m.Point && r.Replicate == m.Replicate
		})
		for _, metric := range []string{"drafts_dropped", "handoffs", "tokens_total"} {
			got, _ := measured.Value(m, metric)
			want, _ := simulated.Value(&simulated.SeedRows[at], metric)
			if got != want {
				t.Errorf("%s, replicate %d: %s = %v, want %v as simulated", m.Point, m.Replicate, metric, got, want)
			}
		}
	}
}

// TestHardwareReplays: the turn log of a real run replays to the same decisions.
func TestHardwareReplays(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, realSpec(t, real), onFake(dir))
	logs, err := filepath.Glob(filepath.Join(dir, LogDir, "*.jsonl"))
	if err != nil || len(logs) != 5 {
		t.Fatalf("logs %v, %v; want one a point", logs, err)
	}
	for _, path := range logs {
		log, err := turnlog.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		turns, err := turnlog.Replay(log)
		// 40 answers of 30 tokens, at most 3 in a launch, and launches of both models may end in one turn.
		if least := uint64(40 * 30 / 3 / 2); err != nil || turns < least {
			t.Errorf("%s: %d turns, %v, want at least %d", path, turns, err, least)
		}
		log.Close()
	}
}

// TestHardwareResumes: finished jobs and the calibration are kept.
func TestHardwareResumes(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	o := Options{Out: dir, Backend: cpu.Backend(), Progress: func(done, _ int) {
		if done == 3 {
			stop()
		}
	}}
	s := realSpec(t, measuring(real))
	report, err := Run(ctx, s, o)
	if !errors.Is(err, context.Canceled) || report.Done != 3 || report.Summary != nil {
		t.Fatalf("report %+v, error %v, want 3 jobs and a cancelled context", report, err)
	}
	samples := filepath.Join(dir, "calibration.csv")
	before, err := os.ReadFile(samples)
	if err != nil {
		t.Fatal(err)
	}
	jobs := 0
	o.Resume, o.Progress = true, func(_, total int) { jobs = total }
	mustRun(t, s, o)
	after, err := os.ReadFile(samples)
	if err != nil || !strings.HasPrefix(string(after), string(before)) || jobs != 7 {
		t.Errorf("%d jobs went on with another calibration, %v; want 7 that add to the same", jobs, err)
	}
	// 10 jobs have gaps for 6 rounds besides the first.
	if last := string(after[:len(after)-1]); !strings.Contains(last[strings.LastIndex(last, "\n"):], ",6,") {
		t.Errorf("the last step is %q, want one of round 6", last[strings.LastIndex(last, "\n"):])
	}
	if mustRun(t, s, o).Done != 10 {
		t.Error("a finished run was not resumed")
	}
}

// TestHardwareRefused: what hardware can not do, and what can not do without it.
func TestHardwareRefused(t *testing.T) {
	s := realSpec(t, measuring(real))
	for _, c := range []struct {
		name string
		s    *spec.Spec
		o    Options
		want string
	}{
		{"no system", parse(t, tiny), onFake(""), "spec tiny.toml: no [system] for the backend fake"},
		{"workers", s, Options{Backend: nativetest.Fake(), Workers: 2}, "2 workers: measured points run one at"},
		{"shards", s, Options{Backend: nativetest.Fake(), Shard: 1, Shards: 2}, "shard 1 of 2: measured points"},
		{"no times", s, Options{}, "step times are not known before hardware has"},
	} {
		if _, err := Run(t.Context(), c.s, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}
