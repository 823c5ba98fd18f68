package meter

import "slices"

// Definition says what a field of Summary means.
type Definition struct {
	Name       string // of the field; Models[] stands for each model, Stats for each *Stats
	Unit       string // "1" for counts and shares
	Definition string
}

var dictionary = []Definition{
	{"OpenedNs", "ns", "start of the window: the run's, or when WarmupRequests requests had left"},
	{"ClosedNs", "ns", "end of the window: when Close was called, or the last token of the run"},
	{"Warmups", "1", "requests left out: admitted, or refused, before the window opened"},
	{"Committed", "1", "tokens committed after OpenedNs and up to ClosedNs; dropped drafts are none"},
	{"Total", "1", "tokens committed in the whole run"},
	{"ThroughputTokS", "tok/s", "Committed / (ClosedNs - OpenedNs)"},
	{"GoodputTokS", "tok/s", "tokens of the requests that Finished counts and that kept the limits on TTFT" +
		" and TPOT / (ClosedNs - OpenedNs)"},
	{"Finished", "1", "requests admitted since the window opened that finished, also after it closed"},
	{"Rejected", "1", "requests refused since the window opened"},
	{"Cancelled", "1", "requests admitted, or still waiting, since the window opened that were cancelled"},
	{"Failed", "1", "requests admitted since the window opened that failed"},
	{"TTFT", "ns", "time to first token of each request that Finished counts: from its planned arrival to its" +
		" first commit; in a closed loop from its admission"},
	{"Gap", "ns", "inter-token latency: between two commits of a request, the second in the window; requests" +
		" admitted in the window"},
	{"TPOT", "ns", "time per output token of each request that Finished counts and that has two or more:" +
		" (last - first commit) / (tokens - 1), rounded down"},
	{"Latency", "ns", "end-to-end latency of each request that Finished counts: from its planned arrival to" +
		" its end"},
	{"Admission", "ns", "wait for admission: from planned arrival to admission; requests admitted since the" +
		" window opened that have left, whatever their outcome"},
	{"Models", "", "a ModelSummary for each model, in order"},

	{"Models[].Launches", "1", "forward passes started in the window"},
	{"Models[].Rows", "1", "rows of those passes"},
	{"Models[].Fresh", "1", "tokens fed by those passes, recomputed ones included"},
	{"Models[].Committed", "1", "tokens committed in the window that the model made"},
	{"Models[].Share", "1", "Models[].Committed / Committed"},
	{"Models[].BatchMean", "1", "Models[].Rows / Models[].Launches"},
	{"Models[].Utilisation", "1", "share of the window in which a pass was running"},
	{"Models[].QueueMeanNs", "ns", "mean time of those rows from joining the queue to the pass"},
	{"Models[].PendMeanNs", "ns", "mean time of a return from leaving the model to being back in its queue"},
	{"Models[].PagesMax", "1", "most KV pages in use after a launch of the model, in the whole run"},

	{"Stats.Count", "1", "values"},
	{"Stats.Mean", "ns", "sum / Count"},
	{"Stats.P50", "ns", "nearest-rank percentile: the value at rank ceil(0.5 * Count) in rising order"},
	{"Stats.P90", "ns", "the same of 0.9"},
	{"Stats.P95", "ns", "the same of 0.95"},
	{"Stats.P99", "ns", "the same of 0.99"},
	{"Stats.Min", "ns", "least value"},
	{"Stats.Max", "ns", "greatest value"},
	{"Stats.Exact", "", "percentiles are exact; otherwise within quantile.RelativeError of it"},
	{"Stats.P90Reliable", "", "enough values lie beyond the percentile (quantile.TailReliable)"},
	{"Stats.P95Reliable", "", "the same of P95"},
	{"Stats.P99Reliable", "", "the same of P99"},
}

// Dictionary defines every field of Summary, in order. The caller owns the slice.
func Dictionary() []Definition { return slices.Clone(dictionary) }
