package spec

import (
	"fmt"
	"strings"
)

// Key is a key that a spec may have.
type Key struct {
	Path string // [] stands for an element of an array
	Type string
	When string // where it applies
	Doc  string
}

// Keys lists every key, in the order of a spec. It is the manual of the format.
var Keys = []Key{
	{"extends", "file", "any spec",
		"take all keys of another spec, then replace those given here; an empty array, as in" +
			" reference = [], takes a key out"},
	{"name", "name", "any spec", "folder of the results: small letters, digits and hyphens"},
	{"title", "string", "any spec", "title of results and figures; default: the name"},
	{"seed", "integer >= 0", "any spec", "governs all randomness; default 0"},
	{"replicates", "integer >= 1", "any spec",
		"independent worlds a point; default 1, the only number where nothing is random"},
	{"common_random_numbers", "boolean", "any spec",
		"all points of a replicate meet the same world; default true"},

	{"models[].name", "string", "any model", "as in results and thresholds"},
	{"models[].node", "integer >= 0", "any model", "node that it is on; default 0, the front"},
	{"models[].rows_max", "integer >= 0", "any model", "most rows of a launch; default 0, no bound"},
	{"models[].latency.kind", "constant | affine | table | roofline", "any latency",
		"law of the step time"},
	{"models[].latency.step", "duration", `latency of kind "constant"`, "the step time"},
	{"models[].latency.base", "duration", `latency of kind "affine"`, "a launch; default 0"},
	{"models[].latency.per_row", "duration", `latency of kind "affine"`, "a row; default 0"},
	{"models[].latency.per_fresh_ns", "number >= 0", `latency of kind "affine"`,
		"a token fed, ns; default 0"},
	{"models[].latency.per_block", "duration", `latency of kind "affine"`,
		"every 32 tokens fed after the first; default 0"},
	{"models[].latency.per_context_ns", "number >= 0", `latency of kind "affine"`,
		"a token in KV, ns; default 0"},
	{"models[].latency.rows", "integers", `latency of kind "table", or the valid range of "affine"`,
		"table: points of the axis; affine: least and greatest"},
	{"models[].latency.fresh_tokens", "integers", `latency of kind "table", or the valid range of "affine"`,
		"as rows, for tokens fed in all"},
	{"models[].latency.context_tokens", "integers", `latency of kind "table", or the valid range of "affine"`,
		"as rows, for tokens in KV in all"},
	{"models[].latency.steps", "durations", `latency of kind "table"`,
		"a time for every combination of the axes, the last axis fastest"},
	{"models[].latency.file", "file", `latency of kind "table" or "affine"`,
		"samples: CSV with rows, step_ms and, where recorded, fresh_tokens and context_tokens; affine is fitted"},
	{"models[].latency.outside", "refuse | clamp", `latency of kind "table", or "affine" with a valid range`,
		"outside the range: end the run, or take the nearest and warn; default refuse"},
	{"models[].latency.shape", "model shape", `latency of kind "roofline"`,
		"named dimensions, such as Qwen3-0.6B"},
	{"models[].latency.dimensions.layers", "integer", "a roofline without a named shape", "layers"},
	{"models[].latency.dimensions.hidden", "integer", "a roofline without a named shape", "hidden size"},
	{"models[].latency.dimensions.heads", "integer", "a roofline without a named shape", "query heads"},
	{"models[].latency.dimensions.kv_heads", "integer", "a roofline without a named shape", "KV heads"},
	{"models[].latency.dimensions.head_dim", "integer", "a roofline without a named shape",
		"size of a head"},
	{"models[].latency.dimensions.intermediate", "integer", "a roofline without a named shape",
		"width of the feed-forward part"},
	{"models[].latency.dimensions.vocab", "integer", "a roofline without a named shape",
		"rows of the embedding"},
	{"models[].latency.dimensions.tied", "boolean", "a roofline without a named shape",
		"the output head is the embedding; default false"},
	{"models[].latency.device", "device", `latency of kind "roofline"`, "named device, such as A100"},
	{"models[].latency.peaks.flops", "number > 0", "a roofline without a named device", "peak, flop/s"},
	{"models[].latency.peaks.bandwidth", "number > 0", "a roofline without a named device",
		"memory peak, bytes/s"},
	{"models[].latency.peaks.memory", "size", "a roofline without a named device", "memory"},
	{"models[].latency.peaks.link", "number > 0", "a roofline without a named device",
		"to its neighbours, bytes/s; needed with parallel above 1"},
	{"models[].latency.parallel", "integer >= 1", `latency of kind "roofline"`,
		"devices that share every layer; default 1"},
	{"models[].latency.weight_bytes", "number > 0", `latency of kind "roofline"`,
		"bytes a weight; default 2"},
	{"models[].latency.kv_bytes", "integer >= 1", `latency of kind "roofline"`,
		"bytes a KV element; default 2"},
	{"models[].latency.flops_efficiency", "0 to 1", `latency of kind "roofline"`,
		"share of the peak; default 0.7"},
	{"models[].latency.memory_efficiency", "0 to 1", `latency of kind "roofline"`,
		"share of the peak; default 0.8"},
	{"models[].latency.launch", "duration", `latency of kind "roofline"`, "added to a step; default 0"},
	{"models[].latency.exchange", "duration", `latency of kind "roofline"`,
		"latency of one all-reduce; default 0"},
	{"models[].latency.scale", "number > 0", "any latency", "factor of all times; default 1"},
	{"models[].latency.beside", "number >= 1", "any latency",
		"factor of the step time while another model of the node runs; default 1"},
	{"models[].latency.graph_rows", "integers", "any latency",
		"captured batch sizes that rows are padded to"},
	{"models[].host_step", "duration", "any model", "host time a step; default 0"},
	{"models[].host_handoff", "duration", "any model",
		"host time a row that came by a hand-off; default 0"},
	{"models[].kv.pages", "integer >= 1", "a model without device",
		"KV pool; default: as many as all requests could ever need"},
	{"models[].kv.device", "device name", "a model that shares memory", "name in devices"},
	{"models[].kv.shape", "model shape", "a model that shares memory", "named dimensions"},
	{"models[].kv.weights", "size", "a model that shares memory, without shape", "bytes of the weights"},
	{"models[].kv.per_token", "size", "a model that shares memory, without shape", "KV bytes of a token"},
	{"devices[].name", "string", "any device", "as in models[].kv.device"},
	{"devices[].memory", "size", "any device", "memory"},
	{"devices[].use", "0 to 1", "any device", "share of it for weights and KV; default 0.9"},
	{"links[].between", "two nodes", "any link", "works in both directions"},
	{"links[].latency", "duration", "any link", "at least 1ns"},
	{"links[].bandwidth", "number > 0", "any link", "bytes/s; default: size does not matter"},

	{"router.algorithm", "r2r | citer | collm | rstitch | me | matrix | recorded | single", "any router",
		"who makes the next token"},
	{"router.outcome", "bernoulli | bursts | modulated | trace", "r2r, citer, collm and rstitch",
		"law of the verdicts, or recorded signals; default bernoulli, the only law for rstitch"},
	{"router.p", "0 to 1", "r2r, citer, collm and rstitch",
		"probability that a token of the small model goes to the large one"},
	{"router.p_return", "0 to 1", "rstitch", "probability that the large model returns after a token"},
	{"router.easy", "0 to 1", `outcome "bursts"`, "p at an easy position"},
	{"router.hard", "0 to 1", `outcome "bursts"`, "p at a hard position"},
	{"router.hard_tokens", "number >= 1", `outcome "bursts"`, "mean length of a hard stretch"},
	{"router.states", "numbers", `outcome "modulated"`, "p in each state of a hidden Markov chain"},
	{"router.transition", "matrix", `outcome "modulated"`, "its transitions from a position to the next"},
	{"router.weights", "numbers", "me", "weight of each model"},
	{"router.routing", "matrix", "matrix", "P: probability to go from model i to j after a step"},
	{"router.commit", "matrix", "matrix", "C: tokens that the move commits, 0 or 1"},
	{"router.paths", "strings", "recorded",
		"a request each: the first letter of the name of the model that makes each token, as in SLSLSS"},
	{"router.trace", "file", `recorded, or outcome "trace"`,
		"recorded requests, the workload too: their paths are played, or the algorithm decides on their signals"},
	{"router.threshold", "number", `outcome "trace"`, "threshold of the algorithm on the recorded signals"},
	{"router.model", "model name", "single", "the model that makes all tokens"},

	{"workload.kind", "closed | poisson | gamma | trace | recorded", "any workload",
		"law of the arrivals; recorded: those of router.trace"},
	{"workload.concurrency", "integer >= 1", "any workload",
		"N: workers of a closed loop, most requests in flight of an open one"},
	{"workload.requests", "integer >= 1", "generated workloads",
		"how many; default: until the time is over"},
	{"workload.until", "duration", "any workload", "end of simulated time; default: when all is done"},
	{"workload.prompt", "length", "generated workloads", "tokens of the prompt: an integer or a law"},
	{"workload.output", "length", "generated workloads",
		"natural tokens of the answer; default: max_tokens ends it"},
	{"workload.prompt.law", "uniform | geometric | lognormal | empirical", "a length that is a law",
		"law of the lengths"},
	{"workload.prompt.min", "integer >= 1", "all laws but empirical", "least; default 1"},
	{"workload.prompt.max", "integer >= 1", "all laws but empirical", "greatest"},
	{"workload.prompt.mean", "number >= 1", "geometric and lognormal", "mean, before the bounds"},
	{"workload.prompt.median", "number >= 1", "lognormal", "median, instead of the mean"},
	{"workload.prompt.sigma", "0 to 10", "lognormal", "standard deviation of the logarithm"},
	{"workload.prompt.values", "integers", "empirical", "drawn with equal chance"},
	{"workload.output.law", "uniform | geometric | lognormal | empirical", "a length that is a law",
		"law of the lengths"},
	{"workload.output.min", "integer >= 1", "all laws but empirical", "least; default 1"},
	{"workload.output.max", "integer >= 1", "all laws but empirical", "greatest"},
	{"workload.output.mean", "number >= 1", "geometric and lognormal", "mean, before the bounds"},
	{"workload.output.median", "number >= 1", "lognormal", "median, instead of the mean"},
	{"workload.output.sigma", "0 to 10", "lognormal", "standard deviation of the logarithm"},
	{"workload.output.values", "integers", "empirical", "drawn with equal chance"},
	{"workload.max_tokens", "integer >= 1", "any workload", "limit on output tokens; default: none"},
	{"workload.rate", "number > 0", "poisson and gamma", "arrivals a second"},
	{"workload.variation", "0.01 to 100", "gamma", "standard deviation of the gaps over their mean"},
	{"workload.file", "file", "trace", "CSV or JSONL with arrival_ms, prompt_tokens, output_tokens"},
	{"workload.from_zero", "boolean", "trace", "count arrivals from the first request; default false"},
	{"workload.prefix_groups", "integer >= 1", "generated workloads",
		"how many shared prefixes; default none"},
	{"workload.prefix_tokens", "integer >= 1", "generated workloads", "tokens of each"},
	{"workload.queue_max", "integer >= 1", "open loops",
		"requests that may wait for admission; default 1024"},
	{"workload.warmup_requests", "integer >= 0", "any workload",
		"the window of measurement opens when so many have left; default 0"},
	{"workload.steady", "boolean", "any workload",
		"the window closes when the last request is admitted; default: true for a closed loop"},
	{"workload.good_ttft", "duration", "any workload",
		"goodput: limit on time to first token; default none"},
	{"workload.good_tpot", "duration", "any workload",
		"goodput: limit on time per output token; default none"},

	{"policy.kind", "step-sync | model-sync | eager | delayed", "any policy",
		"when an idle model starts a batch"},
	{"policy.thresholds", `integers | "planned"`, "policy delayed",
		"requests that must wait at each model, for all N; or found by the chain for each N"},
	{"policy.hold", "integers", `thresholds "planned"`,
		"thresholds that are not searched; 0 leaves one free"},
	{"policy.table", "table of integers", "policy delayed",
		"by model name: thresholds for N = 1, 2, ... up to the concurrency; 1 for a model that is not named"},
	{"policy.max_wait", "duration", "policy delayed", "longest wait for a threshold; default none"},

	{"scheduler.admission", "reserve | optimistic", "any spec", "how KV is promised; default reserve"},
	{"scheduler.page_tokens", "integer >= 1", "any spec", "tokens of a KV page; default 16"},
	{"scheduler.token_budget", "integer >= 0", "any spec",
		"most tokens fed in a launch; default 0, no bound"},
	{"scheduler.context_max", "integer >= 2", "any spec",
		"most tokens of a request; default: as the workload needs"},

	{"sweep.policy", "words", "any sweep", "axis over policy.kind"},
	{"sweep.concurrency", "integers", "any sweep", "axis over workload.concurrency"},
	{"sweep.rate", "numbers", "any sweep", "axis over workload.rate"},
	{"sweep.variation", "numbers", "any sweep", "axis over workload.variation"},
	{"sweep.p", "numbers", "any sweep", "axis over router.p"},
	{"sweep.latency_scale", "numbers", "any sweep",
		"axis over models[].latency.scale: a number for all, or an array with one a model"},
	{"sweep.host_handoff", "durations", "any sweep", "axis over models[].host_handoff, of all models"},
	{"sweep.pages", "integers", "any sweep", "axis over models[].kv.pages, of all models"},
	{"sweep.admission", "words", "any sweep", "axis over scheduler.admission"},
	{"sweep.token_budget", "integers", "any sweep", "axis over scheduler.token_budget"},
	{"sweep.prompt_tokens", "integers", "any sweep", "axis over workload.prompt, fixed lengths"},
	{"sweep.output_tokens", "integers", "any sweep", "axis over workload.output, fixed lengths"},
	{"sweep.max_wait", "durations", "any sweep", "axis over policy.max_wait"},
	{"sweep.thresholds", `sets | pattern`, "any sweep",
		`axis over policy.thresholds: sets, or a pattern such as "1,_" for all feasible sets with B0 = 1`},

	{"output.requests", "boolean", "any spec", "write requests.parquet; default true"},
	{"output.turn_log", "boolean", "any spec",
		"write a turn log a point, of the first replicate; default false"},

	{"figure[].kind", "threshold | schedules | throughput-speed | line", "any figure", "which figure"},
	{"figure[].name", "name", "any figure", "file name; default: the kind"},
	{"figure[].title", "string", "any figure", "default: the title of the spec"},
	{"figure[].time_unit", "duration", `figure "schedules"`, `unit of the time axis; default "1ms"`},
	{"figure[].time_label", "string", `figure "schedules"`, `default "time (ms)"`},
	{"figure[].x", "axis", `figure "line"`, "swept axis of numbers"},
	{"figure[].y", "metric", `figure "line"`, "column of the summary"},
	{"figure[].by", "axes", `figure "line"`,
		"a line for each combination of these; default: all other axes"},
	{"figure[].predicted", "boolean", `figure "line"`, "draw the prediction too; default false"},
	{"figure[].x_label", "string", `figure "line"`, "default: the axis"},
	{"figure[].y_label", "string", `figure "line"`, "default: metric and unit"},
	{"figure[].log_x", "boolean", `figure "line"`, "default false"},
	{"figure[].log_y", "boolean", `figure "line"`, "default false"},

	{"reference[].name", "string", "any reference", "as in legends, such as: measured, 2 x A100"},
	{"reference[].source", "string", "any reference", "where the values come from"},
	{"reference[].metric", "metric", "any reference", "column of the summary that they compare to"},
	{"reference[].file", "file", "any reference", "CSV with the swept axes and the metric as columns"},
	{"reference[].points", "tables", "a reference without file", "an axis a key, and value"},
}

// Manual writes Keys and SystemKeys as a page of Markdown.
func Manual() []byte {
	var b strings.Builder
	b.WriteString("# Keys of a spec\n\n" +
		"A spec is a TOML file. Times are strings with a unit (\"6.0ms\"), sizes too (\"80GiB\"). `[]`" +
		" stands for an\n" +
		"element of an array. An axis of `[sweep]` has an array of values; points are all their" +
		" combinations, the\n" +
		"first axis of the list below outermost. A length is an integer, or a table with a law.\n\n")
	keyTable(&b, Keys)
	b.WriteString("\n# Keys of a system\n\n" +
		"A system of real models, for `tokenrouter generate` and what else runs them, is a TOML file too.\n\n")
	keyTable(&b, SystemKeys)
	return []byte(b.String())
}

func keyTable(b *strings.Builder, keys []Key) {
	b.WriteString("| key | type | where | meaning |\n|---|---|---|---|\n")
	for _, k := range keys {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", k.Path, strings.ReplaceAll(k.Type, "|", "\\|"), k.When, k.Doc)
	}
}
