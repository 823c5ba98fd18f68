package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
)

// Files of a calibration in a results folder; the samples lie beside it (calibrate.SamplesPath).
const calibrationFile = "calibration.toml"

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
	return nil
}

// prepare loads the models and has their step times.
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
	r.spec, err = r.calibrated(ctx, o.Resume, say)
	if err == nil {
		err = r.real.watchdog.refer(ctx, r.dir, o.Resume)
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

// measured runs a world's requests on the hardware, between two probes, and then in the simulator: with the
// calibrated step times, and once more with the means that were measured. The world's Meter sees the
// hardware; mc makes others for the simulator.
func (h *hardware) measured(ctx context.Context, p *spec.Point, c sim.Config, mc meter.Config) (ran, error) {
	l, err := h.newLoop(p, &c)
	if err != nil {
		return ran{}, err
	}
	out := ran{try: &try{}}
	if out.try.Before, err = h.watchdog.settled(ctx); err != nil {
		return ran{}, err
	}
	then := processorTimeNow()
	if err := l.run(ctx); err != nil {
		return ran{}, err
	}
	out.others = othersSince(then)
	if out.try.After, err = h.watchdog.ratio(ctx); err != nil {
		return ran{}, err
	}
	s := l.loop.Scheduler()
	out.Result = sim.Result{End: s.Now(), Counters: []core.Counters{s.Counters()}}
	out.steps = l.steps
	for _, t := range l.loop.Timings() {
		out.bookkeeping = append(out.bookkeeping, t.Bookkeeping())
	}
	mc.OnRequest, c.Observe = nil, nil
	simulated, tallies, err := again(ctx, p, c, mc)
	if err != nil {
		return ran{}, err
	}
	out.simulated, out.Tallies = simulated, tallies
	measured := c.Meter.Summary()
	c.Latency = slices.Clone(c.Latency)
	for i := range c.Latency {
		if mean := stepMean(simulated, i); mean > 0 && stepMean(&measured, i) > 0 {
			c.Latency[i] = spec.Scaled(c.Latency[i], stepMean(&measured, i)/mean)
		}
	}
	out.rescaled, _, err = again(ctx, p, c, mc)
	return out, err
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
	// On hardware: of the same requests in the simulator, with calibrated step times, and with these scaled to
	// the measured means.
	simulated, rescaled *meter.Summary
	bookkeeping         []float64 // share of each model's time that was not inside its device
	try                 *try      // nil: not probed, nor are others and steps known
	others              float64   // share of the processors' time that went to others
	steps               []spread
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
	if r.rescaled != nil {
		v["rescaled_tok_s"] = r.rescaled.ThroughputTokS
		v["rescaled_error"] = s.ThroughputTokS/r.rescaled.ThroughputTokS - 1
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

// calibrated is the spec with step times measured on the hardware: now, unless the folder has them already
// and keep is set. It is the spec itself where they are given.
func (r *runner) calibrated(ctx context.Context, keep bool, say func(string)) (*spec.Spec, error) {
	s := r.spec
	if !s.Hardware.Calibrate {
		return s, nil
	}
	path := filepath.Join(r.dir, calibrationFile)
	if err := r.real.stepTimes(ctx, path, s.Hardware.System.File, keep, say); err != nil {
		return nil, err
	}
	return s.Calibrated(path)
}

// stepTimes measures the step times of the models of a system's file and writes them to path. If keep is set
// and they are there already, they stay.
func (h *hardware) stepTimes(ctx context.Context, path, systemFile string, keep bool, say func(string),
) error {
	heading := calibrate.Heading(filepath.Base(systemFile))
	if keep {
		old, err := os.ReadFile(path)
		machine, _, _ := strings.Cut(strings.SplitAfter(heading, "\n")[1], " cores")
		switch {
		case err == nil && !strings.Contains(string(old), machine):
			return fmt.Errorf("%s was not %s cores: want the machine that the run was begun on", path, machine)
		case err == nil:
			return nil
		}
	}
	say("measuring step times")
	samples, err := h.samples(ctx)
	if err != nil {
		return err
	}
	fits, err := calibrate.FitModels(samples)
	if err != nil {
		return err
	}
	return calibrate.Write(path, heading, fits, samples)
}

// samples measures steps. Probes in between, if there is a watchdog, give the reference of all later ones.
func (h *hardware) samples(ctx context.Context) (samples []calibrate.Sample, err error) {
	const rounds = 6
	plan := h.calibration()
	var speeds []calibrate.Speed
	for range rounds {
		round, err := calibrate.Measure(ctx, h.system.Models, plan)
		if err != nil {
			return nil, err
		}
		samples = append(samples, round...)
		if h.watchdog == nil {
			continue
		}
		speed, err := h.watchdog.probe(ctx)
		if err != nil {
			return nil, err
		}
		speeds = append(speeds, speed)
		h.watchdog.reference = calibrate.MeanSpeed(speeds)
	}
	return samples, nil
}

// calibration is a small grid: what occurs in a steady state of any point, and the first steps.
func (h *hardware) calibration() calibrate.Plan {
	bounds := calibrate.BoundsOf(h.plan.Core)
	const steps = 1
	bounds.Fresh = min(bounds.Fresh, h.freshMax)
	return calibrate.Plan{
		Shapes: calibrate.Grid(bounds), Rounds: 1, Steps: steps, Row: h.row,
		Neighbour: calibrate.Shape{Rows: max(bounds.Rows/4, 1), Fresh: 1, Context: bounds.Context / 2},
	}
}
