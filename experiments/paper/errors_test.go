package paper

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/experiments/result"
	"tokenrouter/experiments/run"
	"tokenrouter/experiments/spec"
)

// claim is what docs/paper.md says of a spec's published values.
type claim struct {
	cells         int     // that check something
	median, worst float64 // their relative errors, absolute
	orders        int     // rows of systems whose order is published
	ratios        int     // published, that check something
	broken        int     // of these, how many do not hold
	// Pairs of systems that come out in another order than published, and by how much at most, in the unit of
	// the metric.
	swaps map[string]float64
}

// claims are those of all specs of this folder. A spec may be better than that, not worse.
var claims = map[string]claim{
	"figure-1b": {ratios: 6, broken: 2},
	"figure-4":  {},
	"figure-10": {cells: 8, median: 0.03, worst: 0.08},
	"lengths":   {ratios: 10, broken: 1},
	"table-2":   {cells: 10, median: 0.09, worst: 0.28, orders: 4},
	"table-3":   {cells: 8, median: 0.10, worst: 0.17, orders: 4},
	"table-5":   {cells: 5, median: 0.04, worst: 0.16, orders: 4},
	"table-6":   {cells: 15, median: 0.055, worst: 0.10, orders: 3},
	"table-7":   {cells: 14, median: 0.035, worst: 0.08, orders: 2},
	"table-8":   {cells: 12, median: 0.06, worst: 0.14, orders: 8},
	"table-9":   {cells: 10, median: 0.075, worst: 0.20, orders: 6},
	"table-10":  {cells: 1, median: 0.02, worst: 0.02},
	"ttft": {cells: 19, median: 0.14, worst: 0.50, orders: 8, swaps: map[string]float64{
		"R2R: LLM only below R2R: official at N = 4":    29,
		"R2R: LLM only below R2R: TokenRouter at N = 4": 12,
	}},

	"systems-low":     {ratios: 14},
	"systems-high":    {ratios: 15},
	"systems-agentic": {ratios: 15},
}

// medianAll and medianThroughput bound the median error of all predicted cells, and of all but times to first
// token.
const medianAll, medianThroughput = 0.065, 0.06

// TestErrors runs all specs and holds their errors to what is claimed.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("*.toml")
	if err != nil || len(files) != len(claims) {
		t.Fatalf("%d specs (%v), want %d, as in claims", len(files), err, len(claims))
	}
	var summaries []*result.Summary
	var all, throughput []result.Cell
	for _, file := range files {
		name := strings.TrimSuffix(file, ".toml")
		t.Run(name, func(t *testing.T) {
			summary := simulate(t, file)
			summaries = append(summaries, summary)
			cells := summary.Cells()
			all = append(all, cells...)
			if name != "ttft" {
				throughput = append(throughput, cells...)
			}
			claims[name].check(t, summary)
		})
	}
	for _, c := range []struct {
		name  string
		cells []result.Cell
		most  float64
	}{{"all", all, medianAll}, {"all but times to first token", throughput, medianThroughput}} {
		if e := result.ErrorsOf(c.cells, false); !(e.Median <= c.most) {
			t.Errorf("%s: %d cells, median error %.3f, want at most %v", c.name, e.Count, e.Median, c.most)
		}
	}
	if len(summaries) == len(files) { // not with -run for one of them
		checkReport(t, summaries)
	}
}

func simulate(t *testing.T, file string) *result.Summary {
	t.Helper()
	s, err := spec.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	report, err := run.Run(t.Context(), s, run.Options{Out: t.TempDir(), Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	return report.Summary
}

func (c claim) check(t *testing.T, s *result.Summary) {
	t.Helper()
	e := result.ErrorsOf(s.Cells(), false)
	if e.Count != c.cells || e.Missing > 0 {
		t.Errorf("%d cells, %d without a value, want %d", e.Count, e.Missing, c.cells)
	}
	if e.Count > 0 && !(e.Median <= c.median && math.Abs(e.Worst) <= c.worst) {
		t.Errorf("errors: median %.3f, worst %+.3f; want at most %v and %v", e.Median, e.Worst, c.median,
			c.worst)
	}
	orders := s.Orders()
	for _, o := range orders {
		for _, pair := range o.Wrong {
			name := fmt.Sprintf("%s below %s at %s", pair.Variants[0], pair.Variants[1], o.Place)
			most, claimed := c.swaps[name]
			if by := pair.Own[1] - pair.Own[0]; !claimed || !(by <= most) {
				t.Errorf("%s: %s by %.1f, published %v and %v; want at most %v, or the published order", o.Reference,
					name, by, pair.Published[0], pair.Published[1], most)
			}
		}
	}
	if len(orders) != c.orders {
		t.Errorf("%d rows of systems, want %d", len(orders), c.orders)
	}
	broken := 0
	ratios := slices.DeleteFunc(s.Ratios(), func(r result.Ratio) bool { return r.Fit })
	for i := range ratios {
		if r := &ratios[i]; !r.Holds() {
			broken++
			t.Logf("%s: %.3f, published %v to %v", r.Name, r.Own, r.Low, r.High)
		}
	}
	if len(ratios) != c.ratios || broken > c.broken {
		t.Errorf("%d ratios, %d of them off; want %d and at most %d", len(ratios), broken, c.ratios, c.broken)
	}
}
