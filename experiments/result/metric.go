package result

import (
	"fmt"
	"slices"
	"strings"
)

// Metric is a column of the summary.
type Metric struct {
	Name string `json:"name"` // ends in its unit, where it has one
	Unit string `json:"unit"`
	// Definition says what it is, in one sentence.
	Definition string `json:"definition"`
	// Weight names the column that is this one's denominator: over replicates a ratio of sums is taken, never
	// a mean of ratios. Empty: a plain mean over the replicates, as for percentiles.
	Weight string `json:"weight,omitempty"`
	// Total says that the values of replicates are added up.
	Total bool `json:"total,omitempty"`
	// Interval says that a column of this name with the suffix _ci95 holds half the width of the 95 %
	// confidence interval.
	Interval bool `json:"interval,omitempty"`
}

// IntervalSuffix ends the name of a column that holds half the width of a confidence interval.
const IntervalSuffix = "_ci95"

// IntervalLevel is the level of all confidence intervals.
const IntervalLevel = 0.95

// Count is a metric that is a count, added up over replicates.
func Count(name, definition string) Metric {
	return Metric{Name: name, Unit: "1", Definition: definition, Total: true}
}

// Times are the columns of one distribution of times, in ms; weight names the column that counts its values.
func Times(name, definition, weight string) []Metric {
	metrics := []Metric{{Name: name + "_mean_ms", Unit: "ms", Definition: definition + ": mean",
		Weight: weight, Interval: true}}
	for _, p := range []string{"p50", "p90", "p95", "p99"} {
		metrics = append(metrics, Metric{Name: name + "_" + p + "_ms", Unit: "ms",
			Definition: fmt.Sprintf("%s: %s, nearest rank; over replicates the mean of their %s", definition, p, p)})
	}
	return append(metrics, Count(name+"_n", definition+": how many values"))
}

var general = slices.Concat(
	[]Metric{
		{Name: "throughput_tok_s", Unit: "tok/s", Weight: "window_s", Interval: true,
			Definition: "tokens committed in the window / length of the window; dropped drafts never count"},
		{Name: "predicted_tok_s", Unit: "tok/s",
			Definition: "throughput by the chain (TokenRouter, arXiv 2610.12242, appendix D), where it" +
				" describes the point"},
		{Name: "predicted_error", Unit: "1", Interval: true, Weight: "window_s",
			Definition: "throughput_tok_s / predicted_tok_s - 1"},
		{Name: "goodput_tok_s", Unit: "tok/s", Weight: "window_s", Interval: true,
			Definition: "tokens of requests that finished within the limits on TTFT and TPOT / length of the window"},
		{Name: "user_speed_tok_s", Unit: "tok/s", Weight: "served_s", Interval: true,
			Definition: "what a single user sees: tokens of finished requests / sum of their end-to-end latencies"},
	},
	Times("latency", "end-to-end latency of finished requests, from planned arrival to the last commit",
		"latency_n"),
	Times("ttft", "time to first token, from planned arrival to the first commit", "ttft_n"),
	Times("gap", "inter-token latency, between commits of a request", "gap_n"),
	Times("tpot", "time per output token of a request, (last - first commit) / (tokens - 1)", "tpot_n"),
	Times("admission", "wait for admission, from planned arrival", "admission_n"),
	[]Metric{
		{Name: "window_s", Unit: "s", Total: true,
			Definition: "length of the window of measurement: it opens when warmup_requests have left and" +
				" closes when the last request is admitted (steady), else with the last token; at until if" +
				" that comes first"},
		{Name: "served_s", Unit: "s", Total: true, Definition: "sum of the end-to-end latencies of finished" +
			" requests"},
		Count("tokens", "tokens committed in the window"),
		Count("tokens_total", "tokens committed in the whole run"),
		Count("requests_finished", "requests admitted in the window that finished"),
		Count("requests_rejected", "requests refused, in the window"),
		Count("requests_cancelled", "requests cancelled, admitted in the window"),
		Count("requests_failed", "requests failed, admitted in the window"),
		Count("requests_warmup", "requests left out because they were admitted, or refused, before the window"),
		Count("requests_open", "requests in flight when the time was over"),
		Count("drafts_dropped", "drafts that another model made again, in the whole run"),
		Count("handoffs", "moves from model to model, in the whole run"),
		Count("preempted", "seats that lost their KV pages to an older request, in the whole run"),
		Count("recomputed_tokens", "tokens fed in passes that made up for lost pages, of those seats or of models"+
			" with reuse = false, in the whole run"),
		Count("prefix_tokens", "tokens not fed because another request's pages held them, in the whole run"),
	},
)

// MetricsOf is the metric dictionary of a run with these models: the general metrics, then those of each
// model, whose names begin with the model's in small letters.
func MetricsOf(models []string) []Metric {
	out := slices.Clone(general)
	for _, name := range models {
		p := Slug(name) + "_"
		out = append(out,
			Metric{Name: p + "share", Unit: "1", Weight: "tokens", Interval: true,
				Definition: "share of the tokens in the window that " + name + " made"},
			Metric{Name: p + "batch_mean", Unit: "1", Weight: p + "launches",
				Definition: "mean rows of a launch of " + name},
			Metric{Name: p + "utilisation", Unit: "1", Weight: "window_s",
				Definition: "share of the window in which " + name + " was running"},
			Metric{Name: p + "queue_mean_ms", Unit: "ms", Weight: p + "rows",
				Definition: "mean time of a row of " + name + " in the queue"},
			Metric{Name: p + "pending_mean_ms", Unit: "ms", Weight: p + "rows",
				Definition: "mean time of a request away from " + name + ", from leaving it to being back in its queue"},
			Metric{Name: p + "pages_peak", Unit: "1",
				Definition: "most KV pages of " + name + " in use; over replicates the mean of their peaks"},
			Count(p+"launches", "launches of "+name+" in the window"),
			Count(p+"rows", "rows of those launches"),
		)
	}
	return out
}

// MeasuredMetricsOf is the dictionary of a run on hardware: that of MetricsOf, whose metrics are then
// measured, with what was simulated and predicted of the same points beside them.
func MeasuredMetricsOf(models []string) []Metric {
	out := MetricsOf(models)
	after := slices.IndexFunc(out, func(m Metric) bool { return m.Name == "predicted_error" }) + 1
	out = slices.Insert(out, after,
		Metric{Name: "simulated_tok_s", Unit: "tok/s", Interval: true,
			Definition: "throughput_tok_s of the same requests in the simulator, with calibrated step times"},
		Metric{Name: "simulated_error", Unit: "1", Interval: true, Weight: "window_s",
			Definition: "throughput_tok_s / simulated_tok_s - 1"},
		Metric{Name: "rescaled_tok_s", Unit: "tok/s", Interval: true,
			Definition: "throughput_tok_s of the same requests in the simulator, with step times scaled to the mean" +
				" of each model that was measured with them"},
		Metric{Name: "rescaled_error", Unit: "1", Interval: true, Weight: "window_s",
			Definition: "throughput_tok_s / rescaled_tok_s - 1: what step times do not explain"},
		Metric{Name: "probe_before", Unit: "1",
			Definition: "time of steps of fixed shapes right before the seed / at the calibration"},
		Metric{Name: "probe_after", Unit: "1", Definition: "the same right after the seed"},
		Count("tries", "tries of the seed, all of which are in "+TriesFile),
		Count("tries_off", "of those, how many do not count: probe_before or probe_after was beyond"+
			" system.probe.tolerance"),
		Count("seeds_off", "seeds of which no try counts, and the one nearest to the calibration was kept"),
		Metric{Name: "others_share", Unit: "1",
			Definition: "share of the processors' time during the seed that went to other processes and guests"})
	for _, name := range models {
		p := Slug(name) + "_"
		out = append(out,
			Metric{Name: p + "step_mean_ms", Unit: "ms", Weight: p + "launches",
				Definition: "mean time of a launch of " + name + ", from its turn to that of its completion"},
			Metric{Name: "simulated_" + p + "step_mean_ms", Unit: "ms",
				Definition: "the same in the simulator"},
			Metric{Name: p + "bookkeeping", Unit: "1",
				Definition: "share of the time of " + name + "'s passes that was not inside the device"},
			Metric{Name: p + "step_spread", Unit: "1",
				Definition: "standard deviation over mean of the time of a launch of " + name + " / the calibrated" +
					" time of its shape, alone"})
	}
	return out
}

// Slug is a name in small letters, digits and underscores, for column names.
func Slug(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			b.WriteRune(c)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "_") {
			b.WriteByte('_')
		}
	}
	return strings.TrimSuffix(b.String(), "_")
}

// MetricNames are the names of some metrics, in order.
func MetricNames(metrics []Metric) []string {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.Name
	}
	return names
}

// axisColumns names the columns of swept axes; policy, concurrency and thresholds are always there.
var axisColumns = map[string]string{
	"rate": "rate_per_s", "host_call": "host_call_ms", "max_wait": "max_wait_ms",
}

// AxisColumn is the column in which the values of an axis stand.
func AxisColumn(axis string) string {
	if c, ok := axisColumns[axis]; ok {
		return c
	}
	return axis
}
