package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/experiments/spec"
)

// judgedTrace is of R2R at threshold 0, with answers judged: all that both models would have said is known at
// every position of the recorded answers. In the first the models agree, in the second at the first position
// only.
const judgedTrace = `{"format":"tokenrouter-trace","version":1,"models":["S","L"],` +
	`"signals":[["token","score","eos"],["token","eos"]],"algorithm":"r2r"}
{"id":1,"prompt_tokens":2,"output_tokens":2,"tokens_max":9,"end":"eos","right":true,"path":"0x10x1",` +
	`"results":[{"token":[5,1],"score":[0.1,0.2],"eos":[false,true]},{"token":[5,1],"eos":[false,true]}]}
{"id":2,"prompt_tokens":2,"output_tokens":3,"tokens_max":9,"end":"eos","right":false,"path":"0x10x10x1",` +
	`"results":[{"token":[5,6,1],"score":[0.1,0.4,0.2],"eos":[false,false,true]},` +
	`{"token":[5,8,1],"eos":[false,false,true]}]}
`

// TestInheritedAccuracy: accuracy in the simulator is that of the measured run, as long as all answers are
// its own; the rest is counted, and said.
func TestInheritedAccuracy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.jsonl"), []byte(judgedTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, router                    string
		right, wrong, unknown, accuracy float64 // accuracy -1: absent
		warning                         string
	}{
		{"paths", `algorithm = "recorded"`, 1, 1, 0, 0.5, ""},
		{"the same threshold", `algorithm = "r2r", outcome = "trace", threshold = 0`, 1, 1, 0, 0.5, ""},
		{"drafts that are the recorded tokens", `algorithm = "r2r", outcome = "trace", threshold = 0.3`,
			1, 1, 0, 0.5, ""},
		{"another answer", `algorithm = "r2r", outcome = "trace", threshold = 0.5`, 1, 0, 1, -1,
			"1 requests committed other tokens than the recorded ones: 1 of 5 passes were judged by signals of the" +
				" recorded answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, "replay.toml")
			text := `name = "replay"
models = [
  { name = "S", latency = { kind = "constant", step = "1ms" } },
  { name = "L", latency = { kind = "constant", step = "4ms" } },
]
router = { trace = "run.jsonl", ` + c.router + ` }
policy = { kind = "eager" }
workload = { kind = "closed", concurrency = 2 }
`
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := spec.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
			row := &summary.Rows[0]
			for name, want := range map[string]float64{
				"inherited_right": c.right, "inherited_wrong": c.wrong, "inherited_unknown": c.unknown,
				"inherited_accuracy": c.accuracy,
			} {
				got, _ := summary.Value(row, name)
				if want == -1 && got == got || want >= 0 && got != want {
					t.Errorf("%s = %v, want %v", name, got, want)
				}
			}
			warnings := strings.Join(row.Warnings, "\n")
			if c.warning != "" && !strings.Contains(warnings, c.warning) ||
				c.warning == "" && strings.Contains(warnings, "trace") {
				t.Errorf("warnings %q, want %q", warnings, c.warning)
			}
		})
	}
}

// TestTracesOfOthers: a trace of other models, or of the scores of another algorithm, is refused where it
// stands.
func TestTracesOfOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.jsonl"), []byte(judgedTrace), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, large, router, want string }{
		{"another model", "M", `algorithm = "recorded"`,
			`router.trace = "run.jsonl", want a trace of the models "S", "M", not of "S", "L"`},
		{"another algorithm", "L", `algorithm = "citer", outcome = "trace", threshold = 0.5`,
			`want a trace of the algorithm citer: algorithm = "r2r", want "citer"`},
	} {
		path := filepath.Join(dir, "replay.toml")
		text := `name = "replay"
models = [
  { name = "S", latency = { kind = "constant", step = "1ms" } },
  { name = "` + c.large + `", latency = { kind = "constant", step = "4ms" } },
]
router = { trace = "run.jsonl", ` + c.router + ` }
policy = { kind = "eager" }
workload = { kind = "closed", concurrency = 2 }
`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := spec.Load(path)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
}
