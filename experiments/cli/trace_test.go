package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// writeLog simulates ten requests of R2R with four in flight and returns the name of their turn log.
func writeLog(t *testing.T, name string, seed uint64) string {
	t.Helper()
	table, err := core.FixedThresholds([]int{1, 3}, 4)
	if err != nil {
		t.Fatal(err)
	}
	prompt, _ := workload.Fixed(20)
	output, _ := workload.Fixed(16)
	source, err := workload.NewClosed(seed, 10, workload.Lengths{Prompt: prompt, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	config := sim.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "small", Pages: 12}, {Name: "large", Pages: 12}},
			Algorithm: route.R2R{Threshold: 0.65}, Policy: core.Delayed{Thresholds: table}, Admission: core.Reserve,
			Requests: 16, LiveMax: 4, ContextMax: 36, PageTokens: 16,
		},
		Latency: []latency.Model{latency.Constant(6_000_000), latency.Constant(27_900_000)},
		Outcome: outcome.Uniform{}, Workload: source, Closed: true, Seed: seed,
		Meter: meter.New(meter.Config{Models: 2, Slots: 16}),
	}
	var text bytes.Buffer
	log, err := turnlog.NewWriter(&text, config.Core)
	if err != nil {
		t.Fatal(err)
	}
	config.Observe = log.Turn
	if _, err := sim.Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	return writeFile(t, name, text.Bytes())
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// changed returns a copy of a file with the last occurrence of old replaced.
func changed(t *testing.T, path, old, new string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(text, []byte(old))
	if at < 0 {
		t.Fatalf("no %q in %s", old, path)
	}
	made := string(text[:at]) + new + string(text[at+len(old):])
	return writeFile(t, "changed-"+filepath.Base(path), []byte(made))
}

func TestTraceReplay(t *testing.T) {
	log := writeLog(t, "a.jsonl", 1)
	lines := len(strings.Split(strings.TrimSpace(readText(t, log)), "\n"))
	out := mustRun(t, "trace", "replay", log)
	if !strings.Contains(out, "turns replayed, all actions are equal\n") {
		t.Errorf("got %q", out)
	}
	var got struct {
		Log   string
		Turns int
		Equal bool
	}
	decode(t, mustRun(t, "trace", "replay", log, "--json"), &got)
	if got.Log != log || got.Turns != lines-2 || !got.Equal { // a header and a configuration before the turns
		t.Errorf("got %+v, want %d turns that are equal", got, lines-2)
	}
}

// TestTraceReplayDiffers: an action that the scheduler would not have taken is found, with its line.
func TestTraceReplayDiffers(t *testing.T) {
	log := changed(t, writeLog(t, "a.jsonl", 1), `"fresh":1`, `"fresh":2`)
	for _, args := range [][]string{{"trace", "replay", log}, {"trace", "replay", log, "--json"}} {
		o := runCLI(t, args...)
		if o.code != ExitFailed || !strings.Contains(o.stderr, log+":") ||
			!strings.Contains(o.stderr, "fresh: replayed 1, logged 2") {
			t.Errorf("%q: exit %d, stderr %q", args, o.code, o.stderr)
		}
		if (o.stdout == "") != (len(args) == 3) {
			t.Errorf("%q: stdout %q", args, o.stdout)
		}
	}
}

func TestTraceDiff(t *testing.T) {
	a, b := writeLog(t, "a.jsonl", 1), writeLog(t, "b.jsonl", 2)
	if out := mustRun(t, "trace", "diff", a, writeLog(t, "c.jsonl", 1)); out != "all turns are the same\n" {
		t.Errorf("got %q", out)
	}
	o := runCLI(t, "trace", "diff", a, b)
	if o.code != ExitFailed || o.stderr != "tokenrouter trace diff: "+a+" and "+b+" differ\n" {
		t.Errorf("exit %d, stderr %q", o.code, o.stderr)
	}
	if !strings.Contains(o.stdout, "first difference: ") {
		t.Errorf("stdout %q", o.stdout)
	}
	var got struct {
		Logs   []string
		Same   bool
		Report string
	}
	decode(t, runCLI(t, "trace", "diff", a, b, "--json").stdout, &got)
	if got.Same || got.Report != o.stdout || len(got.Logs) != 2 {
		t.Errorf("got %+v", got)
	}
}

// TestTracePerfetto: the trace is one JSON document in which whatever begins ends.
func TestTracePerfetto(t *testing.T) {
	log := writeLog(t, "a.jsonl", 1)
	file := filepath.Join(t.TempDir(), "trace.json")
	if o := runCLI(t, "trace", "perfetto", log, "--out", file); o.code != ExitDone || o.stdout != "" ||
		!strings.Contains(o.stderr, file) {
		t.Fatalf("%+v", o)
	}
	out := mustRun(t, "trace", "perfetto", log)
	if out != readText(t, file) {
		t.Error("--out writes something else than standard output")
	}
	var trace struct {
		Events []struct {
			Phase string `json:"ph"`
			Name  string `json:"name"`
		} `json:"traceEvents"`
	}
	if err := json.Unmarshal([]byte(out), &trace); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, e := range trace.Events {
		count[e.Phase]++
	}
	if count["s"] != count["f"] || count["s"] == 0 || count["B"] != count["E"] || count["B"] == 0 {
		t.Errorf("hand-offs or slices that begin and do not end: %v", count)
	}
}

// TestTraceRecord: a simulated run becomes a recorded trace, and a spec that plays its signals makes the same
// drafts, hand-offs and tokens again; another threshold makes others.
func TestTraceRecord(t *testing.T) {
	log := writeLog(t, "a.jsonl", 1)
	file := filepath.Join(t.TempDir(), "recorded.jsonl")
	if o := runCLI(t, "trace", "record", log, "--out", file); o.code != ExitDone || o.stdout != "" ||
		o.stderr != "" {
		t.Fatalf("%+v", o)
	}
	if out := mustRun(t, "trace", "record", log); out != readText(t, file) || strings.Count(out, "\n") != 11 {
		t.Errorf("want a header and 10 requests, the same with and without --out, not\n%s", out)
	}
	logged := strings.Count(strings.ReplaceAll(readText(t, file), "tokens_max", ""), "x")
	for threshold, same := range map[string]bool{"0.65": true, "0.9": false} {
		spec := writeFile(t, "play.toml", []byte(`name = "play"
models = [
  { name = "small", latency = { kind = "constant", step = "6ms" } },
  { name = "large", latency = { kind = "constant", step = "27.9ms" } },
]
router = { algorithm = "r2r", outcome = "trace", trace = "`+file+`", threshold = `+threshold+` }
policy = { kind = "eager" }
workload = { kind = "recorded", concurrency = 4 }
`))
		var got struct {
			Rows []struct {
				Tokens  int `json:"tokens_total"`
				Dropped int `json:"drafts_dropped"`
			} `json:"rows"`
		}
		o := runCLI(t, "run", spec, "--out", filepath.Join(t.TempDir(), "out"), "--json")
		if o.code != ExitDone {
			t.Fatal(o.stderr)
		}
		if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
			t.Fatal(err)
		}
		if r := got.Rows[0]; r.Tokens != 160 || (r.Dropped == logged) != same {
			t.Errorf("threshold %s: %d tokens, %d drafts dropped; the log has 160 and %d", threshold, r.Tokens,
				r.Dropped, logged)
		}
	}
}

func TestTracePacked(t *testing.T) {
	text := readText(t, writeLog(t, "a.jsonl", 1))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "trace", "replay", writeFile(t, "a.jsonl.gz", packed.Bytes()))
}

func TestTraceRefusals(t *testing.T) {
	log := writeLog(t, "a.jsonl", 1)
	folder := t.TempDir()
	out := filepath.Join(t.TempDir(), "trace.json")
	broken := writeFile(t, "broken.jsonl", []byte(readText(t, log)[:2000]))
	refuse(t, []refusal{
		{"no command", []string{"trace"}, []string{"want replay, diff, perfetto or record"}},
		{"no such command", []string{"trace", "show"}, []string{`no command "show"`}},
		{"no log", []string{"trace", "replay"}, []string{"want a turn log"}},
		{"missing", []string{"trace", "replay", "absent.jsonl"},
			[]string{`turn log "absent.jsonl" does not exist`}},
		{"directory", []string{"trace", "replay", folder}, []string{"is a directory, want a file"}},
		{"empty", []string{"trace", "replay", writeFile(t, "empty.jsonl", nil)}, []string{"empty.jsonl"}},
		{"not a log", []string{"trace", "replay", writeFile(t, "x.toml", []byte("name = 1\n"))},
			[]string{"x.toml:1"}},
		{"cut off", []string{"trace", "replay", broken}, []string{broken + ":"}},
		{"one log", []string{"trace", "diff", log}, []string{"want two turn logs"}},
		{"second missing", []string{"trace", "diff", log, "absent.jsonl"},
			[]string{`"absent.jsonl" does not exist`}},
		{"perfetto of half a log", []string{"trace", "perfetto", broken, "--out", out}, []string{broken + ":"}},
		{"out in no folder", []string{"trace", "perfetto", log, "--out", filepath.Join(folder, "no", "x.json")},
			[]string{"--out", "no such file or directory"}},
		{"out without value", []string{"trace", "perfetto", log, "--out"}, []string{"--out has no value"}},
	})
	for _, name := range []string{out, out + ".part"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is left after an error", name)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
