package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"tokenrouter/experiments/result"
)

// column is a column of a table of rows of results.
type column struct {
	title string
	text  func(r *result.Row) string
}

// metricColumn shows a metric, or nothing where there is none.
func metricColumn(s *result.Summary, title, metric string, scale float64, decimals int) column {
	return column{title, func(r *result.Row) string {
		value, _ := s.Value(r, metric)
		return fixed(value*scale, decimals)
	}}
}

// intervalColumn shows half the width of a metric's confidence interval.
func intervalColumn(s *result.Summary, title, metric string, decimals int) column {
	return column{title, func(r *result.Row) string {
		_, half := s.Value(r, metric)
		return fixed(half, decimals)
	}}
}

// placeColumns say which point a row is of: policy, N, thresholds and the other swept axes.
func placeColumns(s *result.Summary) []column {
	columns := []column{
		{"policy", func(r *result.Row) string { return r.Policy }},
		{"N", func(r *result.Row) string { return strconv.Itoa(r.Concurrency) }},
		{"thresholds", func(r *result.Row) string { return result.JoinInts(r.Thresholds) }},
	}
	for _, axis := range s.Axes {
		switch axis.Name {
		case "policy", "concurrency", "thresholds":
		default:
			columns = append(columns, column{axis.Column, func(r *result.Row) string { return r.Text(axis.Name) }})
		}
	}
	return columns
}

// printSummary writes the main figures of every point.
func printSummary(w io.Writer, s *result.Summary) error {
	columns := append(placeColumns(s),
		metricColumn(s, "right %", "accuracy", 100, 1),
		metricColumn(s, "from", "accuracy_low", 100, 1),
		metricColumn(s, "to", "accuracy_high", 100, 1),
		metricColumn(s, "large %", "large_share", 100, 1),
		metricColumn(s, "p", "p", 1, 3),
		metricColumn(s, "tok/answer", "answer_tokens_mean", 1, 1),
		metricColumn(s, "tok/s", "throughput_tok_s", 1, 3),
		intervalColumn(s, "+-95%", "throughput_tok_s", 3),
		metricColumn(s, "predicted", "predicted_tok_s", 1, 3),
		metricColumn(s, "diff %", "predicted_error", 100, 3),
		metricColumn(s, "simulated", "simulated_tok_s", 1, 3),
		metricColumn(s, "diff %", "simulated_error", 100, 3),
		metricColumn(s, "tok/s a user", "user_speed_tok_s", 1, 2),
		metricColumn(s, "latency ms", "latency_mean_ms", 1, 3),
		metricColumn(s, "TTFT ms", "ttft_mean_ms", 1, 3),
		metricColumn(s, "gap ms", "gap_mean_ms", 1, 3),
	)
	fmt.Fprintf(w, "%s: %d points, %d seeds a point\n\n", s.Experiment, len(s.Rows), s.Replicates)
	return rowsTable(s.Rows, columns).write(w)
}

// printWarnings writes what a reader of the results should know, each thing once.
func printWarnings(w io.Writer, s *result.Summary) {
	for _, warned := range s.Warned() {
		fmt.Fprintf(w, "warning: %s: %s\n", warned.Where(len(s.Rows)), warned.Text)
	}
}

// rowsTable makes a table; columns that are empty in every row are left out.
func rowsTable(rows []result.Row, columns []column) *table {
	cells := make([][]string, len(rows))
	t := &table{}
	for _, c := range columns {
		empty := true
		texts := make([]string, len(rows))
		for i := range rows {
			texts[i] = c.text(&rows[i])
			empty = empty && texts[i] == ""
		}
		if empty {
			continue
		}
		t.head = append(t.head, c.title)
		for i, text := range texts {
			if text == "" {
				text = "-"
			}
			cells[i] = append(cells[i], text)
		}
	}
	t.rows = cells
	return t
}

// fixed writes a number with so many decimals, and a missing one as nothing.
func fixed(x float64, decimals int) string {
	if math.IsNaN(x) {
		return ""
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}
