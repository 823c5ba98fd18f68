package load

import (
	"slices"

	"tokenrouter/experiments/result"
)

// metrics are what Result.Values holds. Names that runs of experiments have too mean the same, as far as a
// client can see it.
var metrics = slices.Concat(
	[]result.Metric{
		{Name: "throughput_tok_s", Unit: "tok/s", Weight: "window_s",
			Definition: "tokens that came in the window / length of the window"},
		{Name: "goodput_tok_s", Unit: "tok/s", Weight: "window_s",
			Definition: "tokens of requests that finished within the limits on TTFT and TPOT / length of the window"},
		{Name: "user_speed_tok_s", Unit: "tok/s", Weight: "served_s",
			Definition: "what a single user sees: tokens of finished requests / sum of their end-to-end latencies"},
	},
	result.Times("latency", "end-to-end latency of finished requests, from planned arrival to the end of the"+
		" answer; in a closed loop from when they were sent", "latency_n"),
	result.Times("ttft", "time to first token, from planned arrival to the first chunk with text or a token; a"+
		" chunk that only says who speaks is none", "ttft_n"),
	result.Times("tpot", "time per output token of a request, (last - first chunk) / (tokens - 1)", "tpot_n"),
	result.Times("chunk_gap", "between chunks of a request as they reach the client, the second in the window;"+
		" not between tokens", "chunk_gap_n"),
	result.Times("send_wait", "from planned arrival until the load generator had a place to send the request",
		"send_wait_n"),
	[]result.Metric{
		{Name: "window_s", Unit: "s", Total: true,
			Definition: "length of the window of measurement: it opens when the warm-up requests have left and" +
				" closes when the last request is sent (steady), else with the last token; at the end of the run" +
				" if that comes first"},
		{Name: "served_s", Unit: "s", Total: true,
			Definition: "sum of the end-to-end latencies of finished requests"},
		result.Count("tokens", "tokens that came in the window"),
		result.Count("tokens_total", "tokens that came in the whole run"),
		result.Count("prompt_tokens", "tokens of the prompts of finished requests, as the server counts them"),
		result.Count("requests_finished", "requests sent in the window that finished"),
		result.Count("requests_rejected", "requests refused for want of a place (429, 503), in the window"),
		result.Count("requests_failed", "requests that failed, sent in the window"),
		result.Count("requests_warmup", "requests left out because they were sent, or refused, before the window"),
		result.Count("requests_open", "requests in flight when the time was over"),
		result.Count("requests_unsent", "requests whose planned arrival had come when the time was over, but"+
			" not a place to send them"),
		result.Count("requests_uncounted", "finished requests whose tokens the server did not count: a chunk is"+
			" taken for a token"),
		result.Count("drafts_dropped", "drafts that another model made again, of finished requests, where the"+
			" server says"),
	},
)

// Metrics is the dictionary of a run's values. For each model that a server names as the maker of tokens
// (Result.Models), there is a share: of the tokens of the requests that requests_finished counts, as the
// server counts them.
func Metrics(models []string) []result.Metric {
	out := slices.Clone(metrics)
	for _, name := range models {
		out = append(out, result.Metric{Name: result.Slug(name) + "_share", Unit: "1", Weight: "tokens",
			Definition: "share of the tokens of finished requests that " + name + " made, as the server says"})
	}
	return out
}
