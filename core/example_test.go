package core_test

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// The whole life of a driver: hand in what happened, do what is asked, hand in what came of
// it. Here a request's second token is left to the large model.
func Example() {
	s, err := core.New(core.Config{
		Models:    []core.Model{{Name: "small", Pages: 100}, {Name: "large", Pages: 100}},
		Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 4, ContextMax: 1024, PageTokens: 16,
	})
	if err != nil {
		panic(err)
	}
	passes := []core.Result{{Token: 10}, {Token: 99, Score: 0.9}, {Token: 20}, {Token: 2, EOS: true}}
	var out core.Actions
	in := []core.Event{{Kind: core.Submitted, Submission: &core.Submission{ID: 1, PromptTokens: 3,
		TokensMax: 16}}}
	for now := core.Time(0); len(in) > 0; now += 10 {
		s.Turn(now, in, &out)
		for _, token := range out.Tokens {
			fmt.Printf("t=%d token %d = %d by model %d\n", now, token.Position, token.Token, token.Model)
		}
		for _, leave := range out.Leaves {
			fmt.Printf("t=%d request %d %v: %v\n", now, leave.ID, leave.Outcome, leave.Reason)
		}
		in = in[:0]
		for _, launch := range out.Launches {
			row := launch.Rows[0]
			fmt.Printf("t=%d model %d is fed %d tokens from position %d\n", now, launch.Model, row.Fresh, row.Start)
			in = append(in, core.Event{Kind: core.BatchDone, Model: launch.Model, Results: passes[:1]})
			passes = passes[1:]
		}
	}
	// Output:
	// t=0 model 0 is fed 3 tokens from position 0
	// t=10 token 0 = 10 by model 0
	// t=10 model 0 is fed 1 tokens from position 3
	// t=20 model 1 is fed 4 tokens from position 0
	// t=30 token 1 = 20 by model 1
	// t=30 model 0 is fed 1 tokens from position 4
	// t=40 token 2 = 2 by model 0
	// t=40 request 1 finished: end of sequence
}

func ExampleFeasible() {
	fmt.Println(core.Feasible([]int{2, 3}, 4))
	fmt.Println(core.Feasible([]int{2, 4}, 4))
	// Output:
	// <nil>
	// thresholds [2 4] with N = 4: sum of (B - 1) is 4, want below 4 or all can wait for ever
}

func ExampleFixedThresholds() {
	thresholds, err := core.FixedThresholds([]int{1, 3}, 4)
	if err != nil {
		panic(err)
	}
	for n := 1; n <= 4; n++ {
		fmt.Println(n, thresholds.Row(n))
	}
	// Output:
	// 1 [1 1]
	// 2 [1 2]
	// 3 [1 3]
	// 4 [1 3]
}

func ExampleTableThresholds() {
	table, err := core.TableThresholds([][]int{{1, 1}, {1, 2}, {1, 2}, {1, 3}})
	if err != nil {
		panic(err)
	}
	fmt.Println(table.At(0, 1), table.At(3, 1), table.At(4, 1), table.At(9, 1))
	// Output: 1 2 3 3
}

// Two models share a device of 80 GB, of which 90 % may be used.
func ExamplePlanPages() {
	pages, err := core.PlanPages(72_000_000_000, []core.Footprint{
		{Name: "Qwen3-0.6B", WeightBytes: 1_190_000_000, KVBytesPerTok: 114_688},
		{Name: "Qwen3-8B", WeightBytes: 16_380_000_000, KVBytesPerTok: 147_456},
	}, 16)
	fmt.Println(pages, "pages of 16 tokens each,", err)
	// Output: 12977 pages of 16 tokens each, <nil>
}
