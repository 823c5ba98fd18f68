package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/experiments/result"
)

// ablation are two systems at N = 1 and 4. Published are values of TokenRouter (arXiv 2610.12242, table 6);
// those of the experiment are made up.
func ablation() *result.Summary {
	s := &result.Summary{
		Experiment: "table-6", Title: "Ablation", Run: "0123456789ab", Replicates: 3, Noise: 0.06,
		Caption:    "The column N = 1 calibrated the models; `N = 4` is *predicted*.",
		Discussion: "First.\n\n- one <b>\n- two,\n  of two lines\n\nLast | of all.",
		Metrics: []result.Metric{{Name: "throughput_tok_s", Unit: "tok/s", Interval: true},
			{Name: "window_s", Unit: "s", Definition: "length of the window"}},
		Intervals: "over seeds",
		Axes: []result.Axis{{Name: "variant", Column: "variant", Values: []string{"full", "eager"}},
			{Name: "concurrency", Column: "concurrency", Values: []string{"1", "4"}}},
		References: []result.Reference{{Name: "published", Source: "table 6", Metric: "throughput_tok_s"}},
		Figures: []result.Figure{{Kind: "bars", Name: "bars", Title: "Ablation", X: "concurrency",
			Y: "throughput_tok_s", By: []string{"variant"}}},
		Calibrations: []result.Calibration{{File: "a.toml", Device: "A100", Engine: "SGLang", Date: "2026-10",
			Source: "table 6", Range: "N = 1", Constants: []result.Constant{
				{Key: "models.LLM.latency.step", Value: `"24.9ms"`, From: "LLM only, N = 1"},
				{Key: "router.p", Value: "0.28", From: "table 5"},
			}}},
	}
	at := func(variant, n string) map[string]string {
		return map[string]string{"variant": variant, "concurrency": n}
	}
	s.Checks = []result.Check{
		{Name: "from N = 1 to 4", Metric: "throughput_tok_s", Of: at("full", "4"),
			Over: []map[string]string{at("full", "1")}, Low: 2.88, High: 2.88},
		{Name: "gain", Metric: "throughput_tok_s", Of: at("full", "4"),
			Over: []map[string]string{at("eager", "4")}, Low: 1.5, High: 2},
		{Name: "fitted to", Metric: "throughput_tok_s", Of: at("full", "4"),
			Over: []map[string]string{at("full", "1")}, Low: 2.74, High: 2.74, Fit: true},
	}
	for _, c := range []struct {
		variant        string
		n              int
		own, published float64
	}{{"full", 1, 73, 73.02}, {"full", 4, 200, 210.61}, {"eager", 1, 73, 73.02}, {"eager", 4, 202, 161.26}} {
		s.Rows = append(s.Rows, result.Row{Point: fmt.Sprint(c.variant, c.n), Policy: "eager",
			Concurrency: c.n, Replicate: -1, Replicates: 3, Values: []float64{c.own, 9}, Half: []float64{1.5, 0},
			Axes:     []result.Place{{Axis: "variant", Text: c.variant}},
			Warnings: []string{fmt.Sprintf("clamped to %d rows", 2+c.n)}})
		s.References[0].Points = append(s.References[0].Points, result.ReferencePoint{
			At: at(c.variant, map[int]string{1: "1", 4: "4"}[c.n]), Value: c.published, Fit: c.n == 1})
	}
	return s
}

// write writes the report and returns the texts of both pages.
func write(t *testing.T, all ...*result.Summary) (markdown, html string, out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "paper")
	files, err := Write(out, all)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts[0], texts[1], out
}

// TestMarkdown: errors by hand: 200/210.61 is 5.04 % too low, 202/161.26 is 25.26 % too much.
func TestMarkdown(t *testing.T) {
	markdown, _, out := write(t, ablation())
	for _, want := range []string{
		"| Ablation | 2 | 15.2 | +25.3 | 2 | 0.0 | 1 of 2 | 1 of 2 |\n",
		"Window of measurement (`window_s`): length of the window. Intervals: over seeds.\n",
		"2 fitted constants, in 1 calibration file.",
		"| `models.LLM.latency.step` | `\"24.9ms\"` | LLM only, N = 1 | `a.toml` |\n",
		"| `a.toml` | A100 | SGLang | 2026-10 | table 6 | N = 1 |\n",
		"The column N = 1 calibrated the models; `N = 4` is \\*predicted\\*.\n",
		"![Ablation](paper/table-6-bars.png)\n",
		"| full | 1 | 73.02 | 73.00 | 1.500 | 0.0 | fitted |\n",
		"| full | 4 | 210.61 | 200.0 | 1.500 | -5.0 | prediction |\n",
		"| eager | 4 | 161.26 | 202.0 | 1.500 | +25.3 | prediction |\n",
		"table 6. 2 predicted cells: 15.2 % off in the median, +25.3 % at worst; 2 fitted cells: 0.0 % off",
		"The order of the systems is as published in 1 of 2 rows; closer than the noise of 6.0 %, and therefore" +
			" tied: 1 pair.\n",
		"- throughput_tok_s at N = 4: published, “full” (210.61) is above “eager” (161.26); simulated, they" +
			" are 200.0 and 202.0\n",
		"| from N = 1 to 4 | 2.88 | 2.740 | -4.9 | prediction |\n",
		"| gain | 1.5 to 2 | 0.9901 | -34.0 | prediction |\n",
		"| fitted to | 2.74 | 2.740 | 0.0 | fitted |\n", // and not in the 1 of 2 of the overview
		"First.\n\n- one &lt;b>\n- two, of two lines\n\nLast | of all.\n",
		"- 4 of 4 points: clamped to 3 rows; others with other numbers\n",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("no %q in\n%s", want, markdown)
		}
	}
	if png, err := os.ReadFile(filepath.Join(out, "table-6-bars.png")); err != nil || len(png) < 1000 {
		t.Errorf("figure: %d bytes, %v", len(png), err)
	}
}

// TestHTML: a page that is well formed, loads nothing, and marks errors.
func TestHTML(t *testing.T) {
	_, html, _ := write(t, ablation())
	for _, want := range []string{
		`<h2 id="table-6">Ablation</h2>`, `<code>N = 4</code>`,
		`<img alt="Ablation" width="489" src="data:image/svg+xml;base64,`,
		`<td><a href="#table-6">Ablation</a></td>`, `<td class="n fair">+25.3</td>`, `<td class="n good">-5.0</td>`,
		`<td class="poor">1 of 2</td>`,
		`<li>one &lt;b&gt;</li>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for _, not := range []string{"http://", "https://", "<script", "<link", "url("} {
		if strings.Contains(html, not) {
			t.Errorf("the page has %q", not)
		}
	}
	text := strings.NewReplacer("<!DOCTYPE html>\n", "", `<meta charset="utf-8">`, "",
		`<meta name="viewport" content="width=device-width, initial-scale=1">`, "").Replace(html)
	for _, line := range strings.SplitAfter(text, "<figure>") {
		if i := strings.Index(line, "></figure>"); i > 0 {
			text = strings.Replace(text, line[:i]+"></figure>", line[:i]+"/></figure>", 1)
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
}

// TestSameBytes: the same results give the same report.
func TestSameBytes(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "paper"), filepath.Join(t.TempDir(), "paper")
	for _, out := range []string{first, second} {
		if _, err := Write(out, []*result.Summary{ablation()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".md", ".html", "/table-6-bars.png"} {
		a, errA := os.ReadFile(first + name)
		b, errB := os.ReadFile(second + name)
		if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
			t.Errorf("paper%s differs, %v", name, err)
		}
	}
}

// TestSeveral: a row over all experiments; a constant of a file that several use counts once.
func TestSeveral(t *testing.T) {
	other := ablation()
	other.Experiment, other.Title = "other", "Without values"
	other.References, other.Checks, other.Figures = nil, nil, nil
	markdown, _, _ := write(t, ablation(), other)
	for _, want := range []string{
		"| Without values | 0 | - | - | 0 | - | - | - |\n",
		"| **all** | **2** | **15.2** | **+25.3** | **2** | **0.0** | **1 of 2** | **1 of 2** |\n",
		"2 fitted constants, in 1 calibration file.",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("no %q in\n%s", want, markdown)
		}
	}
	_, err := Write(filepath.Join(t.TempDir(), "paper"), []*result.Summary{ablation(), ablation()})
	if want := "two folders are of the experiment table-6, want each once"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("the same twice: error %v, want %q", err, want)
	}
	strange := ablation()
	strange.Figures[0].Kind = "pie"
	_, err = Write(filepath.Join(t.TempDir(), "paper"), []*result.Summary{strange})
	if want := `table-6: figure bars: kind "pie", want`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("unknown figure: error %v, want %q", err, want)
	}
}

// TestNumbers: four digits, signs, and dashes for what is not there.
func TestNumbers(t *testing.T) {
	none := math.NaN()
	for v, want := range map[float64]string{210.614: "210.6", 0.9901: "0.9901", 73: "73.00", 0.03: "0.0300",
		12345.6: "12346", 0: "0"} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
	got := []string{short(none), percent(none, true), percent(0.1234, false), percent(-0.1234, true),
		percent(0.1234, true), percent(-0.0001, true), percent(math.Inf(1), true)}
	want := []string{"-", "-", "12.3", "-12.3", "+12.3", "0.0", "-"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}
