package run_test

import (
	"context"
	"fmt"
	"os"

	"tokenrouter/experiments/run"
	"tokenrouter/experiments/spec"
)

// The four schedules of TokenRouter (arXiv 2610.12242, figure 4): mean latencies of 13.33, 13.00, 10.83 and
// 8.67 SLM steps.
func Example() {
	s, err := spec.Load("../schedules.toml")
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "schedules")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	report, err := run.Run(context.Background(), s, run.Options{Out: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range report.Summary.Rows {
		row := &report.Summary.Rows[i]
		latency, _ := report.Summary.Value(row, "latency_mean_ms")
		fmt.Printf("%-10s %.3f\n", row.Policy, latency)
	}
	// Output:
	// step-sync  13.333
	// model-sync 13.000
	// eager      10.833
	// delayed    8.667
}
