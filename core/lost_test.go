package core_test

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// TestLostHandoff: a request whose hand-off the link could not take fails there and then; its
// pages come back, N falls, and the other nodes hear of it.
func TestLostHandoff(t *testing.T) {
	s, err := core.New(core.Config{
		Models:    []core.Model{{Name: "slm", Pages: 8}, {Name: "llm", Pages: 8, Node: 1}},
		Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 4, LiveMax: 2, ContextMax: 32, PageTokens: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out core.Actions
	turn := func(now core.Time, e core.Event) {
		t.Helper()
		s.Turn(now, []core.Event{e}, &out)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	turn(0, core.Event{Kind: core.Submitted, Submission: &core.Submission{ID: 7, PromptTokens: 5, TokensMax: 9}})
	turn(1, core.Event{Kind: core.BatchDone, Model: 0, Results: []core.Result{{Token: 3, Score: 0.9}}})
	if len(out.Sends) != 1 || out.Sends[0].Anchor != 0 || out.Sends[0].Tokens != 5 {
		t.Fatalf("sends %+v, want the whole prompt of 5 tokens", out.Sends)
	}
	turn(1, core.Event{Kind: core.Lost, ID: 7})
	want := core.Leave{ID: 7, Dropped: 1, Model: -1, Outcome: core.Failed, Reason: core.LinkFailed}
	if len(out.Leaves) != 1 || out.Leaves[0] != want {
		t.Errorf("leaves %+v, want %+v", out.Leaves, want)
	}
	if len(out.News) != 1 || out.News[0].Kind != core.NewsEnded || out.News[0].Reason != core.LinkFailed {
		t.Errorf("news %+v, want the end", out.News)
	}
	if s.Live() != 0 || s.PagesHeld(0) != 0 || s.Counters().Failed != 1 {
		t.Errorf("N = %d, %d pages held, %d failed; want 0, 0, 1", s.Live(), s.PagesHeld(0), s.Counters().Failed)
	}
	defer func() {
		if recover() == nil {
			t.Error("a request that is not on its way was lost")
		}
	}()
	turn(2, core.Event{Kind: core.Lost, ID: 7})
}
