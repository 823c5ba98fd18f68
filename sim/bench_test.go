package sim_test

import (
	"context"
	"fmt"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/keyed"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// r2r is a closed loop of n workers on the published R2R setting: routing probability 0.35,
// steps of 6.0 and 27.9 ms (TokenRouter, arXiv 2610.12242, figure 10).
func r2r(tb testing.TB, n int, thresholds []int, requests uint64, tokens int32) sim.Config {
	tb.Helper()
	var policy core.Policy = core.Eager{}
	if thresholds != nil {
		t, err := core.FixedThresholds(thresholds, n)
		if err != nil {
			tb.Fatal(err)
		}
		policy = core.Delayed{Thresholds: t}
	}
	prompt, _ := workload.Fixed(100)
	output, _ := workload.Fixed(tokens)
	source, err := workload.NewClosed(1, requests, workload.Lengths{Prompt: prompt, Output: output})
	if err != nil {
		tb.Fatal(err)
	}
	pages := n * (100 + int(tokens) + 15) / 16 * 2
	return sim.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "small", Pages: pages}, {Name: "large", Pages: pages}},
			Algorithm: route.R2R{Threshold: 0.65}, Policy: policy, Admission: core.Reserve,
			Requests: 4 * n, LiveMax: n, ContextMax: 100 + int(tokens), PageTokens: 16,
		},
		Latency: []latency.Model{latency.Constant(6_000_000), latency.Constant(27_900_000)},
		Outcome: uniform{}, Workload: source, Closed: true, Seed: 1, Steady: true,
		Meter: meter.New(meter.Config{Models: 2, Slots: 4 * n, WarmupRequests: n}),
	}
}

// BenchmarkRun reports committed tokens a second of one core, with KV accounting, routing
// through the Algorithm interface and all metrics.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		n          int
		thresholds []int
	}{{4, []int{1, 3}}, {64, []int{1, 40}}, {64, nil}} {
		b.Run(fmt.Sprintf("n=%d/thresholds=%v", c.n, c.thresholds), func(b *testing.B) {
			tokens := 0.0
			for b.Loop() {
				config := r2r(b, c.n, c.thresholds, 4000, 512)
				if _, err := sim.Run(context.Background(), config); err != nil {
					b.Fatal(err)
				}
				tokens += float64(config.Meter.Summary().Total)
			}
			b.ReportMetric(tokens/b.Elapsed().Seconds()/1e6, "Mtok/s")
		})
	}
}

type uniform struct{}

func (uniform) Err() error { return nil }
func (uniform) Fill(model int, rows []core.Row, requests []outcome.Request, results []core.Result) {
	for i := range rows {
		row := &rows[i]
		req := &requests[row.Slot]
		position := row.Start + row.Fresh - req.PromptTokens
		u := keyed.Float(req.Key.At(uint32(position), uint32(model), keyed.Route))
		r := &results[i]
		r.Score, r.Draw = u, u
		r.EOS = position+1 == req.OutputTokens
	}
}
