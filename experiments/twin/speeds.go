package twin

import (
	"context"

	"tokenrouter/core/meter"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome/trace"
)

// Speeds are the tokens a second of a recorded run in the simulator, by the step times that it is given. What
// each misses of the measured rate has causes of its own.
type Speeds struct {
	// Given is with the step times that the caller has, such as calibrated ones: it misses what the machine did
	// otherwise in the run than when they were measured.
	Given meter.Summary
	// Means is with the law that the run's own steps follow in the mean: it misses that steps of one shape
	// differ.
	Means meter.Summary
	// InOrder is with the run's own steps one after another: it misses what the scheduler did otherwise in the
	// simulator.
	InOrder meter.Summary
	// Result is of Given.
	sim.Result
}

// Simulate runs the twins of a recorded run. c is as for Play, with the step times for Given; mc is the
// meter's.
func Simulate(ctx context.Context, path string, want *trace.Header, c sim.Config, mc meter.Config,
) (s Speeds, err error) {
	mc.OnRequest = nil
	play := func(m Machine) (meter.Summary, sim.Result, error) {
		c.Latency, c.Beside, c.Meter = m.Latency, m.Beside, meter.New(mc)
		played, err := Play(ctx, path, want, c)
		if err != nil {
			return meter.Summary{}, played, err
		}
		return c.Meter.Summary(), played, nil
	}
	if s.Given, s.Result, err = play(Machine{c.Latency, c.Beside}); err != nil {
		return s, err
	}
	models := make([]string, len(c.Core.Models))
	for i := range models {
		models[i] = c.Core.Models[i].Name
	}
	steps, err := trace.ReadSteps(trace.StepsPath(path), models)
	if err != nil {
		return s, err
	}
	laws, err := Laws(steps, len(models))
	if err != nil {
		return s, err
	}
	means, err := Means(laws)
	if err != nil {
		return s, err
	}
	if s.Means, _, err = play(means); err != nil {
		return s, err
	}
	inOrder, err := InOrder(laws, steps)
	if err != nil {
		return s, err
	}
	s.InOrder, _, err = play(inOrder)
	return s, err
}
