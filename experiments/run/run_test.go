package run

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/core/turnlog"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

var update = flag.Bool("update", false, "write the golden files anew")

// tiny is a spec of 5 points and 3 replicates that runs in no time.
const tiny = `name = "tiny"
title = "Tiny"
seed = 3
replicates = 3
models = [
  { name = "SLM", latency = { kind = "constant", step = "6.0ms" } },
  { name = "LLM", latency = { kind = "constant", step = "27.9ms" } },
]
[router]
algorithm = "r2r"
p = 0.35
[workload]
kind = "closed"
requests = 40
warmup_requests = 4
prompt = 10
output = 30
[policy]
kind = "delayed"
[sweep]
concurrency = [2, 3]
thresholds = "1,_"
[[figure]]
kind = "threshold"
[[reference]]
name = "made up"
source = "this test"
points = [{ concurrency = 2, thresholds = [1, 1], value = 94.4 }]
`

// undrawn is tiny without its figure.
var undrawn = strings.Replace(tiny, "[[figure]]\nkind = \"threshold\"\n", "", 1)

func parse(t *testing.T, text string) *spec.Spec {
	t.Helper()
	s, err := spec.Parse("tiny.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t *testing.T, s *spec.Spec, o Options) *Report {
	t.Helper()
	report, err := Run(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// folder reads all files of a results folder but the environment.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == result.EnvironmentFile {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// same fails unless two folders hold the same bytes.
func same(t *testing.T, what, a, b string) {
	t.Helper()
	want, got := folder(t, a), folder(t, b)
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s differs", what, name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("%s: %s is too much", what, name)
	}
}

// TestGolden: the whole of a tiny run's summary.csv. Its throughput is near that of the chain, for example
// 98.956913 tok/s at N = 2, B = (1, 1) (TokenRouter, arXiv 2610.12242, appendix D).
func TestGolden(t *testing.T) {
	dir := t.TempDir()
	report := mustRun(t, parse(t, tiny), Options{Out: dir})
	if report.Done != 15 || report.Total != 15 || report.Summary == nil {
		t.Fatalf("report %+v, want 15 of 15 jobs and a summary", report)
	}
	for i, name := range []string{result.SummaryCSV, result.SpecFile, result.MetricsFile} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "tiny-"+name)
		if *update {
			if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, got, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
			t.Errorf("file %d, %s (-want +got):\n%s", i, name, diff)
		}
	}
	for _, name := range []string{"threshold.png", "threshold.svg", result.RequestsFile, result.SummaryJSON} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "parts")); err == nil {
		t.Error("parts are still there")
	}
}

// TestReadsBack: what Read gives is what the run had, and it writes the same bytes again.
func TestReadsBack(t *testing.T) {
	dir := t.TempDir()
	want := mustRun(t, parse(t, tiny), Options{Out: dir}).Summary
	got, err := result.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := want.JSON()
	if err != nil {
		t.Fatal(err)
	}
	b, err := got.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("summary.json (-want +got):\n%s", cmp.Diff(string(a), string(b)))
	}
	table, err := got.CSV()
	if err != nil {
		t.Fatal(err)
	}
	if old, _ := os.ReadFile(filepath.Join(dir, result.SummaryCSV)); !bytes.Equal(old, table) {
		t.Error("summary.csv of the summary that was read differs")
	}
}

func TestWorkersDoNotMatter(t *testing.T) {
	one, eight := t.TempDir(), t.TempDir()
	mustRun(t, parse(t, tiny), Options{Out: one, Workers: 1})
	mustRun(t, parse(t, tiny), Options{Out: eight, Workers: 8})
	same(t, "8 workers", one, eight)
	mustRun(t, parse(t, tiny), Options{Out: eight, Workers: 3})
	same(t, "again into the same folder", one, eight)
}

func TestShards(t *testing.T) {
	straight, dir := t.TempDir(), t.TempDir()
	mustRun(t, parse(t, tiny), Options{Out: straight})
	for shard, done := range []int{6, 12, 15} {
		report := mustRun(t, parse(t, tiny), Options{Out: dir, Shard: shard + 1, Shards: 3, Workers: 2})
		if report.Done != done || (report.Summary != nil) != (done == 15) {
			t.Errorf("after shard %d: %d jobs, summary %v; want %d", shard+1, report.Done, report.Summary != nil, done)
		}
		if shard == 0 {
			if _, err := result.Read(dir); err == nil || !strings.Contains(err.Error(), "--resume") {
				t.Errorf("reading an unfinished run: %v", err)
			}
		}
	}
	same(t, "three shards", straight, dir)
	if _, err := Run(context.Background(), parse(t, tiny), Options{Out: dir, Shard: 4, Shards: 3}); err == nil {
		t.Error("shard 4 of 3 was taken")
	}
}

// TestShardsAtOnce: shards that run and finish at the same time in one folder leave the results of
// a straight run.
func TestShardsAtOnce(t *testing.T) {
	straight := t.TempDir()
	mustRun(t, parse(t, undrawn), Options{Out: straight})
	for range 5 {
		dir := t.TempDir()
		mustRun(t, parse(t, undrawn), Options{Out: dir, Shard: 1, Shards: 3})
		var both sync.WaitGroup
		for shard := 2; shard <= 3; shard++ {
			both.Go(func() {
				o := Options{Out: dir, Shard: shard, Shards: 3}
				if _, err := Run(context.Background(), parse(t, undrawn), o); err != nil {
					t.Errorf("shard %d: %v", shard, err)
				}
			})
		}
		both.Wait()
		same(t, "shards at once", straight, dir)
	}
}

// TestMergeOfShards: shards of several machines are merged by putting their parts into one folder.
func TestMergeOfShards(t *testing.T) {
	straight, a, b := t.TempDir(), t.TempDir(), t.TempDir()
	mustRun(t, parse(t, undrawn), Options{Out: straight})
	mustRun(t, parse(t, undrawn), Options{Out: a, Shard: 1, Shards: 2})
	mustRun(t, parse(t, undrawn), Options{Out: b, Shard: 2, Shards: 2})
	if err := Merge(a, b); err != nil {
		t.Fatal(err)
	}
	report := mustRun(t, parse(t, undrawn), Options{Out: a, Resume: true})
	if report.Summary == nil {
		t.Fatalf("merged run has %d of %d jobs", report.Done, report.Total)
	}
	same(t, "merged shards", straight, a)

	other := t.TempDir()
	mustRun(t, parse(t, strings.Replace(undrawn, "seed = 3", "seed = 4", 1)),
		Options{Out: other, Shard: 1, Shards: 2})
	if err := Merge(b, other); err == nil || !strings.Contains(err.Error(), "of another spec") {
		t.Errorf("merging shards of two specs: %v", err)
	}
}

// TestResume interrupts a run after 4 jobs and goes on: the results are those of a straight run.
func TestResume(t *testing.T) {
	straight, dir := t.TempDir(), t.TempDir()
	mustRun(t, parse(t, tiny), Options{Out: straight})
	ctx, stop := context.WithCancel(context.Background())
	report, err := Run(ctx, parse(t, tiny), Options{Out: dir, Workers: 2, Progress: func(done, total int) {
		if total != 15 {
			t.Errorf("progress of %d jobs, want 15", total)
		}
		if done == 4 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || report == nil || report.Summary != nil ||
		report.Done < 4 || report.Done > 6 {
		t.Fatalf("interrupted: %+v, %v; want 4 to 6 jobs and context.Canceled", report, err)
	}
	left := 15 - report.Done
	report = mustRun(t, parse(t, tiny), Options{Out: dir, Resume: true, Progress: func(_, total int) {
		if total != left {
			t.Errorf("resumed with %d jobs, want the %d that are left", total, left)
		}
	}})
	if report.Done != 15 {
		t.Errorf("resumed: %d jobs, want 15", report.Done)
	}
	same(t, "resumed", straight, dir)
	report = mustRun(t, parse(t, tiny), Options{Out: dir, Resume: true, Progress: func(int, int) {
		t.Error("a finished run runs jobs again")
	}})
	if report.Summary == nil || report.Done != 15 {
		t.Errorf("resuming a finished run: %+v", report)
	}
	same(t, "resumed again", straight, dir)
}

func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, parse(t, tiny), Options{Out: dir, Shard: 1, Shards: 2})
	changed := parse(t, strings.Replace(tiny, "p = 0.35", "p = 0.36", 1))
	before := folder(t, dir)
	for _, resume := range []bool{true, false} {
		_, err := Run(context.Background(), changed, Options{Out: dir, Resume: resume})
		if err == nil || !strings.Contains(err.Error(), "another spec") {
			t.Errorf("changed spec, resume %v: %v", resume, err)
		}
	}
	if diff := cmp.Diff(before, folder(t, dir)); diff != "" {
		t.Errorf("a refused run wrote (-before +after):\n%s", diff)
	}
	_, err := Run(context.Background(), changed, Options{Out: filepath.Join(dir, "none"), Resume: true})
	if err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("resume of nothing: %v", err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "parts", "*.json"))
	if err != nil || len(parts) == 0 {
		t.Fatal(parts, err)
	}
	if err := os.WriteFile(parts[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Run(context.Background(), parse(t, tiny), Options{Out: dir, Resume: true})
	if err == nil || !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), parts[0]) {
		t.Errorf("damaged part: %v", err)
	}
}

// TestNewPointChangesNoOldOne puts N = 8 in front of the list, with common random numbers and without.
func TestNewPointChangesNoOldOne(t *testing.T) {
	for _, common := range []string{"true", "false"} {
		text := "common_random_numbers = " + common + "\n" + undrawn
		longer := strings.Replace(text, "[2, 3]", "[4, 2, 3]", 1)
		a := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
		b := mustRun(t, parse(t, longer), Options{Out: t.TempDir(), Workers: 2}).Summary
		byName := make(map[string]result.Row)
		for _, r := range b.Rows {
			byName[r.Point] = r
		}
		for _, r := range a.Rows {
			if diff := cmp.Diff(r, byName[r.Point], nans); diff != "" {
				t.Errorf("common random numbers %s: %s changed (-before +after):\n%s", common, r.Point, diff)
			}
		}
	}
}

var nans = cmp.Comparer(func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) })

// TestSchedules: the mean latencies of the four schedules are exactly 40, 39, 32.5 and 26 thirds of an SLM
// step (TokenRouter, arXiv 2610.12242, figure 4: 13.33, 13.00, 10.83, 8.67).
func TestSchedules(t *testing.T) {
	s, err := spec.Load("../schedules.toml")
	if err != nil {
		t.Fatal(err)
	}
	summary := mustRun(t, s, Options{Out: t.TempDir(), Workers: 2}).Summary
	want := map[string]float64{"step-sync": 40, "model-sync": 39, "eager": 32.5, "delayed": 26}
	for i := range summary.Rows {
		r := &summary.Rows[i]
		if got, _ := summary.Value(r, "latency_mean_ms"); got != want[r.Policy]/3 {
			t.Errorf("%s: mean latency %v SLM steps, want %v", r.Policy, got, want[r.Policy]/3)
		}
	}
	// Under eager, request 3 (here 2) reaches the LLM at 2 and starts at 4.5.
	for _, l := range summary.Timelines[2].Launches {
		if l.Model == 1 && l.IDs[0] == 2 {
			if l.SinceNs[0] != 2e6 || l.StartNs != 4.5e6 {
				t.Errorf("request 2 waits for the LLM from %d to %d ns, want 2 to 4.5 ms", l.SinceNs[0], l.StartNs)
			}
			break
		}
	}
}

// TestEntry: a request whose first token is the LLM's enters there: LS takes 3.5 + 1 ms alone.
func TestEntry(t *testing.T) {
	text, err := os.ReadFile("../schedules.toml")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, strings.Replace(string(text), `["SSS", "SLSLSS", "SSLSLS"]`, `["LS"]`, 1))
	summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
	for i := range summary.Rows {
		if got, _ := summary.Value(&summary.Rows[i], "latency_mean_ms"); got != 4.5 {
			t.Errorf("%s: latency %v ms, want 4.5", summary.Rows[i].Policy, got)
		}
	}
}

// TestRecordedTrace plays the same scenario from a trace file.
func TestRecordedTrace(t *testing.T) {
	s, err := spec.Load("../spec/testdata/recorded.toml")
	if err != nil {
		t.Fatal(err)
	}
	summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
	if got, _ := summary.Value(&summary.Rows[0], "latency_mean_ms"); got != 26.0/3 {
		t.Errorf("mean latency %v, want 26/3 as delayed batching gives", got)
	}
}

// TestAllSpecsRun runs the specs that together have every key.
func TestAllSpecsRun(t *testing.T) {
	paths, err := filepath.Glob("../spec/testdata/*.toml")
	if err != nil || len(paths) < 8 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		if filepath.Base(path) == "task.toml" {
			continue // its systems are not simulated, and have no tokenizer
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			s, err := spec.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			summary := mustRun(t, s, Options{Out: dir, Workers: 2}).Summary
			for i := range summary.Rows {
				if v, _ := summary.Value(&summary.Rows[i], "throughput_tok_s"); !(v > 0) {
					t.Errorf("%s: throughput %v", summary.Rows[i].Point, v)
				}
			}
			logs, _ := filepath.Glob(filepath.Join(dir, LogDir, "*.jsonl"))
			if s.TurnLog != (len(logs) == len(s.Points)) {
				t.Errorf("turn log wanted: %v, %d logs for %d points", s.TurnLog, len(logs), len(s.Points))
			}
			for _, log := range logs {
				replay(t, log)
			}
		})
	}
}

// replay fails unless the core makes the same decisions from a turn log again.
func replay(t *testing.T, path string) {
	t.Helper()
	r, err := turnlog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if turns, err := turnlog.Replay(r); err != nil || turns == 0 {
		t.Errorf("%s: %d turns replayed, %v", filepath.Base(path), turns, err)
	}
}

// TestRequests: the request file has every request of every job, in order, and its sums are the summary's.
func TestRequests(t *testing.T) {
	dir := t.TempDir()
	summary := mustRun(t, parse(t, tiny), Options{Out: dir, Workers: 4}).Summary
	count, tokens, served := 0, 0, int64(0)
	points := make(map[string]int)
	err := result.EachRequest(filepath.Join(dir, result.RequestsFile), func(r result.RequestRow) error {
		count++
		points[r.Point]++
		if r.Outcome != "finished" || r.Tokens != 30 || r.FirstNs == nil || *r.FirstNs > r.LeftNs {
			t.Errorf("request %+v, want 30 tokens and finished", r)
		}
		if !r.Warmup {
			tokens += int(r.Tokens)
			served += r.LeftNs - *r.ArrivalNs
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count != 5*3*40 || points["concurrency=3 thresholds=1,2"] != 120 {
		t.Errorf("%d requests, %v; want 40 for each of 5 points and 3 replicates", count, points)
	}
	want := 0.0
	for i := range summary.Rows {
		v, _ := summary.Value(&summary.Rows[i], "served_s")
		want += v
	}
	if got := float64(served) / 1e9; math.Abs(got-want) > 1e-6 {
		t.Errorf("latencies add up to %v s, want %v as in the summary", got, want)
	}
}

// TestUntil: a closed loop without a number of requests runs until the time is over.
func TestUntil(t *testing.T) {
	s := parse(t, strings.Replace(undrawn, "requests = 40", "until = \"100s\"", 1))
	summary := mustRun(t, s, Options{Out: t.TempDir(), Workers: 2}).Summary
	r := &summary.SeedRows[0]
	window, _ := summary.Value(r, "window_s")
	tokens, _ := summary.Value(r, "tokens_total")
	if open, _ := summary.Value(r, "requests_open"); open != 2 || window < 80 || window > 100 {
		t.Errorf("%v requests in flight at the end of a window of %v s, want 2 and nearly 100 s", open, window)
	}
	// 98.956913 tok/s at N = 2 and B = (1, 1), by the chain; the spread of one run of 100 s is about 2 %.
	if math.Abs(tokens/100/98.956913-1) > 0.1 {
		t.Errorf("%v tokens in 100 s, want about 9896", tokens)
	}
}

// TestContextMax: answers of 30 tokens after prompts that leave room for 10 are cut, and a warning says so.
func TestContextMax(t *testing.T) {
	for contextMax, want := range map[int]float64{60: 30, 20: 10} {
		s := parse(t, fmt.Sprintf("%s[scheduler]\ncontext_max = %d\n", undrawn, contextMax))
		summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
		row := &summary.Rows[0]
		tokens, _ := summary.Value(row, "tokens_total")
		warned := strings.Contains(strings.Join(row.Warnings, "\n"), "meet scheduler.context_max = 20")
		if tokens != want*40*3 || warned != (contextMax == 20) {
			t.Errorf("context_max %d: %v tokens, want %v a request; warnings %q", contextMax, tokens, want,
				row.Warnings)
		}
	}
}
