package query_test

import (
	"fmt"

	"tokenrouter/exec/model/query"
)

// A router and the small model that it belongs to: half of the prompts shall go to the large model.
func Example() {
	r, err := query.Open("testdata/causal", "testdata/small")
	if err != nil {
		panic(err)
	}
	threshold, err := r.Threshold("arith", 0.5)
	if err != nil {
		panic(err)
	}
	for _, prompt := range [][]int32{{4, 8}, {41, 27, 1, 4, 15}} {
		score, err := r.Score(prompt)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%.4f, to the large model: %v\n", score, score >= threshold)
	}
	// Output:
	// 0.6841, to the large model: true
	// 0.2468, to the large model: false
}
