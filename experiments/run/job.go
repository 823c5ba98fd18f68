package run

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/sim"
)

// job is a point in a replicate.
type job struct {
	point     *spec.Point
	replicate int
}

// name is that of its files: it depends on the point's values, not on its place in the sweep.
func (j job) name() string {
	sum := sha256.Sum256([]byte(j.point.Key))
	return fmt.Sprintf("%s-%d", hex.EncodeToString(sum[:8]), j.replicate)
}

// part is a finished job on disk.
type part struct {
	Spec       string             `json:"spec_sha256"`
	Backend    string             `json:"backend,omitempty"` // that measured it; empty: simulated
	Point      string             `json:"point"`
	Replicate  int                `json:"replicate"`
	Seed       uint64             `json:"seed"`
	Thresholds []int              `json:"thresholds"`
	Values     map[string]float64 `json:"values"`
	Warnings   []string           `json:"warnings"`
	Timeline   *result.Timeline   `json:"timeline,omitempty"`
	Tries      []try              `json:"tries,omitempty"` // on hardware, in order
}

// The files of a job besides its part have a suffix until they are published.
const (
	workingSuffix = ".part"
	keptSuffix    = ".kept"
)

// runner runs the jobs of one spec into one folder.
type runner struct {
	spec    *spec.Spec
	dir     string
	plans   *planner
	metrics []result.Metric
	watch   bool              // some figure needs timelines
	backend string            // its kind; empty: points are simulated
	real    *hardware         // of the backend
	models  map[string]string // SHA-256 of the files of the models that it runs

	// On hardware: the calibration, the jobs that have a try, and the spec with the step times of the first
	// round. Once all is measured, the runner's spec is that with the step times of all rounds.
	rounds   *rounds
	measured int
	begun    *spec.Spec
}

func (r *runner) parts() string { return filepath.Join(r.dir, "parts") }

func (r *runner) partPath(j job) string { return filepath.Join(r.parts(), j.name()+".json") }

func (r *runner) requestsPath(j job) string { return filepath.Join(r.parts(), j.name()+".parquet") }

// do runs a job and writes its part.
func (r *runner) do(ctx context.Context, j job) error {
	if err := r.run(ctx, j); err != nil {
		return fmt.Errorf("%s, replicate %d: %w", j.point.Key, j.replicate, err)
	}
	return nil
}

func (r *runner) run(ctx context.Context, j job) error {
	if r.real != nil {
		return r.measure(ctx, j)
	}
	done, err := r.attempt(ctx, j)
	if err != nil {
		return err
	}
	return r.publish(j, workingSuffix, done)
}

// simulated runs the world of a job whose Observe and Meter are set.
func simulated(ctx context.Context, c sim.Config) (ran, error) {
	out, err := sim.Run(ctx, c)
	return ran{Result: out}, err
}

// attempt runs a job. Its files are there under workingSuffix, unless it fails.
func (r *runner) attempt(ctx context.Context, j job) (done *part, err error) {
	p, seed := j.point, r.spec.WorldSeed(j.point, j.replicate)
	policy, set, err := r.plans.policy(ctx, p)
	if err != nil {
		return nil, err
	}
	predicted, note := math.NaN(), "" // of what is measured: at the end (compare)
	if r.real == nil {
		if predicted, note, err = r.plans.predict(ctx, p); err != nil {
			return nil, err
		}
	}
	c, mc, err := world(p, policy, seed)
	if err != nil {
		return nil, err
	}
	requests, err := r.recordRequests(j)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = requests.end(err); err != nil {
			done = nil
		}
	}()
	counts := tally{refused: make(map[refusal]int)}
	mc.OnRequest = func(m *meter.Request) {
		counts.note(m)
		requests.add(seed, m)
	}
	run := simulated
	if r.real != nil {
		c.Core = r.real.core(p, policy)
		run = func(ctx context.Context, c sim.Config) (ran, error) { return r.real.measured(ctx, p, c) }
	}
	c.Meter = meter.New(mc)
	watch, err := r.watchers(j, c.Core)
	if err != nil {
		return nil, err
	}
	c.Observe = watch.observer()
	out, err := run(ctx, c)
	if err = errors.Join(err, watch.close()); err != nil {
		return nil, err
	}
	s := c.Meter.Summary()
	done = &part{
		Spec: r.spec.Hash, Backend: r.backend, Point: p.Key, Replicate: j.replicate, Seed: seed,
		Thresholds: set, Values: values(p, &s, &out.Result, &counts, predicted),
		Warnings: append(slices.Clone(p.Warnings), warnings(p, &s, &out.Result, &counts, note)...),
	}
	out.add(p, &s, done.Values)
	if out.try != nil {
		out.try.ThroughputTokS = done.Values["throughput_tok_s"]
		done.Tries = []try{*out.try}
	}
	if watch.timeline != nil {
		done.Timeline = &watch.timeline.timeline
	}
	return done, nil
}

// files are those of a job besides its part, under a suffix. A turn log is worked on under its own name.
func (r *runner) files(j job, suffix string) (paths []string) {
	if r.spec.Requests {
		paths = append(paths, r.requestsPath(j)+suffix)
	}
	if r.spec.TurnLog && j.replicate == 0 {
		paths = append(paths, r.logPath(j)+strings.TrimPrefix(suffix, workingSuffix))
	}
	return paths
}

// rename gives the files of a job another suffix.
func (r *runner) rename(j job, from, to string) (err error) {
	names := r.files(j, to)
	for i, path := range r.files(j, from) {
		if path != names[i] {
			err = errors.Join(err, os.Rename(path, names[i]))
		}
	}
	return err
}

// drop removes the files of a job that have the suffix, as far as they are there.
func (r *runner) drop(j job, suffix string) (failed error) {
	for _, path := range r.files(j, suffix) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// publish makes the files and then the part visible. Only a part counts as a finished job.
func (r *runner) publish(j job, suffix string, done *part) error {
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	if err := r.rename(j, suffix, ""); err != nil {
		return err
	}
	return result.WriteFile(r.partPath(j), text)
}

// requestFile is the file of a job's requests while it runs; nothing where the spec wants none.
type requestFile struct {
	r  *runner
	j  job
	to *result.RequestWriter
}

// recordRequests begins the file.
func (r *runner) recordRequests(j job) (*requestFile, error) {
	f := &requestFile{r: r, j: j}
	if !r.spec.Requests {
		return f, nil
	}
	var err error
	f.to, err = result.NewRequestWriter(r.requestsPath(j) + workingSuffix)
	return f, err
}

func (f *requestFile) add(seed uint64, m *meter.Request) {
	if f.to != nil {
		f.to.Add(requestRow(f.j, seed, m))
	}
}

// end closes the file, and removes it if the job has failed. It returns that failure, or its own.
func (f *requestFile) end(failure error) error {
	if f.to == nil {
		return failure
	}
	if err := errors.Join(failure, f.to.Close()); err != nil {
		return errors.Join(err, os.Remove(f.r.requestsPath(f.j)+workingSuffix))
	}
	return nil
}

// close makes the job visible whose part is staged, unless it has failed. It returns that failure, or its
// own.
func (f *requestFile) close(failure error) error {
	if err := f.end(failure); err != nil || f.to == nil {
		return err
	}
	path := f.r.requestsPath(f.j)
	if err := os.Rename(path+workingSuffix, path); err != nil {
		return err
	}
	return os.Rename(f.r.partPath(f.j)+".staged", f.r.partPath(f.j))
}

// stage writes the part; with requests it waits for their file, which must be there first.
func (r *runner) stage(j job, text []byte) error {
	if r.spec.Requests {
		return result.WriteFile(r.partPath(j)+".staged", text)
	}
	return result.WriteFile(r.partPath(j), text)
}

func (t *tally) note(m *meter.Request) {
	if r, ok := refusalOf(m); ok {
		t.refused[r]++
	}
	t.requests++
	t.endedAt = max(t.endedAt, m.Left)
	if m.Admitted >= 0 {
		if t.liveNs == 0 || m.Arrival < t.begunAt {
			t.begunAt = m.Arrival
		}
		t.liveNs += m.Left - m.Admitted
	}
	if m.Outcome == core.Finished && !m.InWarmup && m.First >= 0 {
		t.servedNs += m.Left - m.Arrival
		t.tokens += int64(m.Tokens)
	}
}

func requestRow(j job, seed uint64, m *meter.Request) result.RequestRow {
	known := func(ns core.Time) *int64 {
		if ns < 0 {
			return nil
		}
		return &ns
	}
	refusedBy := ""
	if r, ok := refusalOf(m); ok && r.model >= 0 {
		refusedBy = j.point.Models[r.model].Name
	}
	return result.RequestRow{
		Point: j.point.Key, Replicate: int32(j.replicate), Seed: seed, ID: m.ID,
		ArrivalNs: known(m.Arrival), AdmittedNs: known(m.Admitted), FirstNs: known(m.First), LeftNs: m.Left,
		Tokens: m.Tokens, ByLast: m.ByLast, Dropped: m.Dropped,
		Outcome: m.Outcome.String(), Reason: m.Reason.String(), RefusedBy: refusedBy, Warmup: m.InWarmup,
	}
}

// load reads a finished job; ok is false if there is none. A damaged part, or one of another spec, is an
// error.
func (r *runner) load(j job) (row result.Row, done *part, ok bool, err error) {
	text, err := os.ReadFile(r.partPath(j))
	if errors.Is(err, os.ErrNotExist) {
		return result.Row{}, nil, false, nil
	}
	if err != nil {
		return result.Row{}, nil, false, err
	}
	var d part
	if err := json.Unmarshal(text, &d); err != nil {
		return result.Row{}, nil, false, fmt.Errorf("part %s: damaged: %w", r.partPath(j), err)
	}
	if d.Backend != r.backend {
		return result.Row{}, nil, false, fmt.Errorf("part %s: was run on %q, want %q", r.partPath(j),
			cmp.Or(d.Backend, simulator), cmp.Or(r.backend, simulator))
	}
	if d.Spec != r.spec.Hash || d.Point != j.point.Key || d.Replicate != j.replicate {
		return result.Row{}, nil, false, fmt.Errorf("part %s: is of spec %.12s, point %q, replicate %d;"+
			" want spec %.12s, point %q, replicate %d", r.partPath(j), d.Spec, d.Point, d.Replicate,
			r.spec.Hash, j.point.Key, j.replicate)
	}
	return r.row(j, &d), &d, true, nil
}

func (r *runner) row(j job, d *part) result.Row {
	row := result.Row{
		Point: d.Point, Policy: j.point.Policy.Kind, Concurrency: j.point.Concurrency, Thresholds: d.Thresholds,
		Replicate: d.Replicate, Seed: d.Seed, Replicates: 1, Warnings: d.Warnings,
	}
	for _, v := range j.point.Values {
		if v.Axis != "policy" && v.Axis != "concurrency" && v.Axis != "thresholds" {
			row.Axes = append(row.Axes, result.Place(v))
		}
	}
	for _, m := range r.metrics {
		v, ok := d.Values[m.Name]
		if !ok {
			v = math.NaN()
		}
		row.Values = append(row.Values, v)
	}
	return row
}
