// Package run runs a spec: every point in every replicate, on some workers, into a results folder.
//
// A job is a point in a replicate. What it gives depends on the spec and its own name only, so that the bytes
// of the results do not depend on the number of workers, on shards, or on an interruption. A finished job is
// written at once, whole or not at all; Resume continues with those that are missing.
package run
