package workload_test

import (
	"fmt"
	"os"
	"strings"

	"tokenrouter/sim/workload"
)

// Bursty arrivals, written as a trace.
func ExampleNewGamma() {
	prompt, _ := workload.Fixed(100)
	output, _ := workload.Geometric(512, 1, 2048)
	lengths := workload.Lengths{Prompt: prompt, Output: output, MaxTokens: 1024}
	source, err := workload.NewGamma(1, 3, 10, 2, lengths)
	if err != nil {
		fmt.Println(err)
		return
	}
	writer, err := workload.NewTraceWriter(os.Stdout, workload.CSV)
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, ok := source.Next(); ok; r, ok = source.Next() {
		if err := writer.Write(r); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := writer.Flush(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// arrival_ms,prompt_tokens,output_tokens,max_tokens,prefix_group,prefix_tokens
	// 33.396178,100,215,1024,0,0
	// 42.048903,100,2048,1024,0,0
	// 43.642659,100,477,1024,0,0
}

// What is wrong with a trace is told with file, line, column and value.
func ExampleNewTrace() {
	const text = "arrival_s,prompt_tokens,output_tokens\n0,100,512\n0.25,100,many\n"
	reader := strings.NewReader(text)
	trace, err := workload.NewTrace("arrivals.csv", workload.CSV, reader, workload.TraceOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for r, ok := trace.Next(); ok; r, ok = trace.Next() {
		fmt.Println(r.ArrivalNs, r.PromptTokens, r.EndTokens())
	}
	fmt.Println(workload.Err(trace))
	// Output:
	// 0 100 512
	// trace arrivals.csv:3: output_tokens = "many", want a whole number 0 to 2147483647
}
