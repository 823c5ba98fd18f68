// Package result is what a run of an experiment leaves behind, and how it is read again.
//
// A results folder holds:
//
//	spec.toml         the spec with all that it extends
//	environment.json  commit, Go version, processor, module versions, hashes of the models' files: the only
//	                  file that may differ between machines
//	summary.csv       a row a point and replicate (row = seed), then a row a point over all replicates
//	                  (row = mean) with 95 % confidence intervals
//	summary.json      the same, with the metric dictionary, figures and reference series
//	metrics.md        the metric dictionary for people
//	requests.parquet  a row a request
//	*.png, *.svg      the figures
//	parts/            finished jobs of a run that is not finished, for --resume and shards
//
// The package knows results, not the world that made them: it imports no simulator.
package result
