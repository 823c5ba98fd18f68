// Package exec drives the scheduler core in real time: it waits for events, drains its inbox,
// calls Turn once, and hands each launch to its device and each hand-off to its link. It
// holds no scheduling decision; the simulator (package sim) drives the same core, and with
// devices that follow the same script both write the same turn log.
//
// One Loop is one node. Its devices run each in a goroutine of their own, one pass at a time;
// everything else happens in the goroutine of Loop.Run.
package exec
