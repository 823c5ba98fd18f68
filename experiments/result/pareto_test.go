package result

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run of a pair: 500 problems, R2R at three thresholds under two policies, a router of requests, both
// models alone.
var paretoRuns = []struct {
	policy, routing     string
	threshold           float64
	rate, right, share  float64
	handoffs            float64
	wilsonLow, wilsonUp float64 // of right of 500: Wilson, JASA 22 (1927),
}{
	{"delayed", "small", math.NaN(), 1750, 230, 0, 0, 0.4168, 0.5038},
	{"delayed", "large", math.NaN(), 345, 486, 1, 1, 0.9536, 0.9832},
	{"eager", "r2r", 0.5, 850, 410, 0.2, 0.21, 0.7839, 0.8512},
	{"eager", "r2r", 0.2, 500, 480, 0.5, 0.52, 0.9390, 0.9740},
	{"eager", "r2r", 0.8, 1200, 300, 0.06, 0.06, 0.5565, 0.6420},
	{"delayed", "r2r", 0.8, 1500, 300, 0.06, 0.06, 0.5565, 0.6420},
	{"delayed", "r2r", 0.5, 1100, 410, 0.2, 0.21, 0.7839, 0.8512},
	{"delayed", "r2r", 0.2, 640, 480, 0.5, 0.52, 0.9390, 0.9740},
	{"eager", "query-mf", 0.5, 580, 360, 0.5, 0, 0.6791, 0.7576},
}

// paretoSample is a summary of that run at N = 4 and, 1.6 times as fast, at N = 8.
func paretoSample(t *testing.T) *Summary {
	t.Helper()
	models := []string{"arith-small", "arith-large"}
	s := &Summary{Experiment: "pareto", Title: "Pareto", Replicates: 1, Backend: "cpu", Models: models,
		Metrics: TaskMetricsOf(models), Figures: []Figure{{Kind: "pareto", Name: "pareto",
			Title: "Accuracy against throughput", X: "throughput_tok_s"}}}
	for n := 4; n <= 8; n += 4 {
		for _, q := range paretoRuns {
			r := Row{Point: q.routing, Policy: q.policy, Concurrency: n, Replicate: -1, Replicates: 1,
				Axes: []Place{{Axis: "routing", Text: q.routing}, {Axis: "routing_threshold"}}}
			if !math.IsNaN(q.threshold) {
				r.Axes[1].Text = strconv.FormatFloat(q.threshold, 'g', -1, 64)
				r.Axes[1].Number, r.Axes[1].IsNumber = q.threshold, true
			}
			for range s.Metrics {
				r.Values = append(r.Values, math.NaN())
			}
			s.set(t, &r, "throughput_tok_s", q.rate*(1+0.15*float64(n-4)))
			s.set(t, &r, "accuracy", q.right/500)
			s.set(t, &r, "accuracy_low", q.wilsonLow)
			s.set(t, &r, "accuracy_high", q.wilsonUp)
			s.set(t, &r, "large_share", q.share)
			s.set(t, &r, "p", q.handoffs)
			s.Rows = append(s.Rows, r)
		}
	}
	return s
}

// TestParetoTable: the frontier by throughput, and the models alone. Eager is slower than delayed, and the
// router of requests below R2R in both.
func TestParetoTable(t *testing.T) {
	s := paretoSample(t)
	want := strings.Split(`| N | routing | threshold | policy | throughput (tok/s) |`+
		` accuracy, % (95 % interval) | large model, % | p | frontier |
|---|---|---|---|---|---|---|---|---|
| 4 | large |  | delayed | 345.0 | 97.2 (95.4 to 98.3) | 100.0 | 1.000 | yes |
| 4 | r2r | 0.2 | delayed | 640.0 | 96.0 (93.9 to 97.4) | 50.0 | 0.520 | yes |
| 4 | r2r | 0.5 | delayed | 1100.0 | 82.0 (78.4 to 85.1) | 20.0 | 0.210 | yes |
| 4 | r2r | 0.8 | delayed | 1500.0 | 60.0 (55.6 to 64.2) | 6.0 | 0.060 | yes |
| 4 | small |  | delayed | 1750.0 | 46.0 (41.7 to 50.4) | 0.0 | 0.000 | yes |`, "\n")
	got := strings.Split(s.ParetoTable("throughput_tok_s"), "\n")
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if len(got) != 13 || got[12] != "" {
		t.Errorf("%d lines, want 2 and 5 for each of N = 4 and 8", len(got)-1)
	}
	// A large model that is as right but slower than R2R is not on the frontier, and stays in the table.
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Text("routing") == "large" {
			s.set(t, r, "accuracy", 0.96)
		}
	}
	line := strings.Split(s.ParetoTable("throughput_tok_s"), "\n")[2]
	if !strings.HasSuffix(line, "| 1.000 |  |") {
		t.Errorf("the large model's row is %q, want one that is not on the frontier", line)
	}
}

// TestParetoLines: a line a routing and policy, by thresholds, whatever the order of the rows.
func TestParetoLines(t *testing.T) {
	s := paretoSample(t)
	data, err := s.paretoData(&s.Figures[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Panels) != 2 || len(data.Panels[1].Lines) != 5 || data.Panels[1].Concurrency != 8 {
		t.Fatalf("panels %+v, want two with five lines", data.Panels)
	}
	lines := data.Panels[0].Lines
	if lines[0].Alone || lines[2].Alone || !lines[3].Alone || !lines[4].Alone {
		t.Errorf("lines %+v, want only small and large alone, at the end", lines)
	}
	if got, want := lines[1].Throughput, []float64{640, 1100, 1500}; !cmp.Equal(got, want) {
		t.Errorf("%s R2R has %v, want delayed with %v", lines[1].Policy, got, want)
	}
	if got, want := lines[0].Low, []float64{0.9390, 0.7839, 0.5565}; !cmp.Equal(got, want) {
		t.Errorf("intervals of %s R2R begin at %v, want eager with %v", lines[0].Policy, got, want)
	}
	if !strings.Contains(data.Note, "throughput is tokens committed in the window / length of the window") {
		t.Errorf("note %q, want what throughput is", data.Note)
	}
}

func TestDrawPareto(t *testing.T) {
	s, dir := paretoSample(t), t.TempDir()
	files, err := Draw(dir, s)
	if err != nil || len(files) != 3 {
		t.Fatalf("files %v, error %v; want PNG, SVG and table", files, err)
	}
	table, err := os.ReadFile(filepath.Join(dir, "pareto.md"))
	if err != nil || string(table) != s.ParetoTable("throughput_tok_s") {
		t.Errorf("pareto.md holds %q, %v", table, err)
	}
	s.Figures[0].X = "speed"
	if _, err := Draw(dir, s); err == nil || !strings.Contains(err.Error(), "no metric speed") {
		t.Errorf("a metric that is none: error %v", err)
	}
}
