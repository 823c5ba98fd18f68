package perfetto_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/experiments/perfetto"
)

type event struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Category string         `json:"cat"`
	Process  int            `json:"pid"`
	Track    int            `json:"tid"`
	At       float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Args     map[string]any `json:"args"`
}

func parse(t *testing.T, text []byte) []event {
	t.Helper()
	var trace struct {
		Events []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &trace); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return trace.Events
}

// routed writes the shortest story that has everything: request 7 waits for the small model until 1 us, is
// routed, is on a link to the large model from 7.5 to 8 us, waits until 10 us, ends at 38 us.
func routed(w *perfetto.Writer) {
	row := core.Row{ID: 7, Returned: true, Fresh: 5, Head: true}
	w.Turn(0, nil, &core.Actions{Admits: []core.Admit{{ID: 7}}})
	w.Turn(1000, nil, launched(core.Launch{Model: 0, Seq: 1, Fresh: 5, Rows: []core.Row{row}}))
	w.Turn(7500, []core.Event{{Kind: core.BatchDone, Model: 0}}, &core.Actions{})
	row.Since = 8000
	w.Turn(10000, nil, launched(core.Launch{Model: 1, Seq: 1, Fresh: 5, Rows: []core.Row{row}}))
	w.Turn(38000, []core.Event{{Kind: core.BatchDone, Model: 1}}, &core.Actions{Leaves: []core.Leave{
		{ID: 7, Tokens: 1, Outcome: core.Finished, Reason: core.TokensMax}}})
}

func launched(l core.Launch) *core.Actions { return &core.Actions{Launches: []core.Launch{l}} }

var models = []core.Model{{Name: "small"}, {Name: `la"rge`, Node: 1}}

func TestTrace(t *testing.T) {
	var out bytes.Buffer
	w := perfetto.New(&out, models)
	routed(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range parse(t, out.Bytes()) {
		if e.Phase != "M" {
			got = append(got, fmt.Sprintf("%s %s pid %d tid %d at %g for %g",
				e.Phase, e.Name, e.Process, e.Track, e.At, e.Duration))
		}
	}
	want := []string{
		"C live requests pid 1 tid 0 at 0 for 0",
		"X wait small pid 1 tid 8 at 0 for 1",
		"X batch of 1 pid 2 tid 1 at 1 for 6.5",
		"X small pid 1 tid 8 at 1 for 6.5",
		"s hand-off pid 2 tid 1 at 1 for 0",
		"f hand-off pid 3 tid 1 at 10 for 0",
		`X link to la"rge pid 1 tid 8 at 7.5 for 0.5`,
		`X wait la"rge pid 1 tid 8 at 8 for 2`,
		"X batch of 1 pid 3 tid 1 at 10 for 28",
		`X la"rge pid 1 tid 8 at 10 for 28`,
		"i finished: length pid 1 tid 8 at 38 for 0",
		"C live requests pid 1 tid 0 at 38 for 0",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// TestGone: a request that leaves while its batch runs is no longer live, and its late row changes nothing
// after.
func TestGone(t *testing.T) {
	var out bytes.Buffer
	w := perfetto.New(&out, models)
	row := core.Row{ID: 7, Returned: true}
	w.Turn(0, nil, &core.Actions{Admits: []core.Admit{{ID: 7}},
		Launches: []core.Launch{{Model: 0, Seq: 1, Rows: []core.Row{row}}}})
	w.Turn(500, nil, &core.Actions{Leaves: []core.Leave{
		{ID: 7, Outcome: core.CancelledOutcome, Reason: core.ClientLeft}}})
	w.Turn(1000, []core.Event{{Kind: core.BatchDone, Model: 0}}, &core.Actions{})
	// Refused: never live.
	w.Turn(2000, nil, &core.Actions{Leaves: []core.Leave{
		{ID: 8, Slot: -1, Outcome: core.Rejected, Reason: core.Full}}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var live []any
	for _, e := range parse(t, out.Bytes()) {
		if e.Phase == "C" {
			live = append(live, e.Args["live"])
		}
	}
	if fmt.Sprint(live) != "[1 0]" {
		t.Errorf("live requests %v, want [1 0]", live)
	}
}

// TestUnfinished: a launch in flight at the end of the log ends with it.
func TestUnfinished(t *testing.T) {
	var out bytes.Buffer
	w := perfetto.New(&out, models)
	w.Turn(1000, nil, launched(core.Launch{Model: 1, Seq: 4, Rows: []core.Row{{ID: 1}, {ID: 2}}}))
	w.Turn(3000, nil, &core.Actions{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, e := range parse(t, out.Bytes()) {
		if e.Category == "launch" && (e.Name != "batch of 2" || e.At != 1 || e.Duration != 2) {
			t.Errorf("got %+v, want a batch of 2 from 1 to 3 us", e)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestWriteError(t *testing.T) {
	w := perfetto.New(full{}, models)
	routed(w)
	if err := w.Close(); err == nil || err.Error() != "disk is full" {
		t.Errorf("error %v, want that of the writer below", err)
	}
}

func ExampleWriter() {
	w := perfetto.New(os.Stdout, []core.Model{{Name: "small"}})
	w.Turn(0, nil, &core.Actions{})
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"displayTimeUnit":"ns","traceEvents":[
	// {"ph":"M","name":"process_name","pid":1,"args":{"name":"requests"}},
	// {"ph":"M","name":"process_sort_index","pid":1,"args":{"sort_index":0}},
	// {"ph":"M","name":"process_name","pid":2,"args":{"name":"model 0 small (node 0)"}},
	// {"ph":"M","name":"process_sort_index","pid":2,"args":{"sort_index":1}},
	// {"ph":"M","name":"thread_name","pid":2,"tid":1,"args":{"name":"launches"}}]}
}
