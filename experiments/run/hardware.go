package run

import (
	"context"
	"errors"
	"fmt"
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
)

// Files of a calibration in a results folder; the samples lie beside it (calibrate.SamplesPath).
const calibrationFile = "calibration.toml"

// simulator is the kind of the world that is no hardware.
const simulator = "sim"

// hardware is a system with its models loaded, which all jobs use one after another.
type hardware struct {
	backend native.Backend
	plan    *system.Plan
	system  *system.System
	// freshMax bounds the tokens fed in a step whose time is measured: more than come up in a steady state
	// need not be known.
	freshMax int
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
	if r.spec, err = r.calibrated(ctx, o.Resume, say); err != nil {
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
	h = &hardware{backend: backend, freshMax: freshMax}
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

// measured runs a world's requests on the hardware, and then in the simulator. The world's Meter sees the
// hardware; mc makes another for the simulator.
func (h *hardware) measured(ctx context.Context, p *spec.Point, c sim.Config, mc meter.Config) (ran, error) {
	l, err := h.newLoop(p, &c)
	if err != nil {
		return ran{}, err
	}
	if err := l.run(ctx); err != nil {
		return ran{}, err
	}
	s := l.loop.Scheduler()
	out := ran{Result: sim.Result{End: s.Now(), Counters: []core.Counters{s.Counters()}}}
	for _, t := range l.loop.Timings() {
		out.bookkeeping = append(out.bookkeeping, t.Bookkeeping())
	}
	mc.OnRequest = nil
	c.Meter, c.Observe = meter.New(mc), nil
	if c.Workload, err = p.Workload.Source(c.Seed); err != nil {
		return ran{}, err
	}
	simulated, err := sim.Run(ctx, c)
	if err != nil {
		return ran{}, fmt.Errorf("simulation: %w", err)
	}
	summary := c.Meter.Summary()
	out.simulated, out.Tallies = &summary, simulated.Tallies
	return out, nil
}

// ran is what running a job left besides its meter.
type ran struct {
	sim.Result                 // Tallies are of the simulation
	simulated   *meter.Summary // of the same requests, if the job ran on hardware
	bookkeeping []float64      // share of each model's time that was not inside its device
}

// add adds the metrics that only jobs on hardware have.
func (r *ran) add(p *spec.Point, s *meter.Summary, v map[string]float64) {
	if r.bookkeeping == nil {
		return
	}
	sides := map[string]*meter.Summary{"": s}
	if r.simulated != nil {
		v["simulated_tok_s"] = r.simulated.ThroughputTokS
		v["simulated_error"] = s.ThroughputTokS/r.simulated.ThroughputTokS - 1
		sides["simulated_"] = r.simulated
	}
	for i := range s.Models {
		name := result.Slug(p.Models[i].Name) + "_"
		v[name+"bookkeeping"] = r.bookkeeping[i]
		for prefix, of := range sides {
			if m := &of.Models[i]; m.Launches > 0 {
				v[prefix+name+"step_mean_ms"] = m.Utilisation * float64(of.ClosedNs-of.OpenedNs) / 1e6 /
					float64(m.Launches)
			}
		}
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
	samples, err := calibrate.Measure(ctx, h.system.Models, h.calibration())
	if err != nil {
		return err
	}
	fits, err := calibrate.FitModels(samples)
	if err != nil {
		return err
	}
	return calibrate.Write(path, heading, fits, samples)
}

// calibration is a small grid: what occurs in a steady state of any point, and the first steps.
func (h *hardware) calibration() calibrate.Plan {
	bounds := calibrate.BoundsOf(h.plan.Core)
	const rounds, steps = 5, 3
	bounds.Fresh = min(bounds.Fresh, h.freshMax)
	return calibrate.Plan{
		Shapes: calibrate.Grid(bounds), Rounds: rounds, Steps: steps,
		Neighbour: calibrate.Shape{Rows: max(bounds.Rows/4, 1), Fresh: 1, Context: bounds.Context / 2},
	}
}
