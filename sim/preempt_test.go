package sim_test

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/sim/workload"
)

// TestPreemptedWorkCountsOnce is case 20: prompt 100, output 20, preempted after output token 12,
// recomputed, finished. An older request takes a page at its pass 13: with 101 + 12 tokens it
// needs a 29th page of 4, and the pool has 56, of which the younger holds 28.
func TestPreemptedWorkCountsOnce(t *testing.T) {
	l := &list{left: []workload.Request{
		{ID: 0, PromptTokens: 101, OutputTokens: 15, MaxTokens: 20},
		{ID: 1, PromptTokens: 100, OutputTokens: 20, MaxTokens: 30},
	}}
	c := small(l, script(nothing), 10*ms)
	c.Core.Admission, c.Core.PageTokens, c.Core.Models[0].Pages = core.Optimistic, 4, 56
	var younger meter.Request
	c.Meter = meter.New(meter.Config{Models: 1, Slots: 64, OnRequest: func(r *meter.Request) {
		if r.ID == 1 {
			younger = *r
		}
	}})
	result, s := run(t, c)
	// It stands still from 120 ms, when it has 12 tokens, to 150 ms, when the older one ends.
	want := meter.Request{
		ID: 1, First: 10 * ms, Left: 230 * ms, Tokens: 20, ByLast: 20,
		Outcome: core.Finished, Reason: core.EndOfSequence,
	}
	if younger != want {
		t.Errorf("%+v, want %+v", younger, want)
	}
	n := result.Counters[0]
	if n.Preempted != 1 || n.Recomputed != 112 || n.Finished != 2 || n.Committed != 35 || s.Total != 35 {
		t.Errorf("%d preempted, %d recomputed, %d finished, %d tokens, want 1, 112, 2, 35",
			n.Preempted, n.Recomputed, n.Finished, n.Committed)
	}
	// Fed: 101 + 14, 100 + 19, and what was computed twice: 111 tokens, the twelfth output token being new.
	if n.Fed != 101+14+100+19+111 {
		t.Errorf("%d tokens fed, want %d", n.Fed, 101+14+100+19+111)
	}
	if s.Gap.Max != 40*ms || s.TTFT.Max != 10*ms || s.Latency.Max != 230*ms {
		t.Errorf("gap %+v, TTFT %+v, latency %+v; want at most 40 (the stop), 10, 230 ms", s.Gap, s.TTFT, s.Latency)
	}
}
