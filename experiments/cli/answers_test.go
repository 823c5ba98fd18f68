package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answersSpec writes a spec in which two models of random weights answer six problems, and returns its
// folder.
func answersSpec(t *testing.T) string {
	t.Helper()
	small, large := tinyPair(t)
	dir := filepath.Dir(small)
	models := fmt.Sprintf("[[models]]\ndir = %q\n[[models]]\ndir = %q\n[router]\n", small, large)
	putFile(t, dir, "large.toml", models+"algorithm = \"large\"\n")
	putFile(t, dir, "rstitch.toml", models+"algorithm = \"rstitch\"\nthreshold = 0.9\n")
	putFile(t, dir, "answers.toml", `name = "answers"
workload = { kind = "task", task = "arith", level = 1, problems = 6, max_tokens = 12, concurrency = 3 }
policy = { kind = "eager" }
routing = [
  { name = "large", system = "large.toml" },
  { name = "R-Stitch", system = "rstitch.toml", thresholds = [0.5, 2] },
]
`)
	return dir
}

// TestRunAnswers: the table has accuracy and the model's share; one JSON document has the contract's keys.
func TestRunAnswers(t *testing.T) {
	dir := answersSpec(t)
	spec, out := filepath.Join(dir, "answers.toml"), filepath.Join(t.TempDir(), "out")
	text := mustRun(t, "run", spec, "--out", out)
	for _, part := range []string{"answers: 3 points", "right %", "large %", "tok/answer", "R-Stitch", "39.0"} {
		if !strings.Contains(text, part) { // 39.0: Wilson's upper end for 0 of 6
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	var report struct {
		Experiment, Out string
		Rows            []map[string]json.RawMessage
	}
	decode(t, mustRun(t, "run", spec, "--out", out, "--resume", "--json"), &report)
	if len(report.Rows) != 3 {
		t.Fatalf("%d rows, want 3", len(report.Rows))
	}
	for key, want := range map[string]string{
		"routing": `"R-Stitch"`, "routing_threshold": "2", "accuracy": "0", "accuracy_low": "0", "problems": "6",
		"large_share": "0", "p": "0",
	} {
		if got := string(report.Rows[2][key]); got != want {
			t.Errorf("%s = %s, want %s", key, got, want)
		}
	}
	at, share := string(report.Rows[0]["routing_threshold"]), string(report.Rows[0]["large_share"])
	if at != `""` || share != "1" {
		t.Errorf("large: routing_threshold = %s, large_share = %s, want none and 1", at, share)
	}
	answers, err := os.ReadFile(filepath.Join(out, "answers.jsonl"))
	if err != nil || strings.Count(string(answers), "\n") != 18 {
		t.Errorf("%d answers, %v; want 18", strings.Count(string(answers), "\n"), err)
	}
}

func TestRunAnswersRefuses(t *testing.T) {
	dir := answersSpec(t)
	spec := filepath.Join(dir, "answers.toml")
	lost := putFile(t, dir, "lost.toml", "name = \"lost\"\nextends = \"answers.toml\"\n"+
		"routing = [{ name = \"lost\", system = \"none.toml\" }]\n")
	level := putFile(t, dir, "level.toml", "extends = \"answers.toml\"\nworkload = { level = 9 }\n")
	refuse(t, []refusal{
		{"simulated", []string{"run", spec, "--backend", "sim"}, []string{"only real models answer problems",
			"want --backend cpu"}},
		{"no system", []string{"run", lost}, []string{`lost.toml:3: routing[0].system = "none.toml"`}},
		{"level", []string{"run", level}, []string{"level.toml:2: workload.level = 9, want an integer of 0 to 6"}},
		{"shards", []string{"run", spec, "--shard", "1/2"}, []string{"measured points"}},
	})
}
