// Package core makes every scheduling decision of the system: admission, batching, hand-off
// between models, KV memory. It is passive. A driver, the simulator or the real executor,
// calls Scheduler.Turn with the set of things that happened; the Scheduler folds them in,
// plans once, and writes down what must be done in Actions. It has no clock, no randomness,
// no goroutine, no I/O and no log, and imports the standard library only.
//
// # Words
//
// A step is a forward pass, a turn a call of Turn. A launch is a batch given to a model, a
// row a request in it. A request's state at a model is a seat: absent, queued, running or
// pending. A routed request leaves a pending seat behind: pages and count of tokens in KV
// are kept, and its return is one row with a few fresh tokens. A hand-off carries token ids
// only: the suffix that the target has not seen. Its anchor is the number of tokens that the
// target knows, its own last one included, which was sampled there and never fed: that one is
// the first that a return feeds. A sampled token is committed, and then never retracted, or a
// draft that is dropped, and then made again by the peer. N is the number of live requests of
// the whole system.
//
// A call is what an engine has between one dispatch of a request and its answer: a visit, from
// a hand-off to the next, or every token by itself (Model.TokenCalls). A model that forgets
// lets go of a seat's pages when a call ends: nothing is left to resume. A call may take time to
// get to its model (Model.DispatchNs), and a request to its first call (Config.FrontNs): meanwhile
// the seat is coming, and occupies nobody.
//
// # The order of things
//
// A turn is a set of events. They are folded in by kind: completions (last model first),
// hand-offs that arrived, news of other nodes, cancellations, submissions, each but the first
// in order of request ID; a cancellation of a request that is submitted in the same turn
// comes after it. The rows of a completed batch are taken in their order. Then calls that have
// been on their way long enough join their queues, by model and by the time they were due. Then waiting
// requests are admitted in order, and then every idle model with a queue starts if the Policy
// says so, taking its queue in order. So at one instant completions come before starts, as in
// the slot model of the throughput theory (TokenRouter, arXiv 2610.12242, appendix D).
//
// Under a Barrier (StepSync, ModelSync) the results of launches that run together are taken
// when the last of them has ended: until then nobody sees a token of that step.
//
// # Nodes
//
// A Scheduler owns the models of its node. Node 0 is the front: it admits all requests and
// reports their ends. Links keep the order of what one node sends to another, and may take
// any time. Every end is told to all; each node tells the front when it has freed what it
// held, and the front never admits more than a node has slots for. IDs must not be used again
// while anything of the first use may be under way.
//
// # Invariants
//
// Check verifies those that one state shows, and names the first that is broken; tests carry
// the numbers.
//
//	I1   Submitted = finished + rejected + cancelled + failed + live + waiting.
//	I2   Pages held + free = pool; a page that several seats hold is counted so often, and
//	     free when the count is 0. A request gets all the pages it needs or nothing changes.
//	I3   live > 0 implies a running model, a hand-off in flight, or Actions.Wake set.
//	I4   A live request is queued, running or coming at exactly one model, or away.
//	I5   One launch per model at a time.
//	I6   A slot is used again only when no launch names it, with another generation; results
//	     for a request that is gone are dropped and counted.
//	I7   Tokens in KV <= tokens known; a hand-off's anchor is what its target has.
//	I8   A committed token is never retracted; a dropped draft is never committed, and is in
//	     nobody's KV.
//	I9   A turn is a set: the order of its events does not matter.
//	I10  The same configuration and turns give the same actions, byte for byte.
//	I11  Nothing in core can see a future token or the natural length of an answer.
//	I12  Nothing is allocated after New, once the slices of Actions have grown.
package core
