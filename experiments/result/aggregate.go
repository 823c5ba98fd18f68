package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/core/meter/quantile"
)

// IntervalRule words how the confidence intervals are made.
const IntervalRule = "95 %, Student t over replicates; of ratios by the ratio estimator; none for one" +
	" replicate"

// Aggregate makes the row of a point from those of its replicates, which must not be empty. Rates and means
// are ratios of sums over the replicates, counts are added, all else is a plain mean.
func Aggregate(metrics []Metric, rows []Row) (Row, error) {
	out := rows[0]
	out.Replicate, out.Seed, out.Replicates = -1, 0, len(rows)
	out.Values, out.Half, out.Warnings = make([]float64, len(metrics)), make([]float64, len(metrics)), nil
	for i, m := range metrics {
		var values, weights []float64
		for _, r := range rows {
			weight := 1.0
			if m.Weight != "" {
				at := slices.IndexFunc(metrics, func(other Metric) bool { return other.Name == m.Weight })
				if at < 0 {
					return Row{}, fmt.Errorf("result: metric %s weighs by %q, which is no metric", m.Name, m.Weight)
				}
				weight = r.Values[at]
			}
			if !math.IsNaN(r.Values[i]) && weight > 0 {
				values, weights = append(values, r.Values[i]), append(weights, weight)
			}
		}
		var err error
		if out.Values[i], out.Half[i], err = combine(m, values, weights); err != nil {
			return Row{}, err
		}
	}
	out.Warnings = mergeWarnings(rows)
	return out, nil
}

// mergeWarnings lists the warnings of some rows, each once. Those that differ only in the count with which
// they begin become one, with the sum.
func mergeWarnings(rows []Row) []string {
	var order []string
	counts := make(map[string]int)
	for _, r := range rows {
		for _, w := range r.Warnings {
			n, text := leadingCount(w)
			if _, known := counts[text]; !known {
				order = append(order, text)
			}
			counts[text] += n
		}
	}
	for i, text := range order {
		if n := counts[text]; n > 0 {
			order[i] = strconv.Itoa(n) + text
		}
	}
	return order
}

// leadingCount splits "3 requests were refused" into 3 and " requests were refused"; n is 0 without a count.
func leadingCount(warning string) (n int, text string) {
	digits, _, _ := strings.Cut(warning, " ")
	if n, err := strconv.Atoi(digits); err == nil && n > 0 {
		return n, warning[len(digits):]
	}
	return 0, warning
}

// combine gives the value over replicates and half the width of its interval. The ratio estimator takes the
// spread of (numerator - ratio * denominator) / mean denominator.
func combine(m Metric, values, weights []float64) (value, half float64, err error) {
	none := math.NaN()
	if len(values) == 0 {
		return none, none, nil
	}
	sum, weight := 0.0, 0.0
	for i, v := range values {
		sum += v * weights[i]
		weight += weights[i]
	}
	if m.Total {
		return sum, none, nil
	}
	value = sum / weight
	if !m.Interval || len(values) < 2 {
		return value, none, nil
	}
	spread := make([]float64, len(values))
	for i, v := range values {
		spread[i] = (v - value) * weights[i] * float64(len(values)) / weight
	}
	interval, err := quantile.MeanCI(spread, IntervalLevel)
	if err != nil {
		return none, none, fmt.Errorf("result: %s: %w", m.Name, err)
	}
	return value, interval.HalfWidth, nil
}
