package outcome_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
	"tokenrouter/sim/workload"
)

const stepNs = 1_000_000 // one small-model step

func play(t testing.TB, text string, play outcome.Play) *outcome.Recorded {
	t.Helper()
	from, err := trace.NewReader("run.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := outcome.NewRecorded(from, play)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// system is two models of step times 1 and 3.5, one KV pool each.
func system(algorithm core.Algorithm, policy core.Policy) sim.Config {
	return sim.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "slm", Pages: 256}, {Name: "llm", Pages: 256}},
			Algorithm: algorithm, Policy: policy, Admission: core.Reserve,
			Requests: 64, LiveMax: 16, ContextMax: 64, PageTokens: 4,
		},
		Latency: []latency.Model{latency.Constant(stepNs), latency.Constant(7 * stepNs / 2)},
	}
}

// The four mean latencies of the schedule figure (TokenRouter, arXiv 2610.12242, figure 3) in
// steps of the small model, times the three requests: sums 40, 39, 32.5 and 26.
func TestSchedulesFromATrace(t *testing.T) {
	thresholds, err := core.FixedThresholds([]int{1, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		policy core.Policy
		sumNs  core.Time
	}{
		{"step-sync", core.StepSync{}, 40 * stepNs},
		{"model-sync", core.ModelSync{}, 39 * stepNs},
		{"eager", core.Eager{}, 65 * stepNs / 2},
		{"delayed", core.Delayed{Thresholds: thresholds}, 26 * stepNs},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, err := trace.Open("trace/testdata/fig4.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			recorded, err := outcome.NewRecorded(from, outcome.Paths)
			if err != nil {
				t.Fatal(err)
			}
			run := system(route.Recorded{}, c.policy)
			run.Outcome, run.Workload = recorded, recorded
			sum, finished := core.Time(0), 0
			run.Observe = func(_ int, now core.Time, _ []core.Event, out *core.Actions) {
				for _, l := range out.Leaves {
					sum += now
					finished++
					recorded.Leave(l.ID)
				}
			}
			if _, err := sim.Run(context.Background(), run); err != nil {
				t.Fatal(err)
			}
			if sum != c.sumNs || finished != 3 {
				t.Errorf("%d requests took %d ns in all, want 3 and %d", finished, sum, c.sumNs)
			}
		})
	}
}

// A run of drawn outcomes is recorded, and the trace gives the same run again: by its paths,
// and by its signals with the algorithm that made them.
func TestRecordedRunComesBack(t *testing.T) {
	r2r := route.R2R{Threshold: 0.6}
	signals := []trace.Signals{trace.Score | trace.EOS, trace.Draw | trace.EOS}
	source := func() workload.Source {
		prompt, _ := workload.Uniform(3, 9)
		output, _ := workload.Uniform(1, 20)
		s, err := workload.NewPoisson(7, 40, 100, workload.Lengths{Prompt: prompt, Output: output, MaxTokens: 15})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := system(r2r, core.Eager{})
	first.Outcome, first.Workload = outcome.Uniform{}, source()
	text := recordRun(t, first, signals)
	if n := strings.Count(text, "\n"); n != 41 {
		t.Fatalf("%d lines, want a header and 40 requests", n)
	}
	for _, c := range []struct {
		name      string
		play      outcome.Play
		algorithm core.Algorithm
		policy    core.Policy
	}{
		{"paths", outcome.Paths, route.Recorded{}, core.Eager{}},
		{"signals", outcome.Signals, r2r, core.Eager{}},
		{"paths under another policy", outcome.Paths, route.Recorded{}, core.StepSync{}},
		{"signals under another policy", outcome.Signals, r2r, core.ModelSync{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorded := play(t, text, c.play)
			again := system(c.algorithm, c.policy)
			again.Outcome, again.Workload = recorded, recorded
			if diff := cmp.Diff(text, recordRun(t, again, signals)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// recordRun runs c and returns its trace.
func recordRun(t *testing.T, c sim.Config, signals []trace.Signals) string {
	t.Helper()
	var text bytes.Buffer
	w, err := trace.NewWriter(&text, trace.Header{Models: []string{"slm", "llm"}, Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	recorder := trace.NewRecorder(w)
	c.Observe = recorder.Turn
	if _, err := sim.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(); err != nil || recorder.Skipped() != 0 {
		t.Fatalf("Close: %v, %d skipped", err, recorder.Skipped())
	}
	return text.String()
}

// With another threshold R2R asks only for what the small model said at every position, so long
// as that was recorded; the large model leaves nothing here.
func TestAnotherThreshold(t *testing.T) {
	const text = `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],"signals":[["score"],[]]}
{"id":3,"arrival_ms":0.5,"prompt_tokens":2,"output_tokens":4,"results":[{"score":[0.1,0.9,0.5,0.2]},{}]}
`
	for _, c := range []struct {
		threshold float64
		path      string
	}{{2, "0000"}, {0.9, "00x100"}, {0.5, "00x10x10"}, {0, "0x10x10x10x1"}} {
		recorded := play(t, text, outcome.Signals)
		run := system(route.R2R{Threshold: c.threshold}, core.Eager{})
		run.Outcome, run.Workload = recorded, recorded
		got := recordRun(t, run, []trace.Signals{0, 0})
		if !strings.Contains(got, `"path":"`+c.path+`"`) || !strings.Contains(got, `"arrival_ms":0.5,`) {
			t.Errorf("threshold %v: %s, want path %s", c.threshold, got, c.path)
		}
	}
}

func TestNothingIsMadeUp(t *testing.T) {
	const header = `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],` +
		`"signals":[["score"],["token"]]}` + "\n"
	for _, c := range []struct {
		name      string
		play      outcome.Play
		line      string
		algorithm core.Algorithm
		want      string
	}{
		{"a model that was never run", outcome.Signals,
			`{"id":7,"prompt_tokens":2,"output_tokens":2,"results":[{"score":[0.1,0.9]},null]}`,
			route.R2R{Threshold: 0.5},
			"trace run.jsonl:2: request 7, model 1, position 1: no token, want a recorded value: it did" +
				" not run there when the trace was recorded"},
		{"a position where it was not run", outcome.Signals,
			`{"id":7,"prompt_tokens":2,"output_tokens":3,"results":[{"score":[0.1,null,0.1]},{"token":[null,5,6]}]}`,
			route.R2R{Threshold: 0.5},
			"trace run.jsonl:2: request 7, model 0, position 1: no score, want a recorded value: it did" +
				" not run there when the trace was recorded"},
		{"another path", outcome.Paths, `{"id":7,"prompt_tokens":2,"path":"010"}`,
			route.R2R{Threshold: 0.5},
			"trace run.jsonl:2: request 7, model 0, position 1: a pass, want as recorded model 1," +
				" position 1 (path at 1)"},
		{"no path", outcome.Paths, `{"id":7,"prompt_tokens":2,"output_tokens":1,"results":[null,null]}`,
			route.Recorded{}, "trace run.jsonl:2: request 7: no path, want it to play"},
		{"no results", outcome.Signals, `{"id":7,"prompt_tokens":2,"path":"0"}`, route.R2R{},
			"trace run.jsonl:2: request 7: no results, want it to play"},
		{"a bad line", outcome.Paths, `{"id":7,"prompt_tokens":2,"path":"0y"}`, route.Recorded{},
			`trace run.jsonl:2: path = "y" at 1, near "0y", want a model, 0 to 1`},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorded := play(t, header+c.line+"\n", c.play)
			run := system(c.algorithm, core.Eager{})
			run.Outcome, run.Workload = recorded, recorded
			_, err := sim.Run(context.Background(), run)
			if err == nil || err.Error() != c.want || recorded.Err().Error() != c.want {
				t.Errorf("error %v, Err %v, want %s", err, recorded.Err(), c.want)
			}
		})
	}
}

func TestRecordedEntryLeaveAndStrangers(t *testing.T) {
	const text = `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],"signals":[[],[]]}
{"id":4,"prompt_tokens":10,"end":"length","path":"10"}
{"id":9,"arrival_ms":2,"prompt_tokens":10,"path":"0x1"}
`
	r := play(t, text, outcome.Paths)
	first, _ := r.Next()
	second, _ := r.Next()
	if _, more := r.Next(); more || r.Err() != nil {
		t.Errorf("a third request, or %v", r.Err())
	}
	want := []workload.Request{
		{ID: 4, PromptTokens: 10, MaxTokens: 2},
		{ID: 9, ArrivalNs: 2_000_000, PromptTokens: 10, OutputTokens: 1, MaxTokens: 1},
	}
	if diff := cmp.Diff(want, []workload.Request{first, second}); diff != "" {
		t.Error(diff)
	}
	if r.Entry(4) != 1 || r.Entry(9) != 0 {
		t.Errorf("entries %d and %d, want 1 and 0", r.Entry(4), r.Entry(9))
	}
	q := request(9, 1)
	if got := at(r, &q, 0, 0); got != (core.Result{Next: 1, Drop: true}) {
		t.Errorf("dropped draft: %+v", got)
	}
	if got := at(r, &q, 1, 0); got != (core.Result{Next: 1, EOS: true}) {
		t.Errorf("last token: %+v", got)
	}
	if at(r, &q, 1, 1); r.Err() == nil || !strings.Contains(r.Err().Error(), "a pass after the last") {
		t.Errorf("past the end: %v", r.Err())
	}
	r = play(t, text, outcome.Paths)
	r.Next()
	r.Leave(4)
	r.Leave(4)
	gone := request(4, 1)
	if at(r, &gone, 1, 0); r.Err() == nil || !strings.Contains(r.Err().Error(), "request 4 is not in flight") {
		t.Errorf("after Leave: %v", r.Err())
	}
}

func TestNewRecordedErrors(t *testing.T) {
	const text = `{"format":"tokenrouter-trace","version":1,"models":["slm"],"signals":[[]]}` + "\n"
	from, err := trace.NewReader("run.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, err = outcome.NewRecorded(from, outcome.Signals)
	if err == nil || !strings.Contains(err.Error(), "run.jsonl:1: signals") {
		t.Errorf("no signals to play: %v", err)
	}
	if _, err := outcome.NewRecorded(from, 0); err == nil {
		t.Error("play 0 is taken")
	}
}

// Requests that leave give their memory back.
func TestRecordedMemoryDoesNotGrow(t *testing.T) {
	const line = `,"prompt_tokens":10,"path":"0"}` + "\n"
	var text strings.Builder
	text.WriteString(`{"format":"tokenrouter-trace","version":1,"models":["slm"],"signals":[[]]}` + "\n")
	for i := range 10_000 {
		text.WriteString(`{"id":` + strconv.Itoa(i) + line)
	}
	r := play(t, text.String(), outcome.Paths)
	for {
		q, ok := r.Next()
		if !ok {
			break
		}
		r.Leave(q.ID)
	}
	if r.Err() != nil || r.Held() != 0 {
		t.Errorf("%v, %d requests held, want none", r.Err(), r.Held())
	}
}

func BenchmarkRecordedFill(b *testing.B) {
	const requests, tokens = 32, 512
	text := `{"format":"tokenrouter-trace","version":1,"models":["slm"],"signals":[[]]}` + "\n"
	for i := range requests {
		text += fmt.Sprintf(`{"id":%d,"prompt_tokens":10,"path":"%s"}`+"\n", i, strings.Repeat("0", tokens))
	}
	rows := make([]core.Row, requests)
	results := make([]core.Result, requests)
	for b.Loop() {
		b.StopTimer()
		r := play(b, text, outcome.Paths)
		batch := make([]outcome.Request, requests)
		for i := range batch {
			r.Next()
			batch[i] = request(uint64(i), tokens)
			rows[i] = core.Row{ID: uint64(i), Slot: int32(i), Start: 9, Fresh: 1, Head: true}
		}
		b.StartTimer()
		for range tokens {
			r.Fill(0, rows, batch, results)
			for i := range rows {
				rows[i].Start++
			}
		}
		if r.Err() != nil {
			b.Fatal(r.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*requests*tokens), "ns/row")
}
