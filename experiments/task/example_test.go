package task_test

import (
	"fmt"

	"tokenrouter/experiments/task"
)

func Example() {
	arith, err := task.Find("arith")
	if err != nil {
		panic(err)
	}
	p, err := arith.Problem(task.Test, task.FixedSeed, 0, 1)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Prompt)
	fmt.Println(p.Answer)
	fmt.Println(p.Right("Answer: 93"), p.Right("It is 93."))
	// Output:
	// Compute 49 * 7 + 25 * 4 - 70 * 5.
	// 49 * 7 = 343
	// 25 * 4 = 100
	// 70 * 5 = 350
	// 343 + 100 = 443
	// 443 - 350 = 93
	// Answer: 93
	// true false
}
