package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// settleNs is how long is waited between two probes.
const settleNs = 200 * time.Millisecond

// watchdog judges by probes whether what is measured counts.
type watchdog struct {
	probe     func(context.Context) (calibrate.Speed, error)
	models    int
	reference calibrate.Speed // of all rounds of the calibration; known once they are made
	rule      spec.Probe
}

// newWatchdog makes the probe of some hardware. Its reference is yet to be set.
func (h *hardware) newWatchdog(rule spec.Probe) *watchdog {
	shape := h.calibration().Neighbour
	shape.Context = 0 // nothing has been computed
	return &watchdog{
		probe: calibrate.NewProbe(h.system.Models, shape).Run, models: len(h.system.Models), rule: rule,
	}
}

// now probes the machine.
func (w *watchdog) now(ctx context.Context) (calibrate.Speed, error) {
	speed, err := w.probe(ctx)
	if err != nil {
		return speed, fmt.Errorf("probing the machine: %w", err)
	}
	return speed, nil
}

// near reports whether steps took as long as in the reference, by their ratio.
func (w *watchdog) near(ratio float64) bool { return math.Abs(ratio-1) <= w.rule.Tolerance }

// settle probes the machine until it is as fast as in the reference, or the wait is over.
func (w *watchdog) settle(ctx context.Context) error {
	begin := time.Now()
	for {
		speed, err := w.now(ctx)
		if err != nil || w.near(speed.Ratio(w.reference)) || time.Since(begin) >= time.Duration(w.rule.WaitNs) {
			return err
		}
		select {
		case <-time.After(settleNs):
		case <-ctx.Done():
		}
	}
}

// try is one measurement of a seed. A job keeps one of them.
type try struct {
	Before         calibrate.Speed `json:"probe_before"`
	After          calibrate.Speed `json:"probe_after"`
	Kept           bool            `json:"kept"`
	ThroughputTokS float64         `json:"throughput_tok_s"`
}

// verdict is what the reference says of a try.
type verdict struct {
	before, after float64 // how much longer the steps of the probe took than in the reference
	counts        bool
	off           float64 // how far the worse of both is from the reference, a logarithm
}

func (w *watchdog) judge(t *try) verdict {
	v := verdict{before: t.Before.Ratio(w.reference), after: t.After.Ratio(w.reference)}
	v.counts = w.near(v.before) && w.near(v.after)
	v.off = max(math.Abs(math.Log(v.before)), math.Abs(math.Log(v.after)))
	return v
}

// better reports whether v is to be kept rather than other. It does not depend on what they gave.
func (v verdict) better(other verdict) bool {
	if v.counts != other.counts {
		return v.counts
	}
	return v.off < other.off
}

// kept is the try that a job keeps.
func (d *part) kept() *try {
	return &d.Tries[slices.IndexFunc(d.Tries, func(t try) bool { return t.Kept })]
}

// measure tries a job for the first time, after the round of the calibration that is due.
func (r *runner) measure(ctx context.Context, j job) error {
	if err := r.rounds.due(ctx, r.measured); err != nil {
		return err
	}
	done, err := r.attempt(ctx, j)
	if err != nil {
		return err
	}
	done.Tries[0].Kept = true
	r.measured++
	return r.publish(j, workingSuffix, done)
}

// measureAll tries all jobs once, with rounds of the calibration between them, and then those again at which
// the machine was not as fast as in the mean of the rounds. At the end the spec has the step times of all.
func (r *runner) measureAll(ctx context.Context, jobs []job, o *Options) error {
	all := r.jobs(o)
	r.measured = len(all) - len(jobs)
	for _, j := range all {
		if err := r.restore(j); err != nil {
			return err
		}
	}
	if err := r.all(ctx, jobs, o); err != nil {
		return err
	}
	if err := r.rounds.due(ctx, len(all)); err != nil {
		return err
	}
	r.real.watchdog.reference = r.rounds.reference()
	if err := r.retry(ctx, all, o); err != nil {
		return err
	}
	var err error
	r.spec, err = r.rounds.calibrated(len(r.rounds.speeds))
	return err
}

// retry tries jobs again of which no try counts, the worst first, until all have a try that does, or as many
// as the rule has, or its time is over.
func (r *runner) retry(ctx context.Context, all []job, o *Options) error {
	w := r.real.watchdog
	end := time.Now().Add(time.Duration(w.rule.ExtraNs))
	for tries := 1; tries < w.rule.Tries; tries++ {
		jobs, err := r.spoiled(all, tries)
		if err != nil {
			return err
		}
		if len(jobs) > 0 && o.Doing != nil {
			o.Doing(fmt.Sprintf("measuring %d seeds again: the machine was not as fast as calibrated", len(jobs)))
		}
		for _, j := range jobs {
			if time.Now().After(end) {
				return nil
			}
			if err := r.tryAgain(ctx, j); err != nil {
				return fmt.Errorf("%s, replicate %d: %w", j.point.Key, j.replicate, err)
			}
		}
	}
	return nil
}

// spoiled is the jobs with at most so many tries of which none counts, the worst first.
func (r *runner) spoiled(all []job, tries int) ([]job, error) {
	var jobs []job
	off := make(map[job]float64)
	for _, j := range all {
		_, d, ok, err := r.load(j)
		if err != nil {
			return nil, err
		}
		if !ok || len(d.Tries) > tries {
			continue
		}
		if v := r.real.watchdog.judge(d.kept()); !v.counts {
			jobs, off[j] = append(jobs, j), v.off
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(off[b], off[a]) })
	return jobs, nil
}

// tryAgain measures a job once more and keeps the better try. Until that is known the files of the one so far
// are set aside.
func (r *runner) tryAgain(ctx context.Context, j job) error {
	_, old, ok, err := r.load(j)
	if err != nil || !ok {
		return errors.Join(err, fs.ErrNotExist)
	}
	w := r.real.watchdog
	if err := w.settle(ctx); err != nil {
		return err
	}
	if err := r.rename(j, "", keptSuffix); err != nil {
		return err
	}
	done, err := r.attempt(ctx, j)
	if err != nil {
		return errors.Join(err, r.drop(j, workingSuffix), r.rename(j, keptSuffix, ""))
	}
	tries := append(old.Tries, done.Tries...)
	last := &tries[len(tries)-1]
	if !w.judge(last).better(w.judge(old.kept())) {
		old.Tries = tries
		if err := errors.Join(r.drop(j, workingSuffix), r.rename(j, keptSuffix, "")); err != nil {
			return err
		}
		return r.publish(j, "", old)
	}
	for i := range tries {
		tries[i].Kept = &tries[i] == last
	}
	done.Tries = tries
	if err := errors.Join(os.Remove(r.partPath(j)), r.drop(j, keptSuffix)); err != nil {
		return err
	}
	return r.publish(j, workingSuffix, done)
}

// restore puts files in place that an interrupted run has set aside, if their job is finished, else removes
// them.
func (r *runner) restore(j job) error {
	if _, err := os.Stat(r.partPath(j)); err != nil {
		return r.drop(j, keptSuffix)
	}
	to := r.files(j, "")
	for i, path := range r.files(j, keptSuffix) {
		if err := os.Rename(path, to[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// note puts the tries of a job among its values and warnings.
func (d *part) note(w *watchdog) {
	d.Values["tries"], d.Values["seeds_off"] = float64(len(d.Tries)), 0
	spoiled := 0
	for i := range d.Tries {
		if !w.judge(&d.Tries[i]).counts {
			spoiled++
		}
	}
	d.Values["tries_off"] = float64(spoiled)
	kept := w.judge(d.kept())
	d.Values["probe_before"], d.Values["probe_after"] = kept.before, kept.after
	if !kept.counts {
		d.Values["seeds_off"] = 1
		d.Warnings = append(d.Warnings, fmt.Sprintf("1 seeds were measured while the machine was not as fast as"+
			" calibrated, within %g %%", 100*w.rule.Tolerance))
	}
}

// tryTable is all tries of a run.
type tryTable struct{ text bytes.Buffer }

func (t *tryTable) add(j job, tries []try, w *watchdog) {
	for i, y := range tries {
		v := w.judge(&y)
		fmt.Fprintf(&t.text, "%q,%d,%d,%.4f,%.4f,%t,%t,%.4f\n", j.point.Key, j.replicate, i+1, v.before, v.after,
			v.counts, y.Kept, y.ThroughputTokS)
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
