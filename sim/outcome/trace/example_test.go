package trace_test

import (
	"fmt"
	"os"

	"tokenrouter/sim/outcome/trace"
)

// A trace of one request: the small model made the first token, its draft of the second was
// dropped, the large model made that.
func ExampleWriter() {
	w, err := trace.NewWriter(os.Stdout, trace.Header{
		Models: []string{"slm", "llm"}, Signals: []trace.Signals{0, 0},
	})
	if err != nil {
		panic(err)
	}
	err = w.Write(&trace.Request{ID: 0, PromptTokens: 12, End: trace.EndOfSequence, Path: "00x1"})
	if err != nil {
		panic(err)
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	// Output:
	// {"format":"tokenrouter-trace","version":1,"models":["slm","llm"],"signals":[[],[]]}
	// {"id":0,"prompt_tokens":12,"output_tokens":2,"end":"eos","path":"00x1"}
}

func ExampleOpen() {
	r, err := trace.Open("testdata/fig4.jsonl")
	if err != nil {
		panic(err)
	}
	defer r.Close()
	var q trace.Request
	for r.Read(&q) == nil {
		fmt.Println(q.ID, q.OutputTokens, q.Path)
	}
	// Output:
	// 0 3 000
	// 1 6 010100
	// 2 6 001010
}
