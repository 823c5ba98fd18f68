package exec

import (
	"slices"

	"tokenrouter/core"
)

// Timing adds up where the time of a model's passes went. What is not inside the device is bookkeeping: the
// way from the event that made a pass due (the model's own last completion if the pass was launched in the
// turn that took it, else the last event of the turn) over inbox, turn and channel to the device, and what
// the device does around the work itself.
type Timing struct {
	Passes   int64
	DueNs    core.Time // from when they were due to the call of Device.Step
	StepNs   core.Time // within Device.Step
	DeviceNs core.Time // of that, the work itself (Pass.DeviceNs)
}

// Bookkeeping is the share of all the time that was not inside the device; 0 without passes.
func (t Timing) Bookkeeping() float64 {
	if t.DueNs+t.StepNs == 0 {
		return 0
	}
	return float64(t.DueNs+t.StepNs-t.DeviceNs) / float64(t.DueNs+t.StepNs)
}

// Timings returns the timing of each model so far, zero for those of other nodes. It may be called from the
// loop's goroutine (Config.Observe, a Sink), and once Run has returned.
func (l *Loop) Timings() []Timing { return slices.Clone(l.timings) }

// clock adds up the pass of the runner that ended at the time.
func (t *Timing) clock(r *runner, ended core.Time) {
	t.Passes++
	t.DueNs += r.started - r.due
	t.StepNs += ended - r.started
	if r.pass.DeviceNs > 0 {
		t.DeviceNs += r.pass.DeviceNs
	} else {
		t.DeviceNs += ended - r.started
	}
}
