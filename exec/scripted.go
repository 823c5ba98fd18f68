package exec

import (
	"time"

	"tokenrouter/core"
)

// Scripted is a device that takes StepNs for a launch and gives what Fill says: a stand-in
// for hardware, in tests and dry runs. A pass ends StepNs after the turn that launched it,
// not after the device got to it, so that with a virtual clock it is exact to the nanosecond.
type Scripted struct {
	Now    func() core.Time // Loop.Now
	StepNs func(core.Launch) core.Time
	Fill   func(core.Launch, []core.Result) error
}

// Step waits until the pass is due and fills its results.
func (d *Scripted) Step(p *Pass) error {
	time.Sleep(time.Duration(p.At + d.StepNs(p.Launch) - d.Now()))
	return d.Fill(p.Launch, p.Results)
}
