package twin

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome/trace"
)

// Machine is how long steps take: what sim.Config has of it.
type Machine struct {
	Latency []latency.Model // a model each
	Beside  []float64
}

// Means is a machine whose steps all take what those of their shape took in the mean.
func Means(laws []Law) (Machine, error) {
	var m Machine
	for i := range laws {
		model, err := latency.NewAffine(laws[i].Coefficients)
		if err != nil {
			return m, fmt.Errorf("law of model %d: %w", i, err)
		}
		m.Latency, m.Beside = append(m.Latency, model), append(m.Beside, laws[i].Beside)
	}
	return m, nil
}

// InOrder is a machine that was slow and quick when the recorded one was: the nth launch of a model takes as
// long as its nth recorded step did, scaled by the law where it is of another shape. What models do to each
// other is in these times. It serves one run.
func InOrder(laws []Law, steps []trace.Step) (Machine, error) {
	m, err := Means(laws)
	if err != nil {
		return m, err
	}
	played := make([]*inOrder, len(laws))
	for i := range laws {
		played[i] = &inOrder{law: m.Latency[i]}
		m.Latency[i] = played[i]
	}
	m.Beside = nil
	for i := range steps {
		s := &steps[i]
		to := played[s.Model]
		ns, _ := to.law.StepNs(shape(s))
		to.ratios = append(to.ratios, float64(s.Ns)/float64(ns))
	}
	return m, nil
}

// inOrder plays how far steps were from a law. Launches after the last recorded one keep to the law.
type inOrder struct {
	law    latency.Model
	ratios []float64
	next   int
}

// StepNs implements latency.Model.
func (o *inOrder) StepNs(s latency.Shape) (ns int64, inRange bool) {
	ns, inRange = o.law.StepNs(s)
	if ns < 0 || o.next >= len(o.ratios) {
		return ns, inRange
	}
	stretched := float64(ns)*o.ratios[o.next] + 0.5
	o.next++
	if stretched > float64(latency.MaxStepNs) {
		return latency.Refused, false
	}
	return max(core.Time(stretched), 1), inRange
}

// WithBookkeeping adds to calibrated step times, which are those of devices alone, what a run measured around
// each pass in the mean: the way from the event that made it due over inbox, turn and channel to the device
// and back.
func WithBookkeeping(models []latency.Model, timings []exec.Timing) ([]latency.Model, error) {
	out := make([]latency.Model, len(models))
	for i, model := range models {
		t := timings[i]
		aroundNs := (t.DueNs + t.StepNs - t.DeviceNs) / max(t.Passes, 1)
		var err error
		if out[i], err = latency.NewOverhead(model, latency.Host{StepNs: max(aroundNs, 0)}); err != nil {
			return nil, fmt.Errorf("model %d: %w", i, err)
		}
	}
	return out, nil
}
