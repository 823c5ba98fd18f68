package spec

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/experiments/result"
	"tokenrouter/sim/latency"
)

// TestCalibrated: models and router come from the files, the spec and its variants change them, and what the
// files say of themselves is kept.
func TestCalibrated(t *testing.T) {
	s, err := Load("testdata/calibrated.toml")
	if err != nil {
		t.Fatal(err)
	}
	ours, standard := s.Points[0], s.Points[1]
	step := func(p Point, m int) int64 {
		ns, _ := p.Models[m].Latency.StepNs(latency.Shape{Rows: 1, FreshTokens: 1, Returns: 1})
		return ns
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"models", ours.names(), []string{"SLM", "Qwen3-32B"}},
		{"SLM of the file", step(ours, 0), int64(6e6)},
		{"LLM of the spec", step(ours, 1), int64(30e6)},
		{"p of the file", ours.Routing[0][1], 0.35},
		{"SLM with the cost of the other file", step(standard, 0), int64(6e6 + 31.52e6)},
		{"LLM as it was", step(standard, 1), int64(30e6)},
		{"p of the variant", standard.Routing[0][1], 0.3},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	want := []result.Calibration{
		{File: "calibrations/pair.toml", Device: "2 x A100 80GB", Engine: "SGLang 0.5.1", Date: "2026-10",
			Source: "TokenRouter, arXiv 2610.12242, appendix D", Range: "up to 4 requests in flight",
			Constants: []result.Constant{
				{Key: "models.SLM.latency.step", Value: `"6.0ms"`, From: "figure 10"},
				{Key: `models."Qwen3-32B".latency.step`, Value: `"27.9ms"`, From: "figure 10"},
				{Key: "router.p", Value: "0.35", From: "section D.2"},
			}},
		{File: "calibrations/dispatcher.toml", Device: "2 x A100 80GB", Engine: "SGLang 0.5.1", Date: "2026-10-15",
			Source: "TokenRouter, arXiv 2610.12242, table 10", Range: "about 2,048 tokens"},
	}
	if diff := cmp.Diff(want, s.Calibrations); diff != "" {
		t.Errorf("calibrations (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(s.Resolved), "# file calibrations/pair.toml sha256 ") ||
		!strings.Contains(string(s.Resolved), "# file calibrations/dispatcher.toml sha256 ") {
		t.Errorf("resolved without the file's sum:\n%s", s.Resolved)
	}
}

// pairFile is a calibration that loads. Tests change lines of it.
const pairFile = provenance + `constants = [{ key = "models.LLM.latency.step", from = "table 5" }]
[[models]]
name = "SLM"
latency = { kind = "constant", step = "6.0ms" }
[[models]]
name = "LLM"
latency = { kind = "constant", step = "27.9ms" }
`

// TestBadCalibration: faults are told with the file's own line, key and value, and what was wanted.
func TestBadCalibration(t *testing.T) {
	for _, c := range []struct{ name, old, text, want string }{
		{"no provenance", provenance, "",
			"c.toml:1: calibration: missing, want a table with device, engine, date, source and range: where the"},
		{"no source", "source = \"a test\"\n", "",
			"c.toml:1: calibration.source: missing, want the publication, or how it was measured"},
		{"no range", "range = \"everywhere\"\n", "",
			"c.toml:1: calibration.range: missing, want where the numbers hold"},
		{"empty device", `device = "made up"`, `device = ""`,
			`c.toml:2: calibration.device = "", want a string that is not empty`},
		{"date", `"2026"`, `"May 2026"`,
			`c.toml:4: calibration.date = "May 2026", want a date such as "2026-10-02", "2026-10" or "2026"`},
		{"no such day", `"2026"`, `"2026-02-30"`, `c.toml:4: calibration.date = "2026-02-30", want a date`},
		{"unknown key of it", "source =", "sauce = 1\nsource =",
			"c.toml:5: calibration.sauce = 1, unknown key, the nearest known is calibration.source"},
		{"constant of no value", "models.LLM.latency.step", "models.LLM.latency.stop",
			`c.toml:7: calibration.constants[0].key = "models.LLM.latency.stop", want the key of a value of this`},
		{"constant of a table", "models.LLM.latency.step", "models.LLM.latency",
			`c.toml:7: calibration.constants[0].key = "models.LLM.latency", want the key of a value of this file`},
		{"constant twice", `from = "table 5" }`,
			`from = "table 5" }, { key = "models.LLM.latency.step", from = "a" }`,
			`c.toml:7: calibration.constants[1].key = "models.LLM.latency.step", want every constant once`},
		{"constant of nothing", `, from = "table 5"`, "",
			"c.toml:7: calibration.constants[0].from: missing, want key, as in models.LLM.latency.step, and from"},
		{"workload in it", "[[models]]", "[workload]\nkind = \"closed\"\n[[models]]",
			`c.toml:8: workload = { kind = "closed" }, does not apply here: it is for any workload`},
		{"no part", pairFile, provenance,
			"c.toml:1: models: missing, want models, as calibrate writes them, or another"},
		{"extends", provenance, "extends = \"d.toml\"\n" + provenance,
			`c.toml:1: extends = "d.toml", does not apply here`},
		{"negative time", `"6.0ms"`, `"-6.0ms"`,
			`c.toml:10: models[0].latency.step = "-6.0ms", want a duration of at least 1ns`},
		{"not TOML", pairFile, "models = ", "c.toml:1: models: not TOML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "c.toml", strings.Replace(pairFile, c.old, c.text, 1))
			models := good[strings.Index(good, "models"):strings.Index(good, "[router]")]
			_, err := Load(write(t, dir, "s.toml", strings.Replace(good, models, "calibration = \"c.toml\"\n", 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant in it\n%s", err, c.want)
			}
		})
	}
}

// TestBadCalibrationKey: what a spec can get wrong of the files that it names.
func TestBadCalibrationKey(t *testing.T) {
	models := good[strings.Index(good, "models"):strings.Index(good, "[router]")]
	for _, c := range []struct{ name, text, want string }{
		{"no file", `calibration = "none.toml"`,
			`t.toml:3: calibration = "none.toml", want a file that can be read`},
		{"a table", "calibration = { device = \"A100\" }",
			`t.toml:3: calibration = { device = "A100" }, want the name of a file, or an array of them`},
		{"no name", `calibration = [""]`, `t.toml:3: calibration[0] = "", want the name of a calibration file`},
		{"models twice", `calibration = ["c.toml", "c.toml"]`,
			`t.toml:3: calibration[1] = "c.toml", want one file that has all models, which others change by name`},
		{"models beside it", "calibration = \"c.toml\"\n" + models,
			`want changes by name beside calibration, which has the models, as in models.LLM.node = 1`},
		{"no such model", "calibration = \"c.toml\"\nmodels.X.node = 1",
			`t.toml:4: models.X = { node = 1 }, want the name of one that is there to be changed: "SLM", "LLM"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "c.toml", pairFile)
			_, err := Load(write(t, dir, "t.toml", strings.Replace(good, models, c.text+"\n", 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant in it\n%s", err, c.want)
			}
		})
	}
}

// TestColumnsTwice: a column that is there twice is refused, in samples and in references.
func TestColumnsTwice(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "steps.csv", "rows,step_ms,rows\n1,5.0,1\n2,6.0,2\n")
	write(t, dir, "values.csv", "throughput_tok_s, throughput_tok_s\n90,91\n")
	for _, c := range []struct{ name, old, text, want string }{
		{"samples", `{ kind = "constant", step = "6.0ms" }`, `{ kind = "table", file = "steps.csv" }`,
			"steps.csv:1: rows: want the column once, not as number 1 and 3"},
		{"reference", "[router]", "[[reference]]\nname = \"r\"\nsource = \"s\"\nfile = \"values.csv\"\n[router]",
			"values.csv:1: throughput_tok_s: want the column once, not as number 1 and 2"},
	} {
		_, err := Load(write(t, dir, "s.toml", strings.Replace(good, c.old, c.text, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestFallingTable: a table whose times fall is used as it is, and the results say so.
func TestFallingTable(t *testing.T) {
	text := strings.Replace(good, `{ kind = "constant", step = "6.0ms" }`,
		`{ kind = "table", rows = [1, 2, 4], steps = ["5ms", "6ms", "4ms"] }`, 1)
	s := mustParse(t, text)
	want := []string{"models[0].latency takes less time for more work (6ms at 2 rows, 4ms at 4): measured" +
		" anew, or sorted wrongly?"}
	if diff := cmp.Diff(want, s.Points[0].Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	s = mustParse(t, strings.Replace(text, `"4ms"`, `"5.9ms"`, 1))
	if !slices.Equal(s.Points[0].Warnings, nil) {
		t.Errorf("warnings %q for times within what a measurement is off", s.Points[0].Warnings)
	}
}

// TestReferenceUse: a value that a constant was fitted to checks nothing.
func TestReferenceUse(t *testing.T) {
	dir := t.TempDir()
	spec := good + "[sweep]\nconcurrency = [3, 4]\n[[reference]]\nname = \"r\"\nsource = \"s\"\n" +
		"file = \"values.csv\"\n"
	write(t, dir, "values.csv", "concurrency,throughput_tok_s,use\n3,90,fit\n4,110,check\n")
	s, err := Load(write(t, dir, "s.toml", spec))
	if err != nil {
		t.Fatal(err)
	}
	want := []result.ReferencePoint{{At: map[string]string{"concurrency": "3"}, Value: 90, Fit: true},
		{At: map[string]string{"concurrency": "4"}, Value: 110}}
	if diff := cmp.Diff(want, s.References[0].Points); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	for _, c := range []struct{ name, text, want string }{
		{"other word", "concurrency,throughput_tok_s,use\n3,90,fitted\n",
			`values.csv:2: use: "fitted", want one of "fit", "check"`},
		{"twice", "concurrency,throughput_tok_s\n3,90\n3,91\n",
			"values.csv:3: throughput_tok_s = 91, want one value at a place, this is the second"},
		{"unknown column", "concurrency,throughput_tok_s,used\n3,90,fit\n",
			"values.csv:1: used: unknown column, want swept axes, throughput_tok_s and use"},
	} {
		write(t, dir, "values.csv", c.text)
		if _, err := Load(dir + "/s.toml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
	}
}

// TestFileNames: files go by their names from the spec's own folder, whichever file names them, so that
// results name no machine.
func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "c.toml", pairFile)
	models := good[strings.Index(good, "models"):strings.Index(good, "[router]")]
	below := write(t, dir, "below.toml", strings.Replace(good, models, "calibration = \"c.toml\"\n", 1))
	if err := os.Mkdir(filepath.Join(dir, "short"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"above.toml": "c.toml", "short/above.toml": "../c.toml"} {
		s, err := Load(write(t, dir, name, "extends = \""+below+"\"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Calibrations[0].File; got != want || strings.Contains(string(s.Resolved), dir) {
			t.Errorf("%s: file %q, want %q; resolved:\n%s", name, got, want, s.Resolved)
		}
	}
}
