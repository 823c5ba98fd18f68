package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/sim"
)

// simulator is the kind of the world that is no hardware.
const simulator = "sim"

// hardware is a system with its models loaded, which all jobs use one after another.
type hardware struct {
	backend  native.Backend
	plan     *system.Plan
	system   *system.System
	watchdog *watchdog // nil: jobs are not probed
	// freshMax bounds the tokens fed in a step whose time is measured: more than come up in a steady state
	// need not be known.
	freshMax int
	row      int // steps that the first model makes in a row, for calibrate.Plan
}

// onHardware makes a runner one for real models. It refuses what only simulated points can do.
func (r *runner) onHardware(o *Options) error {
	switch {
	case r.spec.Hardware == nil:
		return fmt.Errorf("spec %s: no [system] for the backend %s: want system.file", r.spec.File,
			o.Backend.Kind())
	case o.Workers > 1:
		return fmt.Errorf("%d workers: measured points run one at a time", o.Workers)
	case o.Shards > 1:
		return fmt.Errorf("shard %d of %d: measured points all run on one machine", o.Shard, o.Shards)
	}
	r.backend = o.Backend.Kind()
	r.metrics = result.MeasuredMetricsOf(r.spec.ModelNames())
	if r.spec.Answered {
		r.metrics = result.TaskMetricsOf(r.spec.ModelNames())
	}
	return r.hashModels(o)
}

// prepare loads the models and has a first round of step times.
func (r *runner) prepare(ctx context.Context, o *Options) (err error) {
	say := func(what string) {
		if o.Doing != nil {
			o.Doing(what)
		}
	}
	say("loading models")
	if r.real, err = openHardware(ctx, r.spec, o.Backend); err != nil {
		return err
	}
	r.real.watchdog = r.real.newWatchdog(r.spec.Hardware.Probe)
	if r.rounds, err = r.newRounds(o); err == nil && len(r.rounds.speeds) == 0 {
		say("measuring step times")
		err = r.rounds.measure(ctx)
	}
	if err == nil {
		r.begun, err = r.rounds.calibrated(1)
		r.spec = r.begun
	}
	if err != nil {
		return errors.Join(err, r.real.close())
	}
	return nil
}

// openHardware loads the models of a spec with room for its largest point.
func openHardware(ctx context.Context, s *spec.Spec, backend native.Backend) (h *hardware, err error) {
	y := *s.Hardware.System
	y.Router, y.Policy, y.Concurrency, y.ContextMax = spec.Router{}, spec.Policy{Kind: "eager"}, 1, 2
	y.Models = slices.Clone(y.Models)
	for i := range y.Models {
		y.Models[i].RowsMax = 0 // the points say it
	}
	choice := system.Choice{Backend: backend}
	for i := range s.Points {
		p := &s.Points[i]
		y.Concurrency, y.ContextMax = max(y.Concurrency, p.Concurrency), max(y.ContextMax, p.ContextMax)
		choice.Algorithm = p.Algorithm
	}
	if choice.Algorithm == nil { // one model
		y.Router.Algorithm = "small"
	}
	y.Queue = backlog(y.Concurrency) - y.Concurrency
	y.Budget = y.Concurrency * y.ContextMax
	const freshMax = 128
	h = &hardware{backend: backend, freshMax: freshMax, row: rowOf(s)}
	if h.plan, err = system.Prepare(&y, choice); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.plan.Remote() {
		return nil, fmt.Errorf("%s: step times are measured of models that run here, want none with an engine",
			s.Hardware.System.File)
	}
	c := &h.plan.Core
	if need := pagesOf(y.ContextMax, c.PageTokens) * y.Concurrency; c.Models[0].Pages < need {
		return nil, fmt.Errorf("memory has room for %d KV pages a model, want %d for %d requests of %d tokens",
			c.Models[0].Pages, need, y.Concurrency, y.ContextMax)
	}
	h.system, err = h.plan.Open(ctx, system.Run{})
	return h, err
}

// rowOf is how many steps the first model makes in a row, in the mean over the points that say so: requests
// leave it with the probability that the router gives.
func rowOf(s *spec.Spec) int {
	sum, n := 0.0, 0.0
	for i := range s.Points {
		if p := &s.Points[i]; p.Routing != nil {
			sum, n = sum+1-p.Routing[0][0], n+1
		}
	}
	return calibrate.RowOf(sum / n)
}

func (h *hardware) close() error {
	if h == nil {
		return nil
	}
	if h.system != nil {
		h.system.Close()
	}
	return h.plan.Close()
}

// backlog is how many requests a closed loop of n workers has with the scheduler: who leaves is replaced in
// the same turn.
func backlog(n int) int { return 4 * n }

func pagesOf(tokens, pageTokens int) int { return (tokens + pageTokens - 1) / pageTokens }

// core is the scheduler's configuration of a point: that of the spec, with the pages of the devices.
func (h *hardware) core(p *spec.Point, policy core.Policy) core.Config {
	c := configure(p, policy)
	c.PageTokens = h.plan.Core.PageTokens
	for i := range c.Models {
		c.Models[i].Pages = pagesOf(p.ContextMax, c.PageTokens) * p.Concurrency
	}
	return c
}

// measured runs a world's requests on the hardware, between two probes.
func (h *hardware) measured(ctx context.Context, p *spec.Point, c sim.Config) (ran, error) {
	l, err := h.newLoop(p, &c)
	if err != nil {
		return ran{}, err
	}
	out := ran{try: &try{}}
	if out.try.Before, err = h.watchdog.now(ctx); err != nil {
		return ran{}, err
	}
	then := processorTimeNow()
	if err := l.run(ctx); err != nil {
		return ran{}, err
	}
	out.others = othersSince(then)
	if out.try.After, err = h.watchdog.now(ctx); err != nil {
		return ran{}, err
	}
	s := l.loop.Scheduler()
	out.Result = sim.Result{End: s.Now(), Counters: []core.Counters{s.Counters()}}
	out.steps = l.steps
	for _, t := range l.loop.Timings() {
		out.bookkeeping = append(out.bookkeeping, t.Bookkeeping())
	}
	return out, nil
}

// stepMean is the mean time of a launch of a model in the window, ns; 0 without launches.
func stepMean(s *meter.Summary, model int) float64 {
	m := &s.Models[model]
	if m.Launches == 0 {
		return 0
	}
	return m.Utilisation * float64(s.ClosedNs-s.OpenedNs) / float64(m.Launches)
}

// ran is what running a job left besides its meter.
type ran struct {
	sim.Result // Tallies are of the simulation
	// On hardware, all but simulated, which is of answers: of what the simulator played of them.
	simulated   *meter.Summary
	bookkeeping []float64 // share of each model's time that was not inside its device
	try         *try      // nil: not probed, nor are others and steps known
	others      float64   // share of the processors' time that went to others
	steps       []spread
}

// add adds the metrics that only jobs on hardware have.
func (r *ran) add(p *spec.Point, s *meter.Summary, v map[string]float64) {
	if r.bookkeeping == nil {
		return
	}
	sides := map[string]*meter.Summary{"": s}
	if r.simulated != nil {
		beside(v, "simulated", s, r.simulated)
		sides["simulated_"] = r.simulated
	}
	if r.try != nil && !math.IsNaN(r.others) {
		v["others_share"] = r.others
	}
	for i := range s.Models {
		name := result.Slug(p.Models[i].Name) + "_"
		v[name+"bookkeeping"] = r.bookkeeping[i]
		if r.steps != nil {
			v[name+"step_spread"] = r.steps[i].deviation()
		}
		for prefix, of := range sides {
			if mean := stepMean(of, i); mean > 0 {
				v[prefix+name+"step_mean_ms"] = mean / 1e6
			}
		}
	}
}

// beside adds a rate that was simulated, and how far the measured one is from it, where there were windows.
func beside(v map[string]float64, name string, measured, simulated *meter.Summary) {
	if measured.ThroughputTokS > 0 && simulated.ThroughputTokS > 0 {
		v[name+"_tok_s"] = simulated.ThroughputTokS
		v[name+"_error"] = measured.ThroughputTokS/simulated.ThroughputTokS - 1
	}
}
