// Package chain computes the exact steady throughput of delayed batching across models that exchange
// requests: the model of TokenRouter, arXiv 2610.12242, section 5 and appendix D, for any number of models.
//
// # Model
//
// N requests circulate for ever among M models. A state is what is seen when batches complete: for each
// model the requests that wait (k), the rows that run (b) and the residual time of the running batch (r).
// Time is in whole ticks of a quantum. The chain holds until the smallest residual time; all batches with
// that residual complete together. Completions come first: each request of a completed batch of model i
// goes to model j with probability Routing[i][j] on its own, which commits Commit[i][j] tokens. Starts come
// second: every idle model with at least as many requests waiting as its threshold takes its whole queue.
// At the beginning all requests wait at Model.Start. A step time may depend on the number of rows; the
// residual time then starts from that of the batch. Models may slow each other while they run at the same
// time (Model.Beside).
//
// Throughput is the mean number of tokens committed per transition over the mean holding time, under the
// stationary law. A set of thresholds B is feasible if sum(B[i]-1) < N; then some batch always runs.
//
// # Method
//
// Only states that can be reached are looked at, numbered breadth first. Strongly connected components give
// the closed classes; each has one stationary law, whether it has a period or not, and no power iteration
// is used that a period would upset. Several closed classes are weighed by the chance to end in them,
// computed by the same elimination as below on the chain whose classes lead back to the start.
//
// A closed class is solved in four steps.
//
//  1. Cut. Between launches residual times only fall, so cycles of the chain are rare in kind: most pass
//     through states at which all models start together. Such states, then phases (vectors of residual
//     times), then states at which the highest running model has just started, are cut until no cycle is left
//     but loops of one state. R2R with constant step times has a cut of N+1 states, out of 228,265 at N = 64.
//  2. Watch. Seen only at the cut, the chain is again a Markov chain. Its matrix comes from one pass over the
//     other states, against time.
//  3. Eliminate. Its stationary vector comes from the elimination of Grassmann, Taksar and Heyman.
//  4. Spread. One pass along time gives the visits to all states.
//
// Steps 2 to 4 (Method Elimination) solve linear equations; nothing has to converge. They add, multiply and
// divide numbers that are not negative and never subtract, so every probability, however small, keeps its
// leading digits, and a nearly decomposable chain is solved as well as any other. The roundings on the way
// are counted and bound the relative error, whatever the condition of the chain.
//
// If the cut is large (elimination would take more than 4e8 multiplications), step 3 is done by GMRES
// without forming the matrix (Method Iteration). This happens with three and more models and with step
// times that depend on the batch. If its result cannot be proven to 1e-9, elimination follows, up to a cut
// of 8,000 states; beyond, a result proven to 1e-6 is returned and a worse one refused (ErrNotProven).
//
// # Proof
//
// After either method the throughput is enclosed once more by a test function: for any function h of the
// states, the smallest and the largest drift (reward + expected change of h) per holding time enclose the
// throughput of an irreducible chain (Odoni; Schweitzer). With h close to the bias of the chain the
// interval is narrow; its own rounding errors are added to it. Solution.ErrorBound is the better of the two
// bounds, mostly below 1e-11. It is a bound to first order in 2^-53 for the model as given after the
// rounding of step times that Solution.Rounding reports. Under Iteration it covers the throughput alone;
// the other figures rest on a residual of about 1e-14. Transitions with a probability below 1e-290 are left
// out.
package chain
