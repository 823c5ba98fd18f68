package result_test

import (
	"fmt"

	"tokenrouter/experiments/result"
)

// Two replicates of 100 tokens, one in 1 s and one in 9 s: 20 tok/s.
func ExampleAggregate() {
	metrics := []result.Metric{
		{Name: "throughput_tok_s", Unit: "tok/s", Weight: "window_s"},
		{Name: "window_s", Unit: "s", Total: true},
	}
	row, err := result.Aggregate(metrics, []result.Row{
		{Point: "concurrency=2", Values: []float64{100, 1}},
		{Point: "concurrency=2", Values: []float64{100.0 / 9, 9}},
	})
	fmt.Println(row.Point, row.Values, err)
	// Output: concurrency=2 [20 10] <nil>
}
