package quantile_test

import (
	"fmt"

	"tokenrouter/core/meter/quantile"
)

// Token gaps of a million steps in constant memory.
func ExampleSample() {
	var gaps quantile.Sample
	gaps.AddN(6_000_000, 650_000)  // ns
	gaps.AddN(33_900_000, 350_000) // ns
	median, _ := gaps.Quantile(0.5)
	longest, _ := gaps.Quantile(1)
	mean, _ := gaps.Mean()
	fmt.Println(median, longest, mean, gaps.Count())
	// Output: 6000640 33900000 1.5765e+07 1000000
}

// Every result names the rule and how many values it rests on.
func ExampleSummary() {
	latencies := quantile.Summarise([]float64{3, 1, 2})
	for _, p := range []float64{0.5, 0.99} {
		value, _ := latencies.Quantile(p)
		mark := ""
		if !quantile.TailReliable(p, int64(latencies.Count)) {
			mark = " (few)"
		}
		fmt.Printf("p%g %v%s, %s, n=%d\n", 100*p, value, mark, quantile.RuleName, latencies.Count)
	}
	// Output:
	// p50 2 (few), nearest rank, n=3
	// p99 3 (few), nearest rank, n=3
}

func ExampleMeanCI() {
	interval, err := quantile.MeanCI([]float64{207.1, 208.3, 207.9, 208.8, 207.4}, 0.95)
	fmt.Printf("%.2f tok/s, 95 %% interval %.2f to %.2f, %v\n", interval.Mean, interval.Low, interval.High, err)
	// Output: 207.90 tok/s, 95 % interval 207.05 to 208.75, <nil>
}
