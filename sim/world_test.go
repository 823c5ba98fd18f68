package sim_test

import (
	"bytes"
	"slices"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/core/turnlog"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

const ms core.Time = 1_000_000

// list is a workload.Source of given requests, which may end with an error.
type list struct {
	left []workload.Request
	err  error
}

// Next implements workload.Source.
func (l *list) Next() (r workload.Request, ok bool) {
	if len(l.left) == 0 {
		return r, false
	}
	r, l.left = l.left[0], l.left[1:]
	return r, true
}

// Err says why the list ended early, if it did.
func (l *list) Err() error { return l.err }

// requests are n of equal lengths that come every gap.
func requests(n int, gap core.Time, prompt, output int32) *list {
	l := &list{}
	for i := range n {
		l.left = append(l.left, workload.Request{
			ID: uint64(i), ArrivalNs: int64(i) * gap, PromptTokens: prompt, OutputTokens: output,
		})
	}
	return l
}

// script is an outcome that gives what a function says of a request's position and model.
type script func(id uint64, position int32, model int) core.Result

// Fill implements outcome.Source.
func (s script) Fill(model int, rows []core.Row, requests []outcome.Request, results []core.Result) {
	for i, row := range rows {
		results[i] = core.Result{}
		if row.Head {
			r := &requests[row.Slot]
			position := row.Start + row.Fresh - r.PromptTokens
			results[i] = s(r.ID, position, model)
			results[i].EOS = r.OutputTokens > 0 && position+1 >= r.OutputTokens
		}
	}
}

// Err is nil.
func (script) Err() error { return nil }

// nothing is routed.
func nothing(uint64, int32, int) core.Result { return core.Result{} }

// small is a system of two models and R2R, with room for all, an open loop, and a meter.
func small(source workload.Source, o outcome.Source, steps ...core.Time) sim.Config {
	c := sim.Config{
		Core: core.Config{
			Algorithm: route.R2R{Threshold: 0.65}, Policy: core.Eager{}, Admission: core.Reserve,
			Requests: 64, LiveMax: 16, ContextMax: 256, PageTokens: 16,
		},
		Outcome: o, Workload: source, Seed: 1,
	}
	for i, step := range steps {
		c.Core.Models = append(c.Core.Models, core.Model{Name: []string{"SLM", "MLM", "LLM"}[i], Pages: 1000})
		c.Latency = append(c.Latency, latency.Constant(step))
	}
	c.Meter = meter.New(meter.Config{Models: len(steps), Slots: 64})
	return c
}

// run runs c and returns what it leaves.
func run(t testing.TB, c sim.Config) (sim.Result, meter.Summary) {
	t.Helper()
	result, err := sim.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return result, c.Meter.Summary()
}

// log is the turn log of a run.
func log(t testing.TB, c sim.Config) []byte {
	t.Helper()
	var configs []core.Config
	last := slices.MaxFunc(c.Core.Models, func(a, b core.Model) int { return a.Node - b.Node }).Node
	for node := range last + 1 {
		config := c.Core
		config.Node = node
		configs = append(configs, config)
	}
	var text bytes.Buffer
	w, err := turnlog.NewWriter(&text, configs...)
	if err != nil {
		t.Fatal(err)
	}
	c.Observe = w.Turn
	if _, err := sim.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}
