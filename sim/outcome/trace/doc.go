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
// (fields of core.Result), in this order. Every other line is a request:
//
//		{"id":7,"arrival_ms":12.5,"prompt_tokens":30,"output_tokens":4,"end":"eos","path":"000x10",
//		 "results":[{"score":[0.1,0.2,0.9,0.1]},{}]}
//
//	  - id: a whole number; ids rise from line to line.
//	  - arrival_ms: decimal, at most 6 decimal places (whole nanoseconds), never falling; 0 if
//	    absent.
//	  - prompt_tokens: at least 1.
//	  - output_tokens: length of the answer, at least 1. May be absent if there is a path.
//	  - end: "eos" (also if absent): the last token was an end-of-sequence token. "length": the
//	    run was cut there.
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
package trace
