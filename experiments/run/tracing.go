package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/exec"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/twin"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome/trace"
)

// TraceDir is the folder of the traces in a results folder.
const TraceDir = "traces"

// tracing records a job for its twin in the simulator, and for good if the spec wants traces; nothing where
// neither is.
type tracing struct {
	path   string
	header trace.Header
	to     *trace.Recording
	keep   bool
}

// tracePath is the trace of a job until the run is finished.
func (r *runner) tracePath(j job) string { return filepath.Join(r.parts(), j.name()+".trace.jsonl") }

// trace begins the record of a job. Without a trace to keep it has the ways of the requests only, which takes
// the loop next to no time.
func (r *runner) trace(a *answering, j job) (t *tracing, err error) {
	t = &tracing{path: r.tracePath(j), keep: r.spec.Trace && j.replicate == 0}
	if j.point.Models[0].Latency == nil && !t.keep {
		return t, nil
	}
	if t.header, err = a.header(); err != nil {
		return nil, err
	}
	if !t.keep {
		t.header.Signals = make([]trace.Signals, len(t.header.Models))
	}
	t.to, err = trace.Create(t.path, t.header)
	return t, err
}

// header is that of the traces of the system. It is made once: weights are hashed for it.
func (a *answering) header() (trace.Header, error) {
	if a.traced == nil {
		h, err := twin.Header(a.plan)
		if err != nil {
			return h, blame(a.first, err)
		}
		a.traced = &h
	}
	return *a.traced, nil
}

func (t *tracing) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	if t.to != nil {
		t.to.Turn(node, now, in, out)
	}
}

func (t *tracing) judged(id uint64, right bool) {
	if t.to != nil {
		t.to.Judged(id, right)
	}
}

func (t *tracing) close() error {
	if t.to == nil {
		return nil
	}
	return t.to.Close()
}

// replay runs what was recorded in the simulator, under the same policy, and removes a record that is not
// kept. It is nil where step times are not known.
func (t *tracing) replay(ctx context.Context, p *spec.Point, c core.Config, mc meter.Config,
	timings []exec.Timing) (twins *twin.Speeds, err error) {
	if t.to != nil && !t.keep {
		defer func() { err = errors.Join(err, os.Remove(t.path), os.Remove(trace.StepsPath(t.path))) }()
	}
	if t.to == nil || p.Models[0].Latency == nil {
		return nil, nil
	}
	var latencies []latency.Model
	world := sim.Config{Core: c, Closed: true, Steady: p.Workload.Steady}
	for _, m := range p.Models {
		latencies, world.Beside = append(latencies, m.Latency), append(world.Beside, m.Beside)
	}
	if world.Latency, err = twin.WithBookkeeping(latencies, timings); err != nil {
		return nil, err
	}
	speeds, err := twin.Simulate(ctx, t.path, &t.header, world, mc)
	return &speeds, err
}

// publishTraces moves the traces of a finished run to their folder, named by their points.
func (r *runner) publishTraces() error {
	if !r.spec.Trace {
		return nil
	}
	dir := filepath.Join(r.dir, TraceDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for i := range r.spec.Points {
		from := r.tracePath(job{&r.spec.Points[i], 0})
		to := filepath.Join(dir, fileName(r.spec.Points[i].Key)+".jsonl")
		err := errors.Join(os.Rename(from, to), os.Rename(trace.StepsPath(from), trace.StepsPath(to)))
		if err != nil {
			return err
		}
	}
	return nil
}
