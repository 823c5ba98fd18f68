package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/replan"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// ours is the pair on our executor, in this process.
type ours struct {
	plan   *system.Plan
	system *system.System
	seed   uint64
}

// openOurs loads the models for a rule; without one the large model alone. Each has its own part of the
// processors, where there is one.
func openOurs(ctx context.Context, e *experiment, m *models, r *routingKeys) (*ours, error) {
	var list []spec.SystemModel
	for i, folder := range m.folders {
		list = append(list, spec.SystemModel{Name: names[i], Dir: folder, Processors: processors(e.Threads, i)})
	}
	s := spec.NewSystem(list...)
	s.Concurrency, s.Queue, s.ContextMax = e.live(), e.live(), m.contexts
	choice := system.Choice{Backend: cpu.Backend()}
	switch {
	case r == nil:
		s.Router = spec.Router{Algorithm: "large"}
	case r.keyed():
		choice.Algorithm = r.rule()
	default:
		s.Router = spec.Router{Algorithm: r.Algorithm, Threshold: r.Threshold, HasThreshold: true}
	}
	plan, err := system.Prepare(s, choice)
	if err != nil {
		return nil, err
	}
	opened, err := plan.Open(ctx, system.Run{Seed: e.Seed})
	if err != nil {
		return nil, err
	}
	return &ours{plan: plan, system: opened, seed: e.Seed}, nil
}

func (o *ours) close() { o.system.Close() }

// measure answers the requests of a point. Thresholds are planned while it runs, as serve does it; planner,
// if not nil, has planned before.
func (o *ours) measure(ctx context.Context, p point, prompts [][]int32, planner *replan.Planner,
) (*measurement, error) {
	c := o.plan.Core
	c.LiveMax = p.Requests
	if p.routing != nil {
		c.Algorithm, c.Policy = planner.Watched(p.routing.rule()), planner
	}
	var failed error
	ran := system.Run{Seed: o.seed, Failed: func(err error) { failed = err }}
	var loop *exec.Loop
	if planner != nil {
		ran.Observe = func(_ int, now core.Time, in []core.Event, out *core.Actions) {
			planner.Observe(now, in, out, loop.Scheduler().Live())
		}
	}
	again, err := o.system.Again(c, ran)
	if err != nil {
		return nil, err
	}
	defer again.Close()
	loop = again.Loop
	running, end := context.WithCancel(ctx)
	defer end()
	r := newRecorder(p.Requests)
	large := int32(len(c.Models) - 1)
	var left atomic.Int64
	for i := range p.Requests {
		request := &exec.Request{
			ID: uint64(i), Prompt: prompts[i], TokensMax: int32(p.Tokens),
			Sampling: &exec.Sampling{IgnoreEOS: true},
			Sink: sink{of: r, request: i, large: large, left: func() {
				if left.Add(1) == int64(p.Requests) {
					end()
				}
			}},
		}
		if err := loop.Submit(request); err != nil {
			return nil, err
		}
	}
	_ = loop.Run(running) // its error is that running has ended, as it must
	if failed == nil && ctx.Err() != nil {
		failed = ctx.Err()
	}
	if failed != nil {
		return nil, fmt.Errorf("ours: %w", failed)
	}
	if p.routing != nil {
		t := loop.Timings()[0]
		r.steps, r.stepNs, r.modelNs = int(t.Passes), time.Duration(t.DueNs+t.StepNs), time.Duration(t.DeviceNs)
	}
	name := "ours"
	if p.routing == nil {
		name = "large only, ours"
	}
	return r.measurement(name, p), nil
}

// processors are those of model i: as many as its threads, and no other model's where there are enough.
func processors(threads, i int) []int {
	var own []int
	for t := range threads {
		own = append(own, (i*threads+t)%runtime.NumCPU())
	}
	return own
}

// newPlanner plans thresholds for n requests.
func newPlanner(ctx context.Context, n int) (*replan.Planner, error) {
	p, err := replan.New(replan.Config{Models: 2, LiveMax: n})
	if err == nil {
		go p.Run(ctx)
	}
	return p, err
}
