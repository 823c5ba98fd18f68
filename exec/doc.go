// Package exec drives the scheduler core in real time: it waits for events, drains its inbox,
// calls Turn once, and hands each launch to its device and each hand-off to its link. It
// holds no scheduling decision; the simulator (package sim) drives the same core, and with
// devices and links that take the same times both write the same turn logs, byte for byte
// (TestConformance).
//
// One Loop is one node. Its devices run each in a goroutine of their own, one pass at a time;
// everything else happens in the goroutine of Loop.Run. Every event is stamped when it happens,
// not when the loop gets to it. Config.Gather decides which events make one turn.
package exec
