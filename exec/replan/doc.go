// Package replan plans the thresholds of a running system from what it measures: how often a request goes
// from one model to another, and how long steps take. A Planner is the scheduler's policy and hears of its
// turns; in a goroutine of its own it has the throughput model (core/chain) find the best thresholds for each
// number of live requests that comes up, and finds them again when the measured values have moved.
//
// It plans for a steady state of the present traffic. The routing that it plans with is that of requests
// which may move; those for one model ask no algorithm and are not counted, though they share its steps. Step
// times are as seen by the scheduler, so that what models cost each other while they run at the same time is
// in them; passes that feed prompts are left out.
package replan
