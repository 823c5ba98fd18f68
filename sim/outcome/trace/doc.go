// Package trace has the file format of recorded routing runs: what every forward pass of every
// request gave. outcome.Recorded plays such a file back; a Recorder writes one from what a
// driver saw; a Reader and a Writer stream it.
//
// # Format, version 1
//
// UTF-8 text, one JSON object a line, no empty lines. A name that ends in .gz is gzip. Unknown
// and repeated keys are errors. The first line is the header:
//
//	{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],"signals":[["score"],[]]}
//
// models: 1 to 8 names; models are meant by their index from here on. signals: for each model
// the list of what its passes left, of token, logprob, top_prob, score, entropy, draw, eos
// (fields of core.Result), in this order. What made the trace may follow: weights, a hash a model; tokenizer
// and router, a hash each; algorithm, its name in specs. A trace of another pair is refused by these.
// Every other line is a request:
//
//		{"id":7,"arrival_ms":12.5,"prompt_tokens":30,"output_tokens":4,"end":"eos","path":"000x10",
//		 "results":[{"score":[0.1,0.2,0.9,0.1]},{}]}
//
//	  - id: a whole number; ids rise from line to line.
//	  - arrival_ms: decimal, at most 6 decimal places (whole nanoseconds), never falling; 0 if
//	    absent.
//	  - prompt_tokens: at least 1.
//	  - output_tokens: length of the answer, at least 1. May be absent if there is a path.
//	  - tokens_max: the most tokens that the answer could have, which says how much KV is kept for it.
//	    May be absent.
//	  - end: "eos" (also if absent): the last token was an end-of-sequence token. "length": the
//	    run was cut there.
//	  - right: true or false, how the answer was judged. May be absent.
//	  - path: the forward passes that sampled a token, in order: a digit, the model, and an x
//	    after it if that token was dropped and another model made it again. The passes without
//	    x make the output_tokens tokens of the answer; the last one has no x.
//	  - results: for each model an object with, for each of its signals, an array of
//	    output_tokens values, one a position of the answer; null where the model was not run.
//	    null instead of an object: the model was never run. eos is true or false, the others
//	    are numbers.
//
// A request has a path, or results, or both. A path replays what happened, with
// route.Recorded. Results replay under another policy or threshold of the same algorithm,
// where every pass was recorded; they cannot say what a model would have sampled after
// another token than the recorded one.
//
// A file whose writing was interrupted ends within a line; all requests before are whole (ErrCut).
//
// # Steps
//
// Beside a trace lie the steps of the run (StepsPath), as CSV with a header: model, start_ms, step_ms,
// beside_ms, rows, heads, returns, fresh_tokens, context_tokens; see Step. Times are the machine's, so this
// file is another every time, while the trace is the same for equal decisions: requests of a closed loop have
// no arrival.
package trace
