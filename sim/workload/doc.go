// Package workload generates the requests of a run, one at a time.
//
// A Source is a stream, so its memory does not depend on how many requests it holds. Kinds:
//
//   - NewClosed: a closed loop; every arrival is at 0 and the driver admits the next request when one
//     ends, keeping as many in flight as it has workers.
//   - NewPoisson, NewGamma: an open loop with random gaps between arrivals.
//   - NewTrace, OpenTrace: arrivals and lengths from a CSV or JSONL file; TraceWriter writes one.
//
// Lengths and gaps are keyed by seed and request id (package keyed): they do not depend on the order
// of calls, on each other, or on the policy that serves the requests.
package workload
