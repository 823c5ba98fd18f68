package sim_test

import (
	"context"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// Four workers ask a pair of models; 35 % of the small model's tokens go to the large one, whose
// batches wait for three requests.
func ExampleRun() {
	thresholds, err := core.FixedThresholds([]int{1, 3}, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	length, _ := workload.Fixed(200)
	requests, err := workload.NewClosed(1, 500, workload.Lengths{Prompt: length, Output: length})
	if err != nil {
		fmt.Println(err)
		return
	}
	m := meter.New(meter.Config{Models: 2, Slots: 16, WarmupRequests: 4})
	result, err := sim.Run(context.Background(), sim.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "small", Pages: 100}, {Name: "large", Pages: 100}},
			Algorithm: route.R2R{Threshold: 0.65}, Policy: core.Delayed{Thresholds: thresholds},
			Admission: core.Reserve, Requests: 16, LiveMax: 4, ContextMax: 400, PageTokens: 16,
		},
		Latency:  []latency.Model{latency.Constant(6_000_000), latency.Constant(27_900_000)},
		Outcome:  outcome.Uniform{},
		Workload: requests, Closed: true, Seed: 1, Meter: m, Steady: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := m.Summary()
	fmt.Printf("%d requests, %.0f tok/s, %.0f %% of the tokens from the large model\n",
		result.Counters[0].Finished, s.ThroughputTokS, 100*s.Models[1].Share)
	fmt.Printf("large model: %.1f rows a batch, busy %.0f %% of the time\n",
		s.Models[1].BatchMean, 100*s.Models[1].Utilisation)
	// Output:
	// 500 requests, 207 tok/s, 35 % of the tokens from the large model
	// large model: 3.2 rows a batch, busy 64 % of the time
}
