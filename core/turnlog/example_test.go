package turnlog_test

import (
	"bytes"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/turnlog"
)

// One request of two tokens on one model, logged, read and replayed.
func Example() {
	config := core.Config{
		Models: []core.Model{{Name: "slm", Pages: 4}}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 1, ContextMax: 16, PageTokens: 4,
	}
	var log bytes.Buffer
	w, err := turnlog.NewWriter(&log, config)
	if err != nil {
		panic(err)
	}
	s, err := core.New(config)
	if err != nil {
		panic(err)
	}
	var out core.Actions
	turn := func(now core.Time, e core.Event) {
		in := []core.Event{e}
		s.Turn(now, in, &out)
		w.Turn(0, now, in, &out)
	}
	turn(0, core.Event{Kind: core.Submitted, Submission: &core.Submission{ID: 7, PromptTokens: 3, TokensMax: 2}})
	turn(1000, core.Event{Kind: core.BatchDone, Results: []core.Result{{Token: 40}}})
	turn(2000, core.Event{Kind: core.BatchDone, Results: []core.Result{{Token: 41}}})
	if err := w.Flush(); err != nil {
		panic(err)
	}

	lines := bytes.SplitAfter(log.Bytes(), []byte("\n"))
	for _, part := range bytes.SplitAfter(lines[3], []byte("],")) {
		fmt.Printf("%s\n", bytes.TrimSpace(part))
	}
	r, err := turnlog.NewReader("run.jsonl", &log)
	if err != nil {
		panic(err)
	}
	turns, err := turnlog.Replay(r)
	fmt.Println(turns, "turns replayed,", err)
	// Output:
	// {"turn":2,"node":0,"now":1000,"in":[{"event":"done","model":0,"results":[{"token":40}]}],
	// "out":{"tokens":[[7,0,0,40,0,0]],
	// "launches":[{"model":0,"seq":2,"fresh":1,"context":3,"rows":[[7,0,0,3,1,1,0,1000]]}]}}
	// 3 turns replayed, <nil>
}

// A log of a longer run, drawn for https://ui.perfetto.dev.
func ExamplePerfetto() {
	r, err := turnlog.Open("testdata/delayed.jsonl")
	if err != nil {
		panic(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if err := turnlog.Perfetto(&out, r); err != nil {
		panic(err)
	}
	fmt.Println(bytes.Count(out.Bytes(), []byte(`"name":"commit"`)), "tokens,",
		bytes.Count(out.Bytes(), []byte(`"ph":"s"`)), "hand-offs")
	// Output: 15 tokens, 8 hand-offs
}
