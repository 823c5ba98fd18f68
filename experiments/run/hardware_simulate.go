package run

import (
	"context"
	"fmt"
	"slices"

	"tokenrouter/core/meter"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
)

// compare adds to a measured job what it is compared with, by the step times of its point: the chain's
// throughput, that of the same requests in the simulator, and theirs once more with step times scaled to the
// means that were measured. Thresholds are those under which it was measured.
func (r *runner) compare(ctx context.Context, j job, d *part) error {
	p, err := r.asMeasured(ctx, j.point)
	if err != nil {
		return err
	}
	policy, _, err := r.plans.policy(ctx, p)
	if err != nil {
		return err
	}
	predicted, note, err := r.plans.predict(ctx, p)
	if err != nil {
		return err
	}
	c, mc, err := world(p, policy, d.Seed)
	if err != nil {
		return err
	}
	c.Core = r.real.core(p, policy)
	simulated, tallies, err := again(ctx, p, c, mc)
	if err != nil {
		return err
	}
	c.Latency = slices.Clone(c.Latency)
	for i := range c.Latency {
		mean, measured := stepMean(simulated, i), d.Values[result.Slug(p.Models[i].Name)+"_step_mean_ms"]*1e6
		if mean > 0 && measured > 0 {
			c.Latency[i] = spec.Scaled(c.Latency[i], measured/mean)
		}
		if mean > 0 {
			d.Values["simulated_"+result.Slug(p.Models[i].Name)+"_step_mean_ms"] = mean / 1e6
		}
	}
	rescaled, _, err := again(ctx, p, c, mc)
	if err != nil {
		return err
	}
	measured := &meter.Summary{ThroughputTokS: d.Values["throughput_tok_s"]}
	beside(d.Values, "predicted", measured, &meter.Summary{ThroughputTokS: predicted})
	beside(d.Values, "simulated", measured, simulated)
	beside(d.Values, "rescaled", measured, rescaled)
	var says []string
	if note != "" {
		says = append(says, note)
	}
	for i := range tallies {
		if w := tallies[i].Warning(p.Models[i].Name, p.Models[i].Latency); w != "" {
			says = append(says, w)
		}
	}
	d.Warnings = append(says, d.Warnings...)
	return nil
}

// asMeasured is a point with the thresholds that its jobs had: where they were planned, that was by the first
// round of the calibration.
func (r *runner) asMeasured(ctx context.Context, p *spec.Point) (*spec.Point, error) {
	if !p.Policy.Planned {
		return p, nil
	}
	fixed := *p
	table, err := r.plans.thresholds(ctx, &r.begun.Points[p.Index])
	fixed.Policy.Planned, fixed.Policy.Table = false, table
	return &fixed, err
}

// again simulates the requests of a world.
func again(ctx context.Context, p *spec.Point, c sim.Config, mc meter.Config) (*meter.Summary,
	[]latency.Tally, error) {
	var err error
	c.Meter = meter.New(mc)
	if c.Workload, err = p.Workload.Source(c.Seed); err != nil {
		return nil, nil, err
	}
	simulated, err := sim.Run(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("simulation: %w", err)
	}
	summary := c.Meter.Summary()
	return &summary, simulated.Tallies, nil
}
