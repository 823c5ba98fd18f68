package trace_test

import (
	"bytes"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/sim/outcome/trace"
)

type turn func(now core.Time, in []core.Event, out core.Actions)

// story hands turns to a Recorder and returns the requests that it wrote.
func story(t *testing.T, signals []trace.Signals, tell func(turn)) (text string, skipped uint64, err error) {
	t.Helper()
	var out bytes.Buffer
	w, err := trace.NewWriter(&out, trace.Header{Models: []string{"slm", "llm"}, Signals: signals})
	if err != nil {
		t.Fatal(err)
	}
	r := trace.NewRecorder(w)
	tell(func(now core.Time, in []core.Event, out core.Actions) { r.Turn(0, now, in, &out) })
	err = r.Close()
	_, text, _ = strings.Cut(out.String(), "\n")
	return text, r.Skipped(), err
}

func submit(id uint64) core.Event {
	return core.Event{Kind: core.Submitted, Submission: &core.Submission{ID: id, Arrival: 500, PromptTokens: 3}}
}

func done(m int, results ...core.Result) core.Event {
	return core.Event{Kind: core.BatchDone, Model: m, Results: results}
}

func launch(m int, rows ...core.Row) []core.Launch { return []core.Launch{{Model: m, Rows: rows}} }

func row(id uint64, start, fresh int32) core.Row {
	return core.Row{ID: id, Start: start, Fresh: fresh, Head: true}
}

var none = []trace.Signals{0, 0}

func TestRecorderPathAndSignals(t *testing.T) {
	// A prompt in two chunks; a draft that is dropped; the token of the large model, behind a
	// barrier: it is committed a turn after its completion.
	text, skipped, err := story(t, []trace.Signals{trace.Score, trace.Token},
		func(turn turn) {
			turn(600, []core.Event{submit(9)}, core.Actions{Launches: launch(0, core.Row{ID: 9, Fresh: 2})})
			turn(700, []core.Event{done(0, core.Result{})}, core.Actions{Launches: launch(0, row(9, 2, 1))})
			turn(800, []core.Event{done(0, core.Result{Score: 0.9})}, core.Actions{Launches: launch(1, row(9, 0, 3))})
			turn(900, []core.Event{done(1, core.Result{Token: 42, EOS: true})}, core.Actions{})
			turn(950, nil, core.Actions{
				Tokens: []core.Token{{ID: 9, Token: 42, Model: 1}},
				Leaves: []core.Leave{{ID: 9, Tokens: 1, Outcome: core.Finished, Reason: core.EndOfSequence}},
			})
		})
	want := `{"id":9,"arrival_ms":0.0005,"prompt_tokens":3,"output_tokens":1,"end":"eos","path":"0x1",` +
		`"results":[{"score":[0.9]},{"token":[42]}]}` + "\n"
	if text != want || skipped != 0 || err != nil {
		t.Errorf("wrote\n%s(%d skipped, %v), want\n%s", text, skipped, err, want)
	}
}

func TestRecorderWritesInOrderOfSubmission(t *testing.T) {
	leave := func(id uint64, reason core.Reason, outcome core.Outcome) []core.Leave {
		return []core.Leave{{ID: id, Tokens: 1, Outcome: outcome, Reason: reason}}
	}
	token := func(id uint64) []core.Token { return []core.Token{{ID: id}} }
	text, skipped, err := story(t, none, func(turn turn) {
		rejected := []core.Leave{{ID: 3, Slot: -1, Outcome: core.Rejected, Reason: core.TooLong}}
		turn(0, []core.Event{submit(1), submit(2), submit(3), submit(4)}, core.Actions{
			Leaves: rejected, Launches: launch(0, row(1, 0, 3), row(2, 0, 3), row(4, 0, 3)),
		})
		// 2 is cancelled while it runs, 4 ends first, 1 last; the results of 2 come late.
		turn(1, []core.Event{{Kind: core.Cancelled, ID: 2}}, core.Actions{
			Leaves: leave(2, core.ClientLeft, core.CancelledOutcome),
		})
		turn(2, []core.Event{done(0, core.Result{}, core.Result{}, core.Result{})}, core.Actions{
			Tokens: append(token(1), token(4)...), Leaves: leave(4, core.TokensMax, core.Finished),
			Launches: launch(0, row(1, 3, 1)),
		})
		// 1 is stopped by its client while a draft of the second token has been dropped.
		turn(3, []core.Event{done(0, core.Result{})}, core.Actions{Launches: launch(1, row(1, 0, 4))})
		turn(4, []core.Event{{Kind: core.Cancelled, ID: 1, Reason: core.StopString}}, core.Actions{
			Leaves: leave(1, core.StopString, core.Finished),
		})
		turn(5, []core.Event{submit(6)}, core.Actions{}) // still there at the end
	})
	const rest = `,"arrival_ms":0.0005,"prompt_tokens":3,"output_tokens":1,"end":"length","path":"0"}` + "\n"
	if want := `{"id":1` + rest + `{"id":4` + rest; text != want || skipped != 2 || err != nil {
		t.Errorf("wrote\n%s(%d skipped, %v), want\n%s and 2 skipped", text, skipped, err, want)
	}
}

func TestRecorderReportsIDsThatFall(t *testing.T) {
	_, skipped, err := story(t, none, func(turn turn) {
		for _, id := range []uint64{5, 4} {
			turn(1, []core.Event{submit(id)}, core.Actions{Launches: launch(0, row(id, 0, 3))})
			turn(2, []core.Event{done(0, core.Result{})}, core.Actions{
				Tokens: []core.Token{{ID: id}},
				Leaves: []core.Leave{{ID: id, Tokens: 1, Outcome: core.Finished, Reason: core.TokensMax}},
			})
		}
	})
	if err == nil || !strings.Contains(err.Error(), "request 4: id = 4, want above 5") || skipped != 1 {
		t.Errorf("error %v, %d skipped, want the id and 1", err, skipped)
	}
}
