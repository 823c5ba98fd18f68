package trace_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/sim/outcome/trace"
)

const hash = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"

func paired() trace.Header {
	return trace.Header{
		Models: []string{"slm", "llm"}, Signals: []trace.Signals{trace.Token, 0},
		Pair: trace.Pair{Weights: []string{hash, ""}, Tokenizer: "ab12", Algorithm: "r2r", Router: "cd34"},
	}
}

func TestHeaderOfAPair(t *testing.T) {
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, paired())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	want := `{"format":"tokenrouter-trace","version":1,"models":["slm","llm"],"signals":[["token"],[]],` +
		`"weights":["` + hash + `",""],"tokenizer":"ab12","algorithm":"r2r","router":"cd34"}` + "\n"
	if out.String() != want {
		t.Errorf("wrote\n%s\nwant\n%s", out.String(), want)
	}
	r, err := trace.NewReader("run.jsonl", &out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(paired(), r.Header()); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct{ text, want string }{
		"a hash too few": {strings.Replace(want, `,""]`, `]`, 1), ":1: weights = 1 hashes, want one for each"},
		"unknown key": {strings.Replace(want, `"router"`, `"rooter"`, 1),
			":1: rooter = an unknown key, want one of format, version, models, signals, weights, tokenizer,"},
		"a hash of no text": {strings.Replace(want, `"ab12"`, `12`, 1), ":1: tokenizer = 12, want"},
	} {
		_, err := read(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

func TestAnotherPairIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(h *trace.Header)
		want string // nothing: accepted
	}{
		{"the same", func(*trace.Header) {}, ""},
		{"names", func(h *trace.Header) { h.Models = []string{"slm", "mid"} },
			`models = ["slm" "llm"], want ["slm" "mid"]: it is of another pair`},
		{"one model", func(h *trace.Header) { h.Models, h.Pair.Weights = h.Models[:1], nil }, "of another pair"},
		{"weights", func(h *trace.Header) { h.Pair.Weights = []string{"77ff", "88"} },
			"weights = 5891b5b522d5 of slm, want 77ff: it is of another pair"},
		{"weights that one does not know", func(h *trace.Header) { h.Pair.Weights = []string{"", "88"} }, ""},
		{"tokenizer", func(h *trace.Header) { h.Pair.Tokenizer = "ef" }, "tokenizer = ab12, want ef"},
		{"nothing known", func(h *trace.Header) { h.Pair = trace.Pair{} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			have, want := paired(), paired()
			c.edit(&want)
			err := have.CheckPair(&want)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	h := paired()
	for _, c := range []struct{ algorithm, router, want string }{
		{"r2r", "cd34", ""}, {"", "", ""}, {"r2r", "", ""},
		{"citer", "cd34", `algorithm = "r2r", want "citer"`}, {"r2r", "ff", "router = cd34, want ff"},
	} {
		err := h.CheckAlgorithm(c.algorithm, c.router)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("algorithm %s, router %s: error %v, want %q", c.algorithm, c.router, err, c.want)
		}
	}
}

// tell is a run of two requests in turns: drafts of both at once, one dropped, steps beside each other.
func tell(r *trace.Recording) {
	batch := []core.Launch{{Model: 0, Rows: []core.Row{row(1, 0, 3), row(2, 0, 3)}, Fresh: 6, Returned: 2}}
	closed := func(id uint64) core.Event {
		e := submit(id)
		e.Submission.Arrival, e.Submission.TokensMax = -1, 9
		return e
	}
	r.Turn(0, 1000, []core.Event{closed(1), closed(2)}, &core.Actions{Launches: batch})
	drafts := done(0, core.Result{Token: 5, EOS: true}, core.Result{Token: 6})
	r.Turn(0, 2000, []core.Event{drafts}, &core.Actions{
		Tokens:   []core.Token{{ID: 1, Token: 5}},
		Leaves:   []core.Leave{{ID: 1, Tokens: 1, Outcome: core.Finished, Reason: core.EndOfSequence}},
		Launches: []core.Launch{{Model: 1, Rows: []core.Row{row(2, 0, 3)}, Fresh: 3, Returned: 1}},
	})
	r.Judged(1, true)
	r.Turn(0, 2500, []core.Event{closed(3)}, &core.Actions{
		Launches: []core.Launch{{Model: 0, Rows: []core.Row{{ID: 3, Fresh: 2}}, Fresh: 2, Returned: 1}},
	})
	r.Turn(0, 4500, []core.Event{done(1, core.Result{Token: 7})}, &core.Actions{
		Tokens: []core.Token{{ID: 2, Token: 7, Model: 1}},
		Leaves: []core.Leave{{ID: 2, Tokens: 1, Outcome: core.Finished, Reason: core.StopString}},
	})
	r.Judged(2, false)
	r.Turn(0, 5000, []core.Event{done(0, core.Result{})}, &core.Actions{})
}

const (
	told = `{"id":1,"prompt_tokens":3,"output_tokens":1,"tokens_max":9,"end":"eos","right":true,"path":"0",` +
		`"results":[{"token":[5]},null]}` + "\n" +
		`{"id":2,"prompt_tokens":3,"output_tokens":1,"tokens_max":9,"end":"length","right":false,"path":"0x1",` +
		`"results":[{"token":[6]},{}]}` + "\n"
	toldSteps = "model,start_ms,step_ms,beside_ms,rows,heads,returns,fresh_tokens,context_tokens\n" +
		"slm,0.001,0.001,0,2,2,2,6,0\n" + "llm,0.002,0.0025,0.002,1,1,1,3,0\n" +
		"slm,0.0025,0.0025,0.002,1,0,1,2,0\n"
)

func TestRecording(t *testing.T) {
	for _, name := range []string{"run.jsonl", "run.jsonl.gz", "run"} {
		path := filepath.Join(t.TempDir(), name)
		r, err := trace.Create(path, paired())
		if err != nil {
			t.Fatal(err)
		}
		tell(r)
		if err := r.Close(); err != nil || r.Skipped() != 1 {
			t.Errorf("%s: Close: %v, %d skipped, want the one that is still there", name, err, r.Skipped())
		}
		if n, err := trace.Check(path); n != 2 || err != nil {
			t.Errorf("%s: %d requests, %v, want 2", name, n, err)
		}
		steps, err := trace.ReadSteps(trace.StepsPath(path), paired().Models)
		want := []trace.Step{
			{Model: 0, StartNs: 1000, Ns: 1000, Rows: 2, Heads: 2, Returns: 2, Fresh: 6},
			{Model: 1, StartNs: 2000, Ns: 2500, BesideNs: 2000, Rows: 1, Heads: 1, Returns: 1, Fresh: 3},
			{Model: 0, StartNs: 2500, Ns: 2500, BesideNs: 2000, Rows: 1, Returns: 1, Fresh: 2},
		}
		if diff := cmp.Diff(want, steps); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
		if name == "run.jsonl" {
			text, _ := os.ReadFile(path)
			_, requests, _ := strings.Cut(string(text), "\n")
			rows, _ := os.ReadFile(trace.StepsPath(path))
			if diff := cmp.Diff(told+toldSteps, requests+string(rows)); diff != "" {
				t.Error(diff)
			}
		}
	}
	if _, err := trace.Create(filepath.Join(t.TempDir(), "no", "run.jsonl"), paired()); err == nil {
		t.Error("a trace is made in a folder that is not there")
	}
	if _, err := trace.Create(filepath.Join(t.TempDir(), "run.jsonl"), trace.Header{}); err == nil {
		t.Error("a trace of no models is made")
	}
}

// TestInterrupted: wherever writing stops, what is whole can be read, and the cut is told from damage.
func TestInterrupted(t *testing.T) {
	whole := head + good + strings.Replace(good, `"id":7`, `"id":8`, 1)
	for n := len(head); n < len(whole); n++ {
		r, err := trace.NewReader("run.jsonl", strings.NewReader(whole[:n]))
		if err != nil {
			t.Fatal(err)
		}
		requests, cut := 0, error(nil)
		for q := (trace.Request{}); cut == nil; {
			if cut = r.Read(&q); cut == nil {
				requests++
			}
		}
		lines := strings.Split(whole[len(head):n], "\n")
		want, last := len(lines)-1, lines[len(lines)-1]
		isWhole := last == "" || n == len(head+good)-1 || n == len(whole)-1 // but for the line's end
		if last != "" && isWhole {
			want++
		}
		if requests != want || isWhole != (cut == io.EOF) || !isWhole && !errors.Is(cut, trace.ErrCut) {
			t.Fatalf("of %q: %d requests, then %v; want %d", whole[:n], requests, cut, want)
		}
	}
	_, err := read(head + good[:60] + "\n" + good)
	if err == nil || errors.Is(err, trace.ErrCut) {
		t.Errorf("damage in the middle: %v, want an error that is no cut", err)
	}
}

func TestInterruptedAndPacked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl.gz")
	r, err := trace.Create(path, trace.Header{Models: []string{"slm", "llm"}, Signals: none})
	if err != nil {
		t.Fatal(err)
	}
	const requests = 20_000
	for id := range uint64(requests) {
		batch := []core.Launch{{Model: 0, Rows: []core.Row{row(id, 0, 3)}, Fresh: 3}}
		r.Turn(0, core.Time(id), []core.Event{submit(id)}, &core.Actions{Launches: batch})
		r.Turn(0, core.Time(id)+1, []core.Event{done(0, core.Result{})}, &core.Actions{
			Tokens: []core.Token{{ID: id}},
			Leaves: []core.Leave{{ID: id, Tokens: 1, Outcome: core.Finished, Reason: core.TokensMax}},
		})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, trace.StepsPath(path)} {
		packed, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, packed[:len(packed)/2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := trace.Check(path); n < requests/4 || n >= requests || !errors.Is(err, trace.ErrCut) {
		t.Errorf("%d requests of half a file, %v, want about half of %d and a cut", n, err, requests)
	}
	steps, err := trace.ReadSteps(trace.StepsPath(path), []string{"slm", "llm"})
	if n := len(steps); n < requests/4 || n >= requests || err != nil {
		t.Errorf("%d steps of half a file, %v, want about half of %d", n, err, requests)
	}
}

func TestStepErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.steps.csv")
	for _, c := range []struct{ name, from, to, want string }{
		{"another model", "llm", "mid", `:3: model = "mid", want one of ["slm" "llm"]`},
		{"a time of no number", "0.0025,0.002", "x,0.002", ":3: step_ms = x, want"},
		{"no time", "0.0025,0.002", "0,0", ":3: step_ms = 0, want above 0"},
		{"beside longer than the step", "0.0025,0.002", "0.0025,0.003", ":3: step_ms = 0.0025, want above"},
		{"rows of no number", "2,2,2,6,0", "2.5,2,2,6,0", `:2: rows = "2.5", want a whole number`},
		{"heads above rows", "2,2,2,6,0", "2,3,2,6,0", ":2: rows = 2, want 1 to fresh_tokens"},
		{"a value missing", "2,2,2,6,0", "2,2,2,6", ":2: 8 values, want 9"},
		{"other columns", "beside_ms", "besides", ":1: the columns"},
	} {
		text := strings.Replace(toldSteps, c.from, c.to, 1)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := trace.ReadSteps(path, []string{"slm", "llm"})
		if err == nil || !strings.HasPrefix(err.Error(), "steps "+path+c.want) {
			t.Errorf("%s: error %v, want %s", c.name, err, c.want)
		}
	}
	if _, err := trace.ReadSteps(filepath.Join(t.TempDir(), "none.csv"), nil); err == nil {
		t.Error("a file that is not there is read")
	}
}

// TestRecorderMemory: a request that does not end lets others wait, and is given up when they are too many.
func TestRecorderMemory(t *testing.T) {
	const tokens, heldMax = 1 << 16, 1 << 20
	text, skipped, err := story(t, none, func(turn turn) {
		turn(0, []core.Event{submit(0)}, core.Actions{Launches: launch(1, row(0, 0, 3))})
		for id := uint64(1); id <= heldMax/tokens+1; id++ {
			turn(1, []core.Event{submit(id)}, core.Actions{Launches: launch(0, row(id, 0, 3))})
			for range tokens - 1 {
				turn(2, []core.Event{done(0, core.Result{})}, core.Actions{
					Tokens: []core.Token{{ID: id}}, Launches: launch(0, row(id, 3, 1)),
				})
			}
			turn(3, []core.Event{done(0, core.Result{})}, core.Actions{
				Tokens: []core.Token{{ID: id}},
				Leaves: []core.Leave{{ID: id, Tokens: tokens, Outcome: core.Finished, Reason: core.TokensMax}},
			})
		}
	})
	if n := strings.Count(text, "\n"); n != heldMax/tokens+1 || skipped != 1 || err != nil {
		t.Errorf("%d requests, %d skipped, %v, want %d and the one that does not end", n, skipped, err,
			heldMax/tokens+1)
	}
}
