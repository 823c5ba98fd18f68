package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tokenrouter/plots"
)

// Axes of runs whose answers are right or wrong.
const (
	routingAxis      = "routing"           // who makes the next token: a name
	routingThreshold = "routing_threshold" // of the routing: a number, weights, or nothing if it has none
)

// accuracy is the share of right answers of a row, with the ends of its interval.
func (s *Summary) accuracy(r *Row) (value, low, high float64) {
	value, _ = s.Value(r, "accuracy")
	low, _ = s.Value(r, "accuracy_low")
	high, _ = s.Value(r, "accuracy_high")
	return value, low, high
}

// byThreshold are the rows of one concurrency, by the thresholds of their routings.
func (s *Summary) byThreshold(concurrency int) []*Row {
	var rows []*Row
	for i := range s.Rows {
		if s.Rows[i].Concurrency == concurrency {
			rows = append(rows, &s.Rows[i])
		}
	}
	slices.SortStableFunc(rows, func(a, b *Row) int {
		return cmp.Compare(a.Number(routingThreshold), b.Number(routingThreshold))
	})
	return rows
}

func (s *Summary) pareto(f *Figure) (*plots.Figure, error) {
	data, err := s.paretoData(f)
	if err != nil {
		return nil, err
	}
	return plots.Pareto(data)
}

func (s *Summary) paretoData(f *Figure) (data plots.ParetoData, err error) {
	at := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == f.X })
	if at < 0 || !slices.Contains(MetricNames(s.Metrics), "accuracy") {
		return data, fmt.Errorf("the summary has no metric %s or no accuracy", f.X)
	}
	label := cmp.Or(f.XLabel, s.metricLabel(f.X))
	name, _, _ := strings.Cut(label, " (")
	data = plots.ParetoData{Title: f.Title, X: plots.Axis{Label: label, Log: f.LogX, Zero: true},
		Note: fmt.Sprintf("Here %s is %s. Bars: 95 %% intervals (Wilson)", name, s.Metrics[at].Definition)}
	for _, n := range s.concurrencies() {
		panel := plots.ParetoPanel{Concurrency: n, Lines: s.paretoLines(n)}
		for _, r := range s.byThreshold(n) {
			line := &panel.Lines[slices.IndexFunc(panel.Lines, func(l plots.ParetoLine) bool {
				return l.Routing == r.Text(routingAxis) && l.Policy == r.Policy
			})]
			x, _ := s.Value(r, f.X)
			y, low, high := s.accuracy(r)
			line.Throughput, line.Accuracy = append(line.Throughput, x), append(line.Accuracy, y)
			line.Low, line.High = append(line.Low, low), append(line.High, high)
		}
		data.Panels = append(data.Panels, panel)
	}
	return data, nil
}

// paretoLines are the empty lines of one concurrency: routings and policies as the rows give them, not as the
// thresholds do, so that each looks the same in all panels. Models alone come last, on top.
func (s *Summary) paretoLines(concurrency int) []plots.ParetoLine {
	var routed, alone []plots.ParetoLine
	for i := range s.Rows {
		r := &s.Rows[i]
		line := plots.ParetoLine{
			Routing: r.Text(routingAxis), Policy: r.Policy, Alone: r.Text(routingThreshold) == "",
		}
		lines := &routed
		if line.Alone {
			lines = &alone
		}
		same := func(l plots.ParetoLine) bool { return l.Routing == line.Routing && l.Policy == line.Policy }
		if r.Concurrency == concurrency && !slices.ContainsFunc(*lines, same) {
			*lines = append(*lines, line)
		}
	}
	return append(routed, alone...)
}

// ParetoTable is a Markdown table of the rows on the frontier of each concurrency, to which no other is
// better in one of accuracy and the metric x and as good in the other, and of the routings without a
// threshold, to compare them with.
func (s *Summary) ParetoTable(x string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| N | routing | threshold | policy | %s | accuracy, %% (95 %% interval) |"+
		" large model, %% | p | frontier |\n|---|---|---|---|---|---|---|---|---|\n", s.metricLabel(x))
	for _, n := range s.concurrencies() {
		rows := s.byThreshold(n)
		slices.SortStableFunc(rows, func(a, b *Row) int {
			left, _ := s.Value(a, x)
			right, _ := s.Value(b, x)
			return cmp.Compare(left, right)
		})
		for _, r := range rows {
			best := s.undominated(r, rows, x)
			threshold, mark := r.Text(routingThreshold), ""
			if !best && threshold != "" {
				continue
			}
			if best {
				mark = "yes"
			}
			value, _ := s.Value(r, x)
			accuracy, low, high := s.accuracy(r)
			share, _ := s.Value(r, "large_share")
			p, _ := s.Value(r, "p")
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s (%s to %s) | %s | %s | %s |\n", n,
				r.Text(routingAxis), threshold, r.Policy, decimal(value, 1),
				decimal(100*accuracy, 1), decimal(100*low, 1), decimal(100*high, 1),
				decimal(100*share, 1), decimal(p, 3), mark)
		}
	}
	return b.String()
}

// undominated tells whether no other row is better in one of accuracy and x and as good in the other.
func (s *Summary) undominated(r *Row, rows []*Row, x string) bool {
	value, _ := s.Value(r, x)
	accuracy, _, _ := s.accuracy(r)
	if math.IsNaN(value) || math.IsNaN(accuracy) {
		return false
	}
	return !slices.ContainsFunc(rows, func(other *Row) bool {
		v, _ := s.Value(other, x)
		a, _, _ := s.accuracy(other)
		return v >= value && a >= accuracy && (v > value || a > accuracy)
	})
}

// decimal writes a number with so many decimals; nothing for none.
func decimal(v float64, decimals int) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf("%.*f", decimals, v)
}
