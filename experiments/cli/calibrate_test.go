package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/spec"
)

// pairText is the file of a system of two small models that are not for talking.
const pairText = `[[models]]
name = "SLM"
shape = "tiny,layers=1,hidden=64,heads=2,head_dim=32,intermediate=64"

[[models]]
name = "LLM"
shape = "tiny,layers=2,hidden=64,heads=2,head_dim=32,intermediate=128"
seed = 1

[device]
shared = true

[router]
algorithm = "me"

[scheduler]
concurrency = 3
context_max = 64
token_budget = 64
`

// putFile writes a file into a folder and returns its path.
func putFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCalibrate: the file is one that a spec takes in, with a time for every model, alone and beside the
// other; all steps are kept.
func TestCalibrate(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "steps.toml")
	pair := putFile(t, dir, "pair.toml", pairText)
	got := mustRun(t, "calibrate", pair, "--out", out, "--rounds", "2", "--steps", "1")
	for _, part := range []string{"SLM\n  step = ", "LLM\n  step = ", "beside the other models: ",
		"valid for rows 1..3"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	// 3 batch sizes at 3 contexts, extends of 2, 4, ... 32 tokens for 1 and 2 rows, prompts of 8 and 64.
	const shapes = 3*3 + 2*5 + 2
	lines := strings.Count(readText(t, filepath.Join(dir, "steps.csv")), "\n")
	if lines != 1+2*(3+1+1+1)*shapes {
		t.Errorf("%d lines, want one a step of %d shapes, twice: 1/0.35 of the SLM in turn with the LLM, 1 beside,"+
			" and 1 and 1 of the LLM", lines, shapes)
	}
	text := "calibration = \"steps.toml\"\nname = \"mine\"\n" + `router = { algorithm = "r2r", p = 0.35 }
policy = { kind = "eager" }
workload = { kind = "closed", concurrency = 3, requests = 9, prompt = 8, output = 40 }
`
	s, err := spec.Load(putFile(t, dir, "mine.toml", text))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Points[0].Models {
		if len(m.ByRows) != 3 || m.ByRows[0] < 1000 || m.Beside < 1 {
			t.Errorf("model %s: steps of %v ns, beside others by %v", m.Name, m.ByRows, m.Beside)
		}
	}
	if c := s.Calibrations; len(c) != 1 || c[0].File != "steps.toml" || len(c[0].Constants) < 2 {
		t.Errorf("calibrations %+v, want steps.toml with the terms of two models", c)
	}
}

// TestCalibrateInterrupted: what was measured is kept, and fits are of whole rounds.
func TestCalibrateInterrupted(t *testing.T) {
	dir := t.TempDir()
	pair, out := putFile(t, dir, "pair.toml", pairText), filepath.Join(dir, "whole.toml")
	mustRun(t, "calibrate", pair, "--out", out, "--rounds", "2", "--steps", "1")
	all, err := calibrate.Samples([]byte(readText(t, calibrate.SamplesPath(out))))
	if err != nil {
		t.Fatal(err)
	}
	first := len(all) / 2
	for _, c := range []struct {
		name  string
		steps int
		fits  int
		want  string
	}{
		{"in the second round", first + 7, 2, ""},
		{"the second model", first - 7, 0, "interrupted in the first round: 119 steps in FILE, no fits"},
		{"the first shape", 1, 0, "interrupted in the first round: 1 step in FILE, no fits"},
		{"at once", 0, 0, "interrupted; nothing is measured"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "steps.toml")
			kept := calibrate.SamplesPath(out)
			fits, err := writeCalibration(out, calibrate.Origin{}, all[:c.steps], first)
			if want := strings.Replace(c.want, "FILE", kept, 1); len(fits) != c.fits || (err != nil) != (want != "") ||
				err != nil && err.Error() != want {
				t.Errorf("%d fits, error %v, want %d and %q", len(fits), err, c.fits, want)
			}
			if _, err := os.Stat(out); (err == nil) != (c.fits > 0) {
				t.Errorf("fits are written: %t", err == nil)
			}
			if c.steps == 0 {
				return
			}
			if lines := strings.Count(readText(t, kept), "\n"); lines != 1+c.steps {
				t.Errorf("%d lines of steps, want %d and a head", lines, c.steps)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	if code := Main(ctx, []string{"calibrate", pair, "--out", out}, &stdout, &stderr); code != ExitFailed ||
		stdout.String() != "" {
		t.Errorf("exit %d, %q on stdout, want a failure", code, &stdout)
	}
}

func TestCalibrateRefuses(t *testing.T) {
	dir := t.TempDir()
	pair := putFile(t, dir, "pair.toml", pairText)
	refuse(t, []refusal{
		{"no output", []string{"calibrate", pair}, []string{"--out: want the file to write"}},
		{"no system", []string{"calibrate", "--out", "x.toml"}, []string{"no argument, want the file of a system"}},
		{"no file", []string{"calibrate", filepath.Join(dir, "none.toml"), "--out", "x"}, []string{"no such file"}},
		{"not a system", []string{"calibrate", putFile(t, dir, "bad.toml", "model = 1\n"), "--out", "x"},
			[]string{"bad.toml:1: model", "unknown key, the nearest known is models"}},
		{"no rounds", []string{"calibrate", pair, "--out", "x", "--rounds", "0"}, []string{"--rounds = \"0\""}},
	})
}
