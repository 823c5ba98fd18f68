package result

import (
	"fmt"
	"math"
	"slices"

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
	for _, r := range rows {
		for _, w := range r.Warnings {
			if !slices.Contains(out.Warnings, w) {
				out.Warnings = append(out.Warnings, w)
			}
		}
	}
	return out, nil
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
