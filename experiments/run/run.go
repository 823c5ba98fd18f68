package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"tokenrouter/core/meter/quantile"
	"tokenrouter/exec"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// Options say how a spec is run.
type Options struct {
	// Out is the results folder; empty means DefaultDir.
	Out string
	// Workers run jobs at the same time; 0 means 1. Results do not depend on it. On hardware it must be 1 or 0.
	Workers int
	// Backend runs the models of Spec.Hardware; the zero Backend means that all is simulated.
	Backend native.Backend
	// Shard and Shards run a part of the points: those whose number modulo Shards is Shard-1. Zero means all.
	Shard, Shards int
	// Resume keeps the finished jobs of an earlier run of the same spec. Without it they are run again.
	Resume bool
	// Doing, if set, is told of long work that is not a job.
	Doing func(what string)
	// Progress, if set, is told after each job how many of this run's are done, of how many; never by two
	// goroutines at a time.
	Progress func(done, total int)

	device func(model int, d exec.Device) exec.Device // for tests: takes the place of the models' devices
	scorer system.Scorer                              // for tests: takes the place of router folders
}

// Report is what a run has done.
type Report struct {
	Dir     string
	Summary *result.Summary // nil as long as jobs are missing: other shards, or an interruption
	Done    int             // finished jobs in the folder
	Total   int             // jobs of the spec
	Figures []string        // files drawn
}

// DefaultDir is where the results of a spec go, beside the working folder: the same for the same spec and
// backend, "" for none.
func DefaultDir(s *spec.Spec, backend string) string {
	if backend != "" {
		backend = "-" + backend
	}
	return filepath.Join("experiments", "results", s.Name, s.Run()+backend)
}

// Run runs a spec, or a shard of it, and, once no job is missing, writes summaries and figures. When ctx ends
// it keeps what is finished and returns the Report so far with ctx's error. Errors of one point end the run.
func Run(ctx context.Context, s *spec.Spec, o Options) (*Report, error) {
	r, err := newRunner(s, &o)
	if err != nil {
		return nil, err
	}
	if done, report, err := r.finished(&o); done || err != nil {
		return report, err
	}
	release, err := r.begin(&o)
	if err != nil {
		return nil, err
	}
	defer release()
	if o.Backend != (native.Backend{}) {
		release, err := r.ownMachine(ctx, &o)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	if o.Backend != (native.Backend{}) && !s.Answered {
		if err := r.prepare(ctx, &o); err != nil {
			return nil, err
		}
		defer func() { _ = r.real.close() }() // folders were read only
	}
	jobs, err := r.missing(&o)
	if err != nil {
		return nil, err
	}
	run := r.all
	switch {
	case s.Answered:
		run = r.answerAll
	case r.real != nil:
		run = r.measureAll
	}
	failure := run(ctx, jobs, &o)
	report, err := r.end(ctx, failure == nil)
	return report, errors.Join(failure, err)
}

func newRunner(s *spec.Spec, o *Options) (*runner, error) {
	if o.Shards == 0 {
		o.Shard, o.Shards = 1, 1
	}
	if o.Shards < 1 || o.Shard < 1 || o.Shard > o.Shards {
		return nil, fmt.Errorf("shard %d of %d, want 1/1 to n/n", o.Shard, o.Shards)
	}
	r := &runner{spec: s, plans: newPlanner(), metrics: result.MetricsOf(s.ModelNames())}
	if s.Points[0].Trace != "" {
		r.metrics = result.ReplayedMetricsOf(s.ModelNames())
	}
	if o.Backend != (native.Backend{}) {
		if err := r.onHardware(o); err != nil {
			return nil, err
		}
	} else if s.Answered {
		return nil, fmt.Errorf("spec %s: only real models answer problems: want a backend that has them", s.File)
	} else if s.Hardware != nil && s.Hardware.Calibrate {
		return nil, fmt.Errorf("spec %s: step times are not known before hardware has measured them", s.File)
	}
	if r.dir = o.Out; r.dir == "" {
		r.dir = DefaultDir(s, r.backend)
	}
	r.watch = slices.ContainsFunc(s.Figures, func(f result.Figure) bool { return f.Kind == "schedules" })
	return r, nil
}

// finished reports whether Resume finds a run with nothing left to do.
func (r *runner) finished(o *Options) (bool, *Report, error) {
	if !o.Resume {
		return false, nil, nil
	}
	old, err := os.ReadFile(filepath.Join(r.dir, result.SpecFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil, fmt.Errorf("nothing to resume in %s: no run of this spec (%s) was begun there%s",
			r.dir, r.spec.Run(), siblings(r.dir))
	}
	if err != nil {
		return false, nil, err
	}
	if string(old) != string(r.spec.Resolved) {
		return false, nil, fmt.Errorf("can not resume %s: its %s is of another spec than %s, which must have"+
			" changed since", r.dir, result.SpecFile, r.spec.File)
	}
	if err := r.sameModels(); err != nil {
		return false, nil, err
	}
	if _, err := os.Stat(r.parts()); err == nil {
		return false, nil, nil
	}
	done, err := result.Read(r.dir)
	if err != nil {
		return false, nil, nil // begun and not finished
	}
	if done.Backend != r.backend {
		return false, nil, fmt.Errorf("%s holds results of %q, want %q", r.dir, cmp.Or(done.Backend, simulator),
			cmp.Or(r.backend, simulator))
	}
	report, err := r.gathered(&Report{Dir: r.dir, Total: len(r.spec.Points) * r.spec.Replicates})
	return true, report, err
}

// gathered reports results that are complete already, and draws them.
func (r *runner) gathered(report *Report) (*Report, error) {
	summary, err := result.Read(r.dir)
	if err != nil {
		return report, err
	}
	report.Summary, report.Done = summary, report.Total
	report.Figures, err = result.Draw(r.dir, summary)
	return report, err
}

// siblings names runs of other specs beside dir.
func siblings(dir string) string {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return ""
	}
	var others []string
	for _, e := range entries {
		if e.IsDir() {
			others = append(others, e.Name())
		}
	}
	if len(others) == 0 {
		return ""
	}
	return "; runs of another form of the spec: " + strings.Join(others, ", ")
}

// begin makes the folder, and keeps other runs out of it until release. It refuses one that holds the run of
// another spec, or one that goes on.
func (r *runner) begin(o *Options) (release func(), err error) {
	path := filepath.Join(r.dir, result.SpecFile)
	old, err := os.ReadFile(path)
	if err == nil && string(old) != string(r.spec.Resolved) {
		return nil, fmt.Errorf("%s holds results of another spec: want another folder, or remove it", r.dir)
	}
	if err := os.MkdirAll(r.parts(), 0o755); err != nil {
		return nil, err
	}
	if release, err = r.own(o); err != nil {
		return nil, err
	}
	if !o.Resume {
		err = r.forget(o)
	}
	if err == nil {
		environment := result.ThisEnvironment()
		environment.Models = r.models
		err = errors.Join(result.WriteFile(path, r.spec.Resolved), environment.Write(r.dir))
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// forget removes the finished jobs of this shard, and the summary that they were in.
func (r *runner) forget(o *Options) error {
	var failed error
	remove := func(path string) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	for _, j := range r.jobs(o) {
		remove(r.partPath(j))
		remove(r.requestsPath(j))
		remove(r.logPath(j))
		remove(r.answersPath(j))
	}
	files := []string{calibrationFile, speedFile, result.TriesFile, result.SummaryJSON, result.SummaryCSV,
		result.RequestsFile, result.AnswersFile}
	for _, p := range r.spec.Points {
		if p.System != nil {
			files = append(files, calibrationOf(p.System))
		}
	}
	for _, name := range files {
		remove(filepath.Join(r.dir, name))
		if filepath.Ext(name) == ".toml" {
			remove(calibrate.SamplesPath(filepath.Join(r.dir, name)))
		}
	}
	return failed
}

// jobs lists the jobs of the shard, replicate by replicate, so that an interruption leaves all points with
// some replicates rather than some points with all.
func (r *runner) jobs(o *Options) []job {
	var out []job
	for replicate := range r.spec.Replicates {
		for i := range r.spec.Points {
			if i%o.Shards == o.Shard-1 {
				out = append(out, job{&r.spec.Points[i], replicate})
			}
		}
	}
	return out
}

// missing lists the jobs of the shard that are not finished.
func (r *runner) missing(o *Options) ([]job, error) {
	var out []job
	for _, j := range r.jobs(o) {
		_, _, ok, err := r.load(j)
		if err != nil {
			return nil, err
		}
		if !ok {
			out = append(out, j)
		}
	}
	return out, nil
}

// all runs jobs on the workers, until one fails or ctx ends. It returns the error of the first failed job in
// their order.
func (r *runner) all(ctx context.Context, jobs []job, o *Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make([]error, len(jobs))
	var lock sync.Mutex
	next, done := 0, 0
	work := func() {
		for {
			lock.Lock()
			at := next
			next++
			lock.Unlock()
			if at >= len(jobs) || ctx.Err() != nil {
				return
			}
			err := r.do(ctx, jobs[at])
			lock.Lock()
			if failures[at] = err; err != nil {
				stop()
			}
			done++
			if o.Progress != nil && err == nil {
				o.Progress(done, len(jobs))
			}
			lock.Unlock()
		}
	}
	var group sync.WaitGroup
	for range min(max(o.Workers, 1), len(jobs)) {
		group.Go(work)
	}
	group.Wait()
	for _, err := range failures {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	if next < len(jobs) || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// end counts what is finished and, if nothing is missing, writes summary and figures and removes the parts.
func (r *runner) end(ctx context.Context, clean bool) (*Report, error) {
	report := &Report{Dir: r.dir, Total: len(r.spec.Points) * r.spec.Replicates}
	unlock, err := lock(r.dir)
	if err != nil {
		return report, err
	}
	defer unlock()
	if _, err := os.Stat(r.parts()); errors.Is(err, fs.ErrNotExist) && clean {
		return r.gathered(report) // by another shard, a moment ago
	}
	s := r.summary()
	var order []job
	var tries tryTable
	for i := range r.spec.Points {
		var rows []result.Row
		for replicate := range r.spec.Replicates {
			j := job{&r.spec.Points[i], replicate}
			row, done, ok, err := r.load(j)
			if err != nil {
				return report, err
			}
			if !ok {
				continue
			}
			if clean && r.real != nil {
				if err := r.compare(ctx, j, done); err != nil {
					return report, err
				}
				done.note(r.real.watchdog)
				row = r.row(j, done)
				tries.add(j, done.Tries, r.real.watchdog)
			}
			timeline := done.Timeline
			report.Done++
			order, rows = append(order, j), append(rows, row)
			if timeline != nil {
				s.Timelines = append(s.Timelines, *timeline)
			}
		}
		if len(rows) == r.spec.Replicates {
			mean, err := result.Aggregate(r.metrics, rows)
			if err != nil {
				return report, err
			}
			s.Rows = append(s.Rows, mean)
		}
		s.SeedRows = append(s.SeedRows, rows...)
	}
	if !clean || report.Done < report.Total {
		return report, nil
	}
	if r.spec.Requests {
		if err := r.gather(order); err != nil {
			return report, err
		}
	}
	if r.spec.Answered {
		if err := r.gatherAnswers(order); err != nil {
			return report, err
		}
	}
	if err := errors.Join(tries.write(r.dir), s.Write(r.dir)); err != nil {
		return report, err
	}
	report.Summary = s
	report.Figures, err = result.Draw(r.dir, s)
	return report, errors.Join(err, r.publishLogs(), r.publishTraces(), os.RemoveAll(r.parts()))
}

// gather makes one request file of those of the jobs.
func (r *runner) gather(order []job) (err error) {
	path := filepath.Join(r.dir, result.RequestsFile)
	w, err := result.NewRequestWriter(path + ".part")
	if err != nil {
		return err
	}
	for _, j := range order {
		err = result.EachRequest(r.requestsPath(j), func(row result.RequestRow) error {
			w.Add(row)
			return nil
		})
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".part"))
	}
	return os.Rename(path+".part", path)
}

// summary is the head of the results, without rows.
func (r *runner) summary() *result.Summary {
	s := &result.Summary{
		Experiment: r.spec.Name, Title: r.spec.Title, Run: r.spec.Run(), SpecSHA256: r.spec.Hash,
		Seed: r.spec.Seed, Replicates: r.spec.Replicates, CommonRandomNumbers: r.spec.CommonRandomNumbers,
		Models: r.spec.ModelNames(), Percentiles: quantile.RuleName, Intervals: result.IntervalRule,
		Backend: r.backend, Metrics: r.metrics, Figures: r.spec.Figures, References: r.spec.References,
		Calibrations: r.spec.Calibrations, Checks: r.spec.Checks, Noise: r.spec.Noise,
		Caption: r.spec.Caption, Discussion: r.spec.Discussion,
	}
	for _, a := range r.spec.Axes {
		s.Axes = append(s.Axes, result.Axis{Name: a.Name, Column: result.AxisColumn(a.Name), Values: a.Values})
	}
	return s
}
