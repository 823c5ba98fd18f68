package outcome_test

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// The draws of a launch of the small model with one row: position 4 of request 7.
func ExampleUniform() {
	requests := []outcome.Request{{ID: 7, Key: keyed.NewKey(1, 7), PromptTokens: 10, OutputTokens: 5}}
	rows := []core.Row{{ID: 7, Start: 13, Fresh: 1, Head: true}}
	results := make([]core.Result, 1)
	outcome.Uniform{}.Fill(0, rows, requests, results)
	fmt.Println(results[0].Score == results[0].Draw, results[0].EOS)
	// Output: true true
}

// A third of the tokens are hard, in stretches of 20 on average; in all 35 % are routed.
func ExampleNewBursts() {
	b := outcome.Bursts{RouteShare: 0.35, Easy: 0.1, Hard: 0.85, HardTokens: 20}
	m, err := outcome.NewBursts(b)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.2f routed, %.0f easy tokens, shares %.3f\n", m.RouteShare(), b.EasyTokens(), m.Stationary())
	// Output: 0.35 routed, 40 easy tokens, shares [0.667 0.333]
}

// A trace is the workload and the outcome of a run at once.
func ExampleRecorded() {
	from, err := trace.Open("trace/testdata/fig4.jsonl")
	if err != nil {
		panic(err)
	}
	defer from.Close()
	recorded, err := outcome.NewRecorded(from, outcome.Paths)
	if err != nil {
		panic(err)
	}
	for {
		r, ok := recorded.Next()
		if !ok {
			break
		}
		fmt.Println("request", r.ID, "enters at model", recorded.Entry(r.ID), "and takes", r.MaxTokens, "tokens")
	}
	fmt.Println(recorded.Err())
	// Output:
	// request 0 enters at model 0 and takes 3 tokens
	// request 1 enters at model 0 and takes 6 tokens
	// request 2 enters at model 0 and takes 6 tokens
	// <nil>
}
