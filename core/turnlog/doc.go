// Package turnlog writes the turns of a run to a file, and reads, replays, compares and draws
// them. A core.Scheduler is a function of its configuration and its turns, so the log is the
// run: Replay gives every action again, and two worlds that drive the core alike write the
// same bytes.
//
// # Format, version 1
//
// UTF-8 text, one JSON object a line, in a fixed order of keys; a name that ends in .gz is
// gzip. Times are nanoseconds. A key whose value is 0, false or empty is left out, except where
// 0 is a name (id, slot, model, node, from, to, now). Floats have the shortest digits that read
// back to the same bits; "NaN", "Infinity" and "-Infinity" are strings. A Reader takes keys in
// any order, but no unknown and no repeated ones.
//
// Line 1:
//
//	{"format":"tokenrouter-turnlog","version":1,"nodes":1}
//
// A line a node, by rising node, with its core.Config. A policy is step-sync, model-sync, eager
// or delayed (with thresholds, a row for each N from 1, and max_wait_ns); an algorithm is r2r,
// citer, co-llm or r-stitch (with threshold), me (weights), matrix (routing, commit) or
// recorded. Others have a "type", which is their Go type, instead of a "name".
//
//	{"node":0,"models":[{"name":"slm","node":0,"pages":64}],"algorithm":{"name":"r2r",
//	 "threshold":0.5},"policy":{"name":"eager"},"admission":"reserve","requests":8,...}
//
// Then a line a turn:
//
//	{"turn":2,"node":0,"now":1000,"in":[{"event":"done","model":0,"results":[{"token":5}]}],
//	 "out":{"tokens":[[0,0,0,5,0,0]],"launches":[{"model":0,"seq":2,"fresh":1,"context":1,
//	 "rows":[[0,0,0,1,1,1,0,1000]]}]}}
//
// turn counts from 1 over all nodes. Events stand in the scheduler's own order
// (core.CompareEvents). Their other keys are the fields of core.Submission, core.Handoff,
// core.News and core.Event. Short records are arrays:
//
//	admits  id, slot, arrival, guest
//	tokens  id, slot, position, token, logprob, model
//	grants  model, slot, index, page
//	rows    id, slot, gen, start, fresh, head, returned, since
//
// with 1 for true. leaves, launches, sends and news are objects.
package turnlog
