// Package quantile holds the percentiles, streaming histograms and confidence intervals of every
// metric, simulated or measured.
//
// One rule for percentiles, RuleName: the p-quantile of n values is the value of rank ceil(p*n) in
// ascending order (rank 1 for p = 0). It is always one of the values, so the p99 of 1..100 is 99 and
// the p99 of a single value is that value. No value: no percentile. TailReliable says when a tail
// rests on too few values to be quoted without a mark.
//
//   - Sample takes whole numbers (nanoseconds, counts) one at a time in constant memory.
//   - Summary takes a slice of floats, such as one figure a request.
//   - MeanCI is a mean over seeds with its Student-t confidence interval.
package quantile
