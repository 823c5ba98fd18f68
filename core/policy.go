package core

import (
	"fmt"
	"math"
)

// Policy decides when an idle model starts a batch; what it then takes (all its queue, in
// order, within pages, rows and tokens) is the Scheduler's. A policy of one's own is a type
// with this one method; see ExamplePolicy.
type Policy interface {
	// Start is asked in every turn for every idle model with a queue, in model order. All
	// models see the same View: launches of this turn are not in it yet.
	Start(m int, v *View) bool
}

// Barrier marks a Policy that looks at all models, so that one Scheduler must own them all.
// The results of launches that run together are taken when the last of them has ended.
type Barrier interface{ Barrier() }

// View is what a Policy may look at.
type View struct {
	s      *Scheduler
	now    Time
	busy   uint32 // bit m: model m was running when planning began
	queues uint32 // bit m: model m had a queue when planning began
}

// Now is the time of the turn.
func (v *View) Now() Time { return v.now }

// Live is N, the number of live requests of the whole system.
func (v *View) Live() int { return v.s.live }

// Models is the number of models, owned or not.
func (v *View) Models() int { return len(v.s.models) }

// Queued is the number of requests that waited at model m of this node when planning began.
func (v *View) Queued(m int) int {
	return len(v.s.models[m].queue)
}

// Busy says whether model m of this node was running when planning began.
func (v *View) Busy(m int) bool { return v.busy>>m&1 != 0 }

// AnyBusy says whether any model of this node was running when planning began.
func (v *View) AnyBusy() bool { return v.busy != 0 }

// OldestSince is when the first request that waited at m when planning began joined the
// queue; Now if none did.
func (v *View) OldestSince(m int) Time {
	queue := v.s.models[m].queue
	if len(queue) == 0 {
		return v.now
	}
	return queue[0].since
}

// Begun says whether a request that waited at m when planning began has been fed a part of
// its suffix and waits to be fed the rest, under a token budget.
func (v *View) Begun(m int) bool {
	return v.s.begun(m)
}

// WakeBy asks for a turn no later than t. It panics unless t lies after Now: the driver
// would come back at once, for ever.
func (v *View) WakeBy(t Time) {
	if t <= v.now {
		panic(fmt.Sprintf("core: WakeBy(%d) at %d", t, v.now))
	}
	v.s.wakeBy(t)
}

// StepSync starts all models with a queue together, once all have finished: a barrier after
// every step.
type StepSync struct{}

// Barrier marks StepSync as a Barrier.
func (StepSync) Barrier() {}

// Start reports whether no model is running.
func (StepSync) Start(_ int, v *View) bool { return !v.AnyBusy() }

// ModelSync runs one model at a time: the last model that anyone waits for.
type ModelSync struct{}

// Barrier marks ModelSync as a Barrier.
func (ModelSync) Barrier() {}

// Start reports whether nothing runs and nobody waits for a later model.
func (ModelSync) Start(m int, v *View) bool { return !v.AnyBusy() && v.queues>>(m+1) == 0 }

// Eager starts a model as soon as it is idle and anyone waits.
type Eager struct{}

// Start is always true.
func (Eager) Start(int, *View) bool { return true }

// Delayed starts model m once at least B_m requests wait for it, where B belongs to the
// live N (TokenRouter, section 3.3), or once the oldest has waited MaxWait. A batch that has
// started goes on: the chunks of a long suffix do not wait for the threshold again.
type Delayed struct {
	Thresholds Thresholds
	MaxWait    Time // 0: no limit
}

// Start reports whether the threshold in force, or the maximum wait, is reached.
func (d Delayed) Start(m int, v *View) bool {
	if v.Queued(m) >= d.Thresholds.At(v.Live(), m) || v.Begun(m) {
		return true
	}
	if d.MaxWait <= 0 {
		return false
	}
	since := v.OldestSince(m)
	if v.now-since >= d.MaxWait {
		return true
	}
	if d.MaxWait <= math.MaxInt64-since {
		v.WakeBy(since + d.MaxWait)
	}
	return false
}
