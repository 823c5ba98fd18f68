// Package perfetto turns the turns of a run into a trace that ui.perfetto.dev and chrome://tracing open: the
// launches of every model, what every request waited for, and its hand-offs from model to model.
//
// The trace has one process for each model, with its launches on one track and the number of requests in
// them; one process for the requests, with a track for each: a slice while it waits for a model ("wait
// small"), runs on it ("small"), or is between nodes ("link to large"); and a counter of live requests.
// Arrows lead from the launch that routed a request to the launch that took it over. The format is the JSON
// of Chrome's Trace Event Format; times are microseconds with three decimals, so that no nanosecond is
// lost.
package perfetto
