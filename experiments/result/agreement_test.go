package result

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ablation are three systems at N = 1 and 4. Published are values of TokenRouter (arXiv 2610.12242, table 6);
// those of the experiment are made up.
func ablation() *Summary {
	s := &Summary{Experiment: "ablation", Title: "Ablation", Noise: 0.02,
		Metrics: []Metric{{Name: "throughput_tok_s", Unit: "tok/s", Interval: true}},
		Axes: []Axis{{Name: "variant", Column: "variant", Values: []string{"full", "eager", "sync"}},
			{Name: "concurrency", Column: "concurrency", Values: []string{"1", "4"}}},
		References: []Reference{{Name: "published", Source: "table 6", Metric: "throughput_tok_s"}},
	}
	for _, c := range []struct {
		variant        string
		n              int
		own, published float64
	}{
		{"full", 1, 73.02, 73.02}, {"full", 4, 220, 210.61},
		{"eager", 1, 74, 73.02}, {"eager", 4, 150, 161.26},
		{"sync", 1, 70, 73.02}, {"sync", 4, 155, 143.88},
	} {
		s.Rows = append(s.Rows, Row{Policy: "eager", Concurrency: c.n, Replicate: -1,
			Axes:   []Place{{Axis: "variant", Text: c.variant}},
			Values: []float64{c.own}, Half: []float64{1}})
		at := map[string]string{"variant": c.variant, "concurrency": map[int]string{1: "1", 4: "4"}[c.n]}
		s.References[0].Points = append(s.References[0].Points,
			ReferencePoint{At: at, Value: c.published, Fit: c.n == 1})
	}
	return s
}

// TestErrors: by hand, 73.02/73.02, 74/73.02, 70/73.02 at N = 1 and 220/210.61, 150/161.26, 155/143.88 at 4.
func TestErrors(t *testing.T) {
	s := ablation()
	cells := s.Cells()
	if len(cells) != 6 {
		t.Fatalf("%d cells, want 6", len(cells))
	}
	near := cmpopts.EquateApprox(0, 1e-12)
	for _, c := range []struct {
		fit           bool
		median, worst float64
		at            string
	}{
		{true, 74/73.02 - 1, 70/73.02 - 1, "sync"},
		{false, 1 - 150/161.26, 155/143.88 - 1, "sync"},
	} {
		e := ErrorsOf(cells, c.fit)
		if e.Count != 3 || e.Missing != 0 || !cmp.Equal(e.Median, c.median, near) ||
			!cmp.Equal(e.Worst, c.worst, near) || e.At.Row.Text("variant") != c.at {
			t.Errorf("fitted %t: %d cells, median %v, worst %v at %s; want 3, %v, %v at %s", c.fit, e.Count,
				e.Median, e.Worst, e.At.Row.Text("variant"), c.median, c.worst, c.at)
		}
	}
	s.Rows[1].Values[0] = math.NaN()
	if e := ErrorsOf(s.Cells(), false); e.Count != 2 || e.Missing != 1 ||
		!cmp.Equal(e.Median, (1-150/161.26+155/143.88-1)/2, near) {
		t.Errorf("without a value: %d cells, %d missing, median %v; want 2, 1 and the mean of two", e.Count,
			e.Missing, e.Median)
	}
	if e := ErrorsOf(nil, false); e.Count != 0 || !math.IsNaN(e.Median) || !math.IsNaN(e.Worst) {
		t.Errorf("no cells: %+v, want NaN", e)
	}
}

// TestOrders: published values within the noise are tied in any order; others must follow each other as
// published.
func TestOrders(t *testing.T) {
	s := ablation()
	want := []Order{
		{Reference: "published", Metric: "throughput_tok_s", Place: "N = 1", Tied: 3,
			Published: []string{"full", "eager", "sync"}, Own: []string{"eager", "full", "sync"}},
		{Reference: "published", Metric: "throughput_tok_s", Place: "N = 4",
			Published: []string{"full", "eager", "sync"}, Own: []string{"full", "sync", "eager"},
			Wrong: []Swap{{Variants: [2]string{"eager", "sync"}, Published: [2]float64{161.26, 143.88},
				Own: [2]float64{150, 155}}}},
	}
	if diff := cmp.Diff(want, s.Orders()); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
	s.Noise = 0.13 // 161.26 is 12.1 % more than 143.88
	want[1].Wrong, want[1].Tied = nil, 1
	if diff := cmp.Diff(want, s.Orders()); diff != "" {
		t.Errorf("with more noise (-want +got):\n%s", diff)
	}
	s.Rows[1].Values[0] = 149 // now the last at N = 4
	s.Noise = 0
	if got := s.Orders()[1].Wrong; len(got) != 3 {
		t.Errorf("wrong pairs %v, want all three", got)
	}
}

// TestBests: published are values of TokenRouter (arXiv 2610.12242, figure 10); those of the experiment are
// made up. At N = 2 only one is published, at N = 3 another one is best, at N = 4 the same.
func TestBests(t *testing.T) {
	s := &Summary{Metrics: []Metric{{Name: "throughput_tok_s", Unit: "tok/s"}},
		Axes: []Axis{{Name: "concurrency", Column: "concurrency", Values: []string{"2", "3", "4"}},
			{Name: "thresholds", Column: "thresholds", Values: []string{"1,1", "1,2", "1,3"}}},
		References: []Reference{{Name: "figure 10", Metric: "throughput_tok_s"}},
	}
	for _, c := range []struct {
		n, threshold   int
		own, published float64
	}{
		{2, 1, 90, 0}, {2, 2, 100, 122.3},
		{3, 1, 126, 125.9}, {3, 2, 160, 169}, {3, 3, 168, 158.3},
		{4, 2, 170, 179.1}, {4, 3, 200, 197.4},
	} {
		s.Rows = append(s.Rows, Row{Concurrency: c.n, Thresholds: []int{1, c.threshold}, Replicate: -1,
			Values: []float64{c.own}, Half: []float64{math.NaN()}})
		if c.published > 0 {
			at := map[string]string{"concurrency": strconv.Itoa(c.n), "thresholds": JoinInts([]int{1, c.threshold})}
			s.References[0].Points = append(s.References[0].Points, ReferencePoint{At: at, Value: c.published})
		}
	}
	want := []Best{
		{Reference: "figure 10", Place: "N = 3", Published: "1,2", Own: "1,3", Gap: 168.0/160 - 1},
		{Reference: "figure 10", Place: "N = 4", Published: "1,3", Own: "1,3"},
	}
	if diff := cmp.Diff(want, s.Bests(), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("best thresholds (-want +got):\n%s", diff)
	}
	s.References[0].Metric = "latency_mean_ms"
	if got := s.Bests(); got != nil {
		t.Errorf("best thresholds of a latency: %v, want none", got)
	}
}

// TestRatios: by hand from the experiment's values.
func TestRatios(t *testing.T) {
	s := ablation()
	at := func(variant, n string) map[string]string {
		return map[string]string{"variant": variant, "concurrency": n}
	}
	over := func(places ...map[string]string) []map[string]string { return places }
	s.Checks = []Check{
		{Name: "value", Of: at("full", "4"), Over: over(at("full", "1")), Low: 2.88, High: 2.88},
		{Name: "within", Of: at("full", "4"), Over: over(at("eager", "4"), at("sync", "4")), Low: 1.2, High: 1.5},
		{Name: "below", Of: at("sync", "4"), Over: over(at("eager", "4")), Low: 1.2, High: 1.5},
		{Name: "above", Of: at("full", "4"), Over: over(at("full", "1")), Low: 1.2, High: 1.5},
		{Name: "no row", Of: at("full", "8"), Over: over(at("full", "1")), Low: 1, High: 1},
		{Name: "one of two", Of: at("full", "4"), Over: over(at("full", "1"), at("full", "8")), Low: 1, High: 1},
	}
	none := math.NaN()
	want := [][2]float64{
		{220 / 73.02, 220/73.02/2.88 - 1}, {220.0 / 155, 0}, {155.0 / 150, 155.0/150/1.2 - 1},
		{220 / 73.02, 220/73.02/1.5 - 1}, {none, none}, {none, none},
	}
	for i := range s.Checks {
		s.Checks[i].Metric = "throughput_tok_s"
	}
	near := cmp.Options{cmpopts.EquateApprox(0, 1e-12), cmpopts.EquateNaNs()}
	for i, r := range s.Ratios() {
		if !cmp.Equal([2]float64{r.Own, r.Error}, want[i], near) {
			t.Errorf("%s: ratio %v, error %v; want %v", r.Name, r.Own, r.Error, want[i])
		}
	}
}
