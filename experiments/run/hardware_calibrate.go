package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// Files of a calibration in a results folder; the samples lie beside it (calibrate.SamplesPath).
const calibrationFile = "calibration.toml"

// speedFile has how long the steps of the probe took in each round. Only with its speed is a round complete.
const speedFile = "speed.json"

// roundsPerPass is how often the machine is calibrated in a pass over all points under one seed.
const roundsPerPass = 3

// rounds are the calibrations of a run: one before the first job, and others evenly between the jobs up to
// the last, for the speed of a machine drifts. All count alike (calibrated), and so do their probes
// (reference). When they are made follows from how many jobs are finished, never from what these gave.
type rounds struct {
	spec    *spec.Spec
	dir     string
	jobs    int    // of the whole run
	card    string // as system.Plan.Card
	samples []calibrate.Sample
	speeds  []calibrate.Speed // one a round

	sample func(ctx context.Context, round int) ([]calibrate.Sample, error) // nil: step times are given
	probe  func(context.Context) (calibrate.Speed, error)
}

// newRounds has those that the folder has, if the run is resumed on the machine that it was begun on.
func (r *runner) newRounds(o *Options) (*rounds, error) {
	c := &rounds{spec: r.spec, dir: r.dir, jobs: len(r.jobs(o)), probe: r.real.watchdog.now,
		card: r.real.plan.Card()}
	if r.spec.Hardware.Calibrate {
		c.sample = func(ctx context.Context, round int) ([]calibrate.Sample, error) {
			plan := r.real.calibration()
			plan.First = round
			return calibrate.Measure(ctx, r.real.system.Models, plan)
		}
	}
	if !o.Resume {
		return c, nil
	}
	return c, c.read(r.real.watchdog.models)
}

// read reads the complete rounds of a folder; there may be none.
func (c *rounds) read(models int) error {
	path := filepath.Join(c.dir, speedFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.speeds)
	}
	if err != nil {
		return fmt.Errorf("%s: damaged: %w", path, err)
	}
	for _, s := range c.speeds {
		if beside := models * min(models-1, 1); len(s.AloneNs) != models || len(s.BesideNs) != beside {
			return fmt.Errorf("%s: damaged: %d and %d times, want %d and %d", path, len(s.AloneNs), len(s.BesideNs),
				models, beside)
		}
	}
	if c.sample == nil || len(c.speeds) == 0 {
		return nil
	}
	path = filepath.Join(c.dir, calibrationFile)
	if _, err := sameMachine(path, calibrate.Here(c.spec.Hardware.System.File, c.card)); err != nil {
		return err
	}
	path = calibrate.SamplesPath(path)
	if text, err = os.ReadFile(path); err == nil {
		c.samples, err = calibrate.Samples(text)
	}
	if err != nil {
		return fmt.Errorf("%s: damaged: %w", path, err)
	}
	c.samples = c.until(len(c.speeds))
	return nil
}

// until is the samples of the first n rounds.
func (c *rounds) until(n int) []calibrate.Sample {
	later := func(s calibrate.Sample) bool { return s.Round >= n }
	return slices.DeleteFunc(slices.Clone(c.samples), later)
}

// due makes the rounds that are due once so many jobs are finished.
func (c *rounds) due(ctx context.Context, finished int) error {
	gaps := min(roundsPerPass*c.spec.Replicates, c.jobs)
	for len(c.speeds) < finished*gaps/c.jobs+1 {
		if err := c.measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measure makes a round, between two probes, and writes it.
func (c *rounds) measure(ctx context.Context) error {
	before, err := c.probe(ctx)
	if err != nil {
		return err
	}
	if c.sample != nil {
		samples, err := c.sample(ctx, len(c.speeds))
		if err != nil {
			return err
		}
		c.samples = append(c.samples, samples...)
	}
	after, err := c.probe(ctx)
	if err != nil {
		return err
	}
	c.speeds = append(c.speeds, calibrate.MeanSpeed([]calibrate.Speed{before, after}))
	if c.sample != nil {
		if err := c.write(len(c.speeds)); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(c.speeds, "", "  ")
	if err != nil {
		return err
	}
	return result.WriteFile(filepath.Join(c.dir, speedFile), append(text, '\n'))
}

// reference is the mean speed of all rounds.
func (c *rounds) reference() calibrate.Speed { return calibrate.MeanSpeed(c.speeds) }

// write writes all samples, and the fits to those of the first n rounds.
func (c *rounds) write(n int) error {
	fits, err := calibrate.FitModels(c.until(n))
	if err != nil {
		return err
	}
	of := calibrate.Here(c.spec.Hardware.System.File, c.card)
	return calibrate.Write(filepath.Join(c.dir, calibrationFile), of, fits, c.samples)
}

// calibrated is the spec with the step times of the first n rounds; the spec itself where they are given.
func (c *rounds) calibrated(n int) (*spec.Spec, error) {
	if c.sample == nil {
		return c.spec, nil
	}
	if err := c.write(n); err != nil {
		return nil, err
	}
	return c.spec.Calibrated(filepath.Join(c.dir, calibrationFile))
}

// sameMachine reports whether a calibration is there. It is an error if it was not of the machine of here.
func sameMachine(path string, here calibrate.Origin) (bool, error) {
	old, err := os.ReadFile(path)
	if err != nil {
		return false, nil
	}
	if !strings.Contains(string(old), fmt.Sprintf("\ndevice = %q\n", here.Device)) {
		return false, fmt.Errorf("%s was not measured on %s: want the machine that the run was begun on", path,
			here.Device)
	}
	return true, nil
}

// stepTimes measures the step times of the models of a system's file and writes them to path. If keep is set
// and they are there already, they stay.
func (h *hardware) stepTimes(ctx context.Context, path, systemFile string, keep bool, say func(string),
) error {
	here := calibrate.Here(systemFile, h.plan.Card())
	if keep {
		if there, err := sameMachine(path, here); there || err != nil {
			return err
		}
	}
	say("measuring step times")
	const rounds = 6
	plan := h.calibration()
	plan.Rounds = rounds
	samples, err := calibrate.Measure(ctx, h.system.Models, plan)
	if err != nil {
		return err
	}
	fits, err := calibrate.FitModels(samples)
	if err != nil {
		return err
	}
	return calibrate.Write(path, here, fits, samples)
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
