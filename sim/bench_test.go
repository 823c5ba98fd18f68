package sim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/sim"
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
		Outcome: outcome.Uniform{}, Workload: source, Closed: true, Seed: 1, Steady: true,
		Meter: meter.New(meter.Config{Models: 2, Slots: 4 * n, WarmupRequests: n}),
	}
}

// BenchmarkRun reports committed tokens a second of one core, with KV accounting, routing
// through the Algorithm interface and all metrics: the best of many short bursts, since other
// work on the machine only ever slows one down. "bare" is the same law as a loop over counts,
// without requests, KV, interfaces or metrics: a measure of the machine.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		n          int
		thresholds []int
	}{{4, []int{1, 3}}, {64, []int{1, 40}}, {64, nil}} {
		b.Run(fmt.Sprintf("n=%d/thresholds=%v", c.n, c.thresholds), func(b *testing.B) {
			best, bare := 0.0, 0.0
			for b.Loop() {
				config := r2r(b, c.n, c.thresholds, uint64(10*c.n)+400, 512)
				start := time.Now()
				if _, err := sim.Run(context.Background(), config); err != nil {
					b.Fatal(err)
				}
				tokens := float64(config.Meter.Summary().Total)
				best = max(best, tokens/time.Since(start).Seconds())
				bare = max(bare, bareLoop(c.n, c.thresholds))
			}
			b.ReportMetric(best/1e6, "Mtok/s")
			b.ReportMetric(bare/1e6, "bare-Mtok/s")
			b.ReportMetric(best/bare, "of-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// bareLoop runs 200,000 tokens of the law and returns tokens a second.
func bareLoop(n int, thresholds []int) float64 {
	least := 1
	if thresholds != nil {
		least = thresholds[1]
	}
	const never = int64(1) << 62
	rng := rand.New(rand.NewPCG(1, 2))
	small, large, smallRuns, largeRuns := n, 0, 0, 0
	smallDone, largeDone := never, never
	tokens := 0
	start := time.Now()
	for tokens < 200_000 {
		now := min(smallDone, largeDone)
		if now == never {
			now = 0
		}
		if largeDone == now {
			tokens += largeRuns
			small += largeRuns
			largeRuns, largeDone = 0, never
		}
		if smallDone == now {
			for range smallRuns {
				if rng.Float64() < 0.35 {
					large++
				} else {
					tokens++
					small++
				}
			}
			smallRuns, smallDone = 0, never
		}
		if smallRuns == 0 && small > 0 {
			smallRuns, small, smallDone = small, 0, now+6_000_000
		}
		if largeRuns == 0 && large >= least {
			largeRuns, large, largeDone = large, 0, now+27_900_000
		}
	}
	return float64(tokens) / time.Since(start).Seconds()
}
