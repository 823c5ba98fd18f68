package result

import "slices"

// TaskMetricsOf is the dictionary of a run in which real models answered problems: that of MeasuredMetricsOf,
// with how many answers were right first.
func TaskMetricsOf(models []string) []Metric {
	own := []Metric{
		{Name: "accuracy", Unit: "1", Weight: "problems",
			Definition: "share of the problems whose final answer is exactly right; warm-up and drain count here"},
		{Name: "accuracy_low", Unit: "1",
			Definition: "lower end of the 95 % interval of accuracy over problems (Wilson, JASA 22, 1927)"},
		{Name: "accuracy_high", Unit: "1", Definition: "its upper end"},
		Count("problems", "problems that were asked"),
		Count("right", "problems that were answered rightly"),
		{Name: "final_share", Unit: "1", Weight: "problems", Definition: "share of answers with a final line"},
		{Name: "answer_tokens_mean", Unit: "tok", Weight: "problems",
			Definition: "mean tokens of an answer, without its end token"},
		{Name: "p", Unit: "1",
			Definition: "probability that a token which the first model has sampled sends the request to another" +
				" model; drafts that were dropped count"},
		{Name: "p_return", Unit: "1",
			Definition: "probability that a token of the large model sends the request back; two models only"},
		{Name: "large_share", Unit: "1", Weight: "tokens_total",
			Definition: "share of all tokens that the largest model of the experiment made"},
		{Name: "planned_p", Unit: "1",
			Definition: "p on the validation problems from which prediction and planned thresholds come"},
		{Name: "score_mean_ms", Unit: "ms", Weight: "problems",
			Definition: "mean time of the score of a prompt, with routing by request; it is taken before the" +
				" window and is in no throughput"},
	}
	out := MeasuredMetricsOf(models)
	after := slices.IndexFunc(out, func(m Metric) bool { return m.Name == "simulated_error" }) + 1
	out[after-2].Definition = "throughput_tok_s of the same requests, token by token as they went, in the" +
		" simulator: with calibrated step times and the mean bookkeeping of the run"
	out = slices.Insert(out, after,
		Metric{Name: "simulated_own_tok_s", Unit: "tok/s",
			Definition: "the same with step times by a law of the run's own steps"},
		Metric{Name: "simulated_own_error", Unit: "1",
			Definition: "throughput_tok_s / simulated_own_tok_s - 1: misses that steps of one shape differ"},
		Metric{Name: "simulated_order_tok_s", Unit: "tok/s",
			Definition: "the same with the run's own steps, one after another"},
		Metric{Name: "simulated_order_error", Unit: "1",
			Definition: "throughput_tok_s / simulated_order_tok_s - 1: misses what the scheduler did otherwise"})
	return slices.Concat(own, out)
}
