package core_test

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// TestFailedRow: a row without numbers ends its own request, wherever it was going, and gives its pages
// back; nothing of it is committed. The others of the pass go on.
func TestFailedRow(t *testing.T) {
	for _, test := range []struct {
		name   string
		failed core.Result // beside Failed, nothing counts
	}{
		{"stays", core.Result{Failed: true}},
		{"end of sequence", core.Result{Failed: true, EOS: true}},
		{"routed", core.Result{Failed: true, Score: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := core.New(core.Config{
				Models:    []core.Model{{Name: "slm", Pages: 32}, {Name: "llm", Pages: 32}},
				Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
				Requests: 4, ContextMax: 32, PageTokens: 4,
			})
			if err != nil {
				t.Fatal(err)
			}
			var out core.Actions
			turn := func(now core.Time, in ...core.Event) {
				t.Helper()
				s.Turn(now, in, &out)
				if err := s.Check(); err != nil {
					t.Fatal(err)
				}
			}
			submit := func(id uint64) core.Event {
				return core.Event{Kind: core.Submitted, Submission: &core.Submission{
					ID: id, PromptTokens: 5, TokensMax: 9}}
			}
			done := func(results ...core.Result) core.Event {
				return core.Event{Kind: core.BatchDone, Results: results}
			}
			turn(0, submit(1), submit(2))
			turn(1, done(core.Result{Token: 3}, core.Result{Token: 4}))
			turn(2, done(test.failed, core.Result{Token: 5}))
			want := core.Leave{ID: 1, Tokens: 1, Outcome: core.Failed, Reason: core.NotANumber}
			if len(out.Leaves) != 1 || out.Leaves[0] != want {
				t.Errorf("leaves %+v, want %+v", out.Leaves, want)
			}
			if len(out.Tokens) != 1 || out.Tokens[0].ID != 2 || out.Tokens[0].Token != 5 {
				t.Errorf("tokens %+v, want token 5 of request 2", out.Tokens)
			}
			if len(out.Launches) != 1 || len(out.Launches[0].Rows) != 1 || out.Launches[0].Rows[0].ID != 2 {
				t.Errorf("launches %+v, want request 2 alone", out.Launches)
			}
			turn(3, submit(3), done(test.failed))
			if s.Counters().Failed != 2 || s.PagesHeld(0) != 2 || s.Live() != 1 {
				t.Errorf("%d failed, %d pages held, %d live, want 2, the 2 of request 3, 1",
					s.Counters().Failed, s.PagesHeld(0), s.Live())
			}
		})
	}
}
