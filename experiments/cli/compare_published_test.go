package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// alone compares a model by itself with a slower one. What they give is exact: N requests in lockstep, a
// token each a step.
const alone = `name = "alone"
title = "One model alone"
noise = 0.05
caption = "Steps of 5 and 10 ms."
calibration = "steps.toml"
router = { algorithm = "single", model = "M" }
policy = { kind = "eager" }
workload = { kind = "closed", requests = 8, prompt = 20, output = 64 }
sweep.concurrency = [2, 4]

[[variant]]
name = "fast"

[[variant]]
name = "slow"
models.M.latency.step = "10ms"

[[check]]
name = "twice as fast"
of = { variant = "fast", concurrency = 4 }
over = { variant = "slow", concurrency = 4 }
published = 2.0

[[figure]]
kind = "bars"
x = "concurrency"
y = "throughput_tok_s"

[[reference]]
name = "by hand"
source = "a test"
file = "values.csv"
`

const aloneSteps = `[calibration]
device = "none"
engine = "none"
date = "2026"
source = "a test"
range = "everywhere"
constants = [{ key = "models.M.latency.step", from = "fast, N = 2" }]

[[models]]
name = "M"
latency = { kind = "constant", step = "5ms" }
`

// runAlone runs the spec with these published values and returns its results folder.
func runAlone(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"alone.toml": alone, "steps.toml": aloneSteps, "values.csv": values,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "alone")
	printed := mustRun(t, "run", filepath.Join(dir, "alone.toml"), "--out", out)
	if want := "order of variants as published in"; !strings.Contains(printed, want) {
		t.Errorf("run says nothing of published values: no %q in\n%s", want, printed)
	}
	return out
}

// TestComparePublished: N requests in flight commit N tokens a step of 5 or 10 ms.
func TestComparePublished(t *testing.T) {
	out := runAlone(t, "variant,concurrency,throughput_tok_s,use\n"+
		"fast,2,400,fit\nfast,4,640,check\nslow,2,410,check\nslow,4,800,check\n")
	var got comparisonsJSON
	decode(t, mustRun(t, "compare", out, "--json"), &got)
	p := got.Published
	if p == nil {
		t.Fatal("nothing is said of published values")
	}
	// 800 against 640 is 25 % too much, 200 against 410 is 51.2 % and 400 against 800 50 % too little.
	if e := p.Predicted; e.Cells != 3 || math.Abs(*e.Median-0.5) > 0.01 ||
		math.Abs(*e.Worst-(200.0/410-1)) > 0.01 || e.WorstAt != "alone, variant=slow concurrency=2" {
		t.Errorf("predicted cells: %d, median %v, worst %v at %s; want 3, 0.5, -0.512 at slow, N = 2", e.Cells,
			*e.Median, *e.Worst, e.WorstAt)
	}
	if e := p.Fitted; e.Cells != 1 || math.Abs(*e.Median) > 0.01 || p.Constants != 1 {
		t.Errorf("fitted: %d cells, median %v, %d constants; want 1, 0, 1", e.Cells, *e.Median, p.Constants)
	}
	if o := p.Orders; len(o) != 2 || o[0].Tied != 1 || len(o[0].Wrong) != 0 || len(o[1].Wrong) != 1 ||
		o[1].Wrong[0] != [2]string{"slow", "fast"} || o[1].Place != "N = 4" {
		t.Errorf("orders %+v, want a tie at N = 2 and slow above fast at N = 4", o)
	}
	if r := p.Ratios; len(r) != 1 || math.Abs(*r[0].Simulated-2) > 0.01 || !r[0].Holds {
		t.Errorf("ratios %+v, want 2", r)
	}
	text := mustRun(t, "compare", out)
	for _, want := range []string{"published, predicted: 3 cells, 50.", "(alone, variant=slow concurrency=2)\n",
		"published, fitted: 1 cell, 0.", "order of variants as published in 1 of 2 rows\n",
		`order: alone, throughput_tok_s at N = 4: published, "slow" is above "fast"; simulated, it is not`,
		"alone       twice as fast  "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestCompareReport: several folders give one report, and sums over all.
func TestCompareReport(t *testing.T) {
	one := runAlone(t, "variant,concurrency,throughput_tok_s\nfast,2,400\nslow,2,200\n")
	other := filepath.Join(t.TempDir(), "other")
	mustRun(t, "run", writeSpec(t), "--out", other)
	report := filepath.Join(t.TempDir(), "report")
	printed := mustRun(t, "compare", one, other, "--report", report+".html")
	for _, want := range []string{"alone: throughput_tok_s\n", "small: throughput_tok_s\n",
		"\nall 2 experiments:\n", "published, predicted: 4 cells",
		"\nreport:  " + report + ".md, " + report + ".html\n"} {
		if !strings.Contains(printed, want) {
			t.Errorf("no %q in\n%s", want, printed)
		}
	}
	for _, name := range []string{
		"report.md", "report.html", "report/alone-bars.png", "report/small-threshold.png",
	} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(report), name)); err != nil {
			t.Error(err)
		}
	}
	var both severalComparedJSON
	decode(t, mustRun(t, "compare", one, other, "--json"), &both)
	if len(both.Experiments) != 2 || both.Published.Predicted.Cells != 4 {
		t.Errorf("%d experiments, %+v; want 2 with 4 cells", len(both.Experiments), both.Published)
	}
	refuse(t, []refusal{
		{"the same twice", []string{"compare", one, one, "--report", report}, []string{"two folders are of the" +
			" experiment alone"}},
		{"no folder", []string{"compare", one, "nowhere"}, []string{`results folder "nowhere" does not exist`}},
	})
}
