package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// speedFile has the reference of all probes in a results folder: how long their steps took while the step
// times were measured.
const speedFile = "speed.json"

// settleNs is how long is waited between two probes.
const settleNs = 200 * time.Millisecond

// watchdog judges by probes whether what is measured counts.
type watchdog struct {
	probe     func(context.Context) (calibrate.Speed, error)
	models    int
	reference calibrate.Speed
	rule      spec.Probe
	extra     time.Duration // that is left of rule.ExtraNs
}

// newWatchdog makes the probe of some hardware. Its reference is yet to be set.
func (h *hardware) newWatchdog(rule spec.Probe) *watchdog {
	shape := h.calibration().Neighbour
	shape.Context = 0 // nothing has been computed
	return &watchdog{
		probe: calibrate.NewProbe(h.system.Models, shape).Run, models: len(h.system.Models), rule: rule,
		extra: time.Duration(rule.ExtraNs),
	}
}

// ratio probes the machine: how much longer steps take than in the reference.
func (w *watchdog) ratio(ctx context.Context) (float64, error) {
	speed, err := w.probe(ctx)
	if err != nil {
		return math.NaN(), fmt.Errorf("probing the machine: %w", err)
	}
	return speed.Ratio(w.reference), nil
}

// counts reports whether the machine was as fast as in the reference.
func (w *watchdog) counts(ratio float64) bool { return math.Abs(ratio-1) <= w.rule.Tolerance }

// settled probes the machine until it is as fast as in the reference, or the wait is over, and returns the
// last ratio.
func (w *watchdog) settled(ctx context.Context) (float64, error) {
	ratio, err := w.ratio(ctx)
	begin := time.Now()
	for err == nil && !w.counts(ratio) && time.Since(begin) < min(time.Duration(w.rule.WaitNs), w.extra) {
		select {
		case <-time.After(settleNs):
		case <-ctx.Done():
		}
		ratio, err = w.ratio(ctx)
	}
	w.extra -= time.Since(begin)
	return ratio, err
}

// try is one measurement of a seed. A job keeps one of them.
type try struct {
	// Before and After are how much longer the steps of the probe took than in the reference.
	Before         float64 `json:"probe_before"`
	After          float64 `json:"probe_after"`
	Counts         bool    `json:"counts"`
	Kept           bool    `json:"kept"`
	ThroughputTokS float64 `json:"throughput_tok_s"`
}

// off is how far the machine was from the reference at the worse of the two probes.
func (t *try) off() float64 {
	return max(math.Abs(math.Log(t.Before)), math.Abs(math.Log(t.After)))
}

// measure tries a job until a try counts, at most as often as the rule has it, and publishes the one that
// does, or else that with the machine nearest to the reference. Which one is kept does not depend on what it
// gave.
func (r *runner) measure(ctx context.Context, j job) error {
	w := r.real.watchdog
	var tries []try
	var kept *part
	best := -1
	for {
		begin := time.Now()
		done, err := r.attempt(ctx, j)
		if err != nil {
			return errors.Join(err, r.drop(j, keptSuffix))
		}
		t := done.try
		t.ThroughputTokS = done.Values["throughput_tok_s"]
		t.Counts = w.counts(t.Before) && w.counts(t.After)
		tries = append(tries, *t)
		if best >= 0 {
			w.extra -= time.Since(begin)
		}
		if best < 0 || t.Counts || t.off() < tries[best].off() {
			if err := r.rename(j, workingSuffix, keptSuffix); err != nil {
				return err
			}
			best, kept = len(tries)-1, done
		} else if err := r.drop(j, workingSuffix); err != nil {
			return err
		}
		if t.Counts || len(tries) == w.rule.Tries || w.extra <= 0 {
			break
		}
	}
	tries[best].Kept = true
	kept.Tries = tries
	kept.note(w.rule)
	return r.publish(j, keptSuffix, kept)
}

// note puts the tries of a job among its values and warnings.
func (d *part) note(rule spec.Probe) {
	d.Values["tries"], d.Values["seeds_off"] = float64(len(d.Tries)), 0
	spoiled := 0
	for _, t := range d.Tries {
		if !t.Counts {
			spoiled++
		}
		if !t.Kept {
			continue
		}
		d.Values["probe_before"], d.Values["probe_after"] = t.Before, t.After
		if !t.Counts {
			d.Values["seeds_off"] = 1
			d.Warnings = append(d.Warnings, fmt.Sprintf("1 seeds were measured while the machine was not as fast as"+
				" calibrated, within %g %%", 100*rule.Tolerance))
		}
	}
	d.Values["tries_off"] = float64(spoiled)
}

// refer sees to it that there is a reference, and keeps it for a run that goes on later: that of the
// calibration, else the one of the run's earlier part if keep is set, else the machine as it is now.
func (w *watchdog) refer(ctx context.Context, dir string, keep bool) error {
	path := filepath.Join(dir, speedFile)
	if w.reference.AloneNs == nil && keep {
		text, err := os.ReadFile(path)
		if err == nil {
			return w.parse(path, text)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if w.reference.AloneNs == nil {
		const probes = 5
		var speeds []calibrate.Speed
		for range probes {
			speed, err := w.probe(ctx)
			if err != nil {
				return fmt.Errorf("probing the machine: %w", err)
			}
			speeds = append(speeds, speed)
		}
		w.reference = calibrate.MeanSpeed(speeds)
	}
	text, err := json.MarshalIndent(w.reference, "", "  ")
	if err != nil {
		return err
	}
	return result.WriteFile(path, append(text, '\n'))
}

// parse reads a reference.
func (w *watchdog) parse(path string, text []byte) error {
	err := json.Unmarshal(text, &w.reference)
	beside := w.models
	if beside == 1 {
		beside = 0
	}
	if err == nil && (len(w.reference.AloneNs) != w.models || len(w.reference.BesideNs) != beside) {
		err = fmt.Errorf("%d and %d times, want %d and %d", len(w.reference.AloneNs), len(w.reference.BesideNs),
			w.models, beside)
	}
	if err != nil {
		return fmt.Errorf("%s: damaged: %w", path, err)
	}
	return nil
}

// tryTable is all tries of a run.
type tryTable struct{ text bytes.Buffer }

func (t *tryTable) add(j job, tries []try) {
	for i, y := range tries {
		fmt.Fprintf(&t.text, "%q,%d,%d,%.4f,%.4f,%t,%t,%.4f\n", j.point.Key, j.replicate, i+1, y.Before, y.After,
			y.Counts, y.Kept, y.ThroughputTokS)
	}
}

// write writes the table into a results folder, if there are tries.
func (t *tryTable) write(dir string) error {
	if t.text.Len() == 0 {
		return nil
	}
	const head = "point,replicate,try,probe_before,probe_after,counts,kept,throughput_tok_s\n"
	return result.WriteFile(filepath.Join(dir, result.TriesFile), append([]byte(head), t.text.Bytes()...))
}
