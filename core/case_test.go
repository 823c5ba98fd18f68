package core_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// TestHandOverAfterADroppedDraft: prompt 1 5 9; small 10, 11, draft 12 routed, large 20,
// small 13, draft 14 routed, large 21. First message 1 5 9 10 11 with anchor 0; the small
// model then feeds 20 at position 5; second message 13 with anchor 6; the large model's pass
// is 20 13 at positions 5 and 6. 12 and 14 are in nobody's KV. The first prompt token (BOS)
// is sent once.
func TestHandOverAfterADroppedDraft(t *testing.T) {
	passes := []core.Result{
		{Token: 10}, {Token: 11}, {Token: 12, Next: llm, Drop: true}, {Token: 20}, {Token: 13},
		{Token: 14, Next: llm, Drop: true}, {Token: 21},
	}
	for on := range 2 {
		t.Run(fmt.Sprintf("large model on node %d", on), func(t *testing.T) {
			config := core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: route.Recorded{}}
			config.Models[llm].Node = on
			w := newWorld(t, config, 10*ms, 30*ms)
			w.result = func(_ uint64, n, _, _ int) core.Result { return passes[n] }
			var rows [2][][2]int32
			var anchors [][2]int32
			w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
				for _, l := range out.Launches {
					rows[l.Model] = append(rows[l.Model], [2]int32{l.Rows[0].Start, l.Rows[0].Fresh})
				}
				for _, h := range out.Sends {
					if h.To == llm {
						anchors = append(anchors, [2]int32{h.Anchor, h.Tokens})
					}
				}
			}
			w.submit(0, core.Submission{ID: 1, TokensMax: 5}, 1, 5, 9)
			w.run().settled()
			want := [2][][2]int32{{{0, 3}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}, {{0, 5}, {5, 2}}}
			if !reflect.DeepEqual(rows, want) {
				t.Errorf("passes (start, fresh) %v, want %v", rows, want)
			}
			if on == 1 && !slices.Equal(anchors, [][2]int32{{0, 5}, {6, 1}}) {
				t.Errorf("messages (anchor, tokens) %v, want [[0 5] [6 1]]", anchors)
			}
			fed := [][]int32{w.nodes[0].shadow.fed[slm], w.nodes[on].shadow.fed[llm]}
			if all := []int32{1, 5, 9, 10, 11, 20, 13}; !slices.Equal(fed[0], all) || !slices.Equal(fed[1], all) {
				t.Errorf("fed %v, want %v to both", fed, all)
			}
			if answer := w.answers[1]; !slices.Equal(answer, []int32{10, 11, 20, 13, 21}) {
				t.Errorf("answer %v, want 10 11 20 13 21", answer)
			}
		})
	}
}

// TestClientLeavesWhileQueuedAtTheLargeModel: N = 3, thresholds (1,3), steps 50 and 150. Two
// wait at the large model and one is closed: it is gone at once, its pages are back in both
// pools, N is 2 and the threshold 2, so that the other goes on when the third comes.
func TestClientLeavesWhileQueuedAtTheLargeModel(t *testing.T) {
	policy := core.Delayed{Thresholds: fixed(t, 3, 1, 3)}
	w := newWorld(t, core.Config{Models: models(2), Policy: policy, Algorithm: route.Recorded{}, LiveMax: 3},
		50*ms, 150*ms)
	w.strings(map[uint64]string{1: "SL", 2: "SL", 3: "SSL"})
	large := w.launches(llm)
	for id := range uint64(3) {
		w.submit(0, core.Submission{ID: id + 1, TokensMax: 9}, 1, 2, 3, 4)
	}
	w.cancel(60*ms, 1, core.ClientLeft)
	w.until(61 * ms)
	s := w.nodes[0].s
	// Request 2 holds a page of 4 at the small model, request 3 two; nobody any at the large.
	if s.Live() != 2 || s.Queued(llm) != 1 || s.PagesHeld(slm) != 3 || s.PagesHeld(llm) != 0 {
		t.Errorf("N %d, %d queued, pages %d and %d, want 2, 1, 3 and 0", s.Live(), s.Queued(llm),
			s.PagesHeld(slm), s.PagesHeld(llm))
	}
	w.run().settled()
	wantLaunches(t, *large, launched{100, []uint64{2, 3}})
}

// TestClientLeavesBeforeAdmission: no forward pass at all.
func TestClientLeavesBeforeAdmission(t *testing.T) {
	w := newWorld(t, core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: route.Recorded{},
		LiveMax: 1}, 50*ms, 150*ms)
	w.strings(map[uint64]string{1: "SL", 2: "SL"})
	w.submit(0, core.Submission{ID: 1, TokensMax: 9}, 1)
	w.submit(0, core.Submission{ID: 2, TokensMax: 9}, 1)
	w.cancel(10*ms, 2, core.ClientLeft)
	w.run().settled()
	if w.passes[2] != 0 || w.leaves[2].Reason != core.ClientLeft || w.leftAt[2] != 10*ms {
		t.Errorf("%d passes, %+v at %d, want none, left at 10", w.passes[2], w.leaves[2], w.leftAt[2]/ms)
	}
}

// TestPreemptedWorkIsCountedApart: prompt 100, output 20, preempted after output token 12,
// recomputed, finished: 20 tokens, one request finished, 112 tokens recomputed.
func TestPreemptedWorkIsCountedApart(t *testing.T) {
	config := core.Config{
		Models: models(1), Policy: core.Eager{}, Algorithm: route.Recorded{}, Admission: core.Optimistic,
		PageTokens: 4,
	}
	config.Models[0].Pages = 55
	w := newWorld(t, config, 10*ms)
	w.result = func(uint64, int, int, int) core.Result { return core.Result{} }
	firsts, preemptedAt := map[uint64]int{}, 0
	w.observe = func(n *node, _ []core.Event, out *core.Actions) {
		for _, tok := range out.Tokens {
			if tok.Position == 0 {
				firsts[tok.ID]++
			}
		}
		if n.s.Counters().Preempted == 1 && preemptedAt == 0 {
			preemptedAt = len(n.shadow.tokens[2]) - 100
		}
	}
	w.submit(0, core.Submission{ID: 1, PromptTokens: 97, TokensMax: 40})
	w.submit(0, core.Submission{ID: 2, PromptTokens: 100, TokensMax: 20})
	w.run().settled()
	c := w.nodes[0].s.Counters()
	if preemptedAt != 12 || c.Recomputed != 112 || c.Preempted != 1 || c.Finished != 2 || c.Committed != 60 {
		t.Errorf("preempted after token %d, %+v", preemptedAt, c)
	}
	if l := w.leaves[2]; l.Tokens != 20 || firsts[2] != 1 {
		t.Errorf("%+v, %d first tokens, want 20 tokens and one first", l, firsts[2])
	}
	if c.Fed != 97+39+100+19+112-1 { // the 112th was new to KV
		t.Errorf("%d tokens fed", c.Fed)
	}
}

// TestATurnIsASet (I9): also where events name the same request; every order of them gives the
// same bytes.
func TestATurnIsASet(t *testing.T) {
	sub := func(id uint64, prompt, tokens int32) core.Event {
		return core.Event{Kind: core.Submitted, Submission: &core.Submission{
			ID: id, PromptTokens: prompt, TokensMax: tokens,
		}}
	}
	cancel := func(id uint64, reason core.Reason) core.Event {
		return core.Event{Kind: core.Cancelled, ID: id, Reason: reason}
	}
	events := []core.Event{
		sub(2, 5, 3), sub(2, 4, 3), sub(3, 2, 2), cancel(1, core.TimedOut), cancel(1, core.ClientLeft), cancel(3,
			core.StopString),
		{Kind: core.BatchDone, Results: []core.Result{{Token: 1}, {Token: 2, Next: llm}}},
	}
	want := ""
	permute(events, func(in []core.Event) {
		s, err := core.New(goodConfig())
		if err != nil {
			t.Fatal(err)
		}
		var out core.Actions
		s.Turn(0, []core.Event{sub(1, 1, 9), sub(7, 1, 9)}, &out)
		s.Turn(1, in, &out)
		got := text(&out)
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("an order of events gives\n%s\nanother\n%s", got, want)
		}
	})
}

// permute calls do with every order of events.
func permute(events []core.Event, do func(in []core.Event)) {
	var place func(in []core.Event, n int)
	place = func(in []core.Event, n int) {
		if n == len(in) {
			do(slices.Clone(in))
			return
		}
		for i := n; i < len(in); i++ {
			in[n], in[i] = in[i], in[n]
			place(in, n+1)
			in[n], in[i] = in[i], in[n]
		}
	}
	place(slices.Clone(events), 0)
}
