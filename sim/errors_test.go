package sim_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/workload"
)

var errWorld = errors.New("the record ends at position 2")

// broken is an outcome that has met a fault.
type broken struct{ script }

// Err is the fault.
func (broken) Err() error { return errWorld }

// TestErrorsOfTheWorld: what outcome and workload have met ends the run with their error, and a
// launch that a latency model refuses with the model's name and the shape.
func TestErrorsOfTheWorld(t *testing.T) {
	narrow, err := latency.NewAffineWithin(latency.Coefficients{BaseNs: 1e6},
		latency.Range{Rows: latency.Between(1, 2)}, latency.Refuse)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*sim.Config)
		want   string
	}{
		"outcome":  {func(c *sim.Config) { c.Outcome = broken{script(nothing)} }, errWorld.Error()},
		"workload": {func(c *sim.Config) { c.Workload.(*list).err = errWorld }, errWorld.Error()},
		"latency": {func(c *sim.Config) { c.Latency[0] = narrow },
			"latency of SLM: a launch of 3 rows, 6 fresh and 0 context tokens lies outside"},
	} {
		t.Run(name, func(t *testing.T) {
			config := small(requests(3, 0, 2, 4), script(nothing), 6*ms, 28*ms)
			c.change(&config)
			if _, err := sim.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run: %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestErrorsOfConfig: what can not be run is refused before anything happens.
func TestErrorsOfConfig(t *testing.T) {
	apart := func(link func(int, int) latency.Link) func(*sim.Config) {
		return func(c *sim.Config) { c.Core.Models[1].Node, c.Link = 1, link }
	}
	for name, c := range map[string]struct {
		change func(*sim.Config)
		want   string
	}{
		"no outcome":        {func(c *sim.Config) { c.Outcome = nil }, "Outcome must be set"},
		"no workload":       {func(c *sim.Config) { c.Workload = nil }, "Workload and Outcome must be set"},
		"too few latencies": {func(c *sim.Config) { c.Latency = c.Latency[:1] }, "1 latency models for 2 models"},
		"no policy":         {func(c *sim.Config) { c.Core.Policy = nil }, "core: Algorithm and Policy"},
		"no link":           {apart(nil), "models on 2 nodes and no Link"},
		"a link without time": {apart(func(int, int) latency.Link { return latency.Link{} }),
			"link from node 0 to node 1 takes 0 ns, want at least 1"},
		"a barrier on two nodes": {func(c *sim.Config) {
			apart(func(int, int) latency.Link { l, _ := latency.NewLink(1, math.Inf(1)); return l })(c)
			c.Core.Policy = core.StepSync{}
		}, "is a barrier over all models"},
	} {
		t.Run(name, func(t *testing.T) {
			config := small(requests(3, 0, 2, 4), script(nothing), 6*ms, 28*ms)
			c.change(&config)
			if _, err := sim.Run(t.Context(), config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Run: %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestContext: a run stops when its context is done, also in the middle.
func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := small(requests(5000, 5*ms, 2, 50), script(nothing), ms)
	turns := 0
	config.Observe = func(int, core.Time, []core.Event, *core.Actions) {
		if turns++; turns == 20_000 {
			cancel()
		}
	}
	if _, err := sim.Run(ctx, config); !errors.Is(err, context.Canceled) || turns > 20_000+4096 {
		t.Errorf("Run: %v after %d turns, want %v soon after 20,000", err, turns, context.Canceled)
	}
	one := small(requests(1, 0, 2, 4), script(nothing), ms)
	if _, err := sim.Run(ctx, one); !errors.Is(err, context.Canceled) {
		t.Errorf("Run with a context that is done: %v, want %v", err, context.Canceled)
	}
}

// TestRefusedRequests: requests that can not be served leave as rejected with the reason, in a
// closed loop too, and the others go on.
func TestRefusedRequests(t *testing.T) {
	for _, closed := range []bool{false, true} {
		var reasons []core.Reason
		l := &list{left: []workload.Request{
			{ID: 0, PromptTokens: 4, OutputTokens: 4},
			{ID: 1, PromptTokens: 300, OutputTokens: 4},                // longer than any context
			{ID: 2, PromptTokens: 256},                                 // no room for an answer
			{ID: 3, PromptTokens: 250, OutputTokens: 4, MaxTokens: 7},  // a token too much
			{ID: 4, PromptTokens: 250, OutputTokens: 4, MaxTokens: 6},  // fits
			{ID: 5, PromptTokens: 200, OutputTokens: 40, MaxTokens: 9}, // fits
		}}
		c := small(l, script(nothing), ms)
		c.Core.LiveMax, c.Closed = 1, closed
		c.Core.Models[0].Pages = 16
		c.Meter = meter.New(meter.Config{Models: 1, Slots: 64, OnRequest: func(r *meter.Request) {
			for len(reasons) <= int(r.ID) {
				reasons = append(reasons, 0)
			}
			reasons[r.ID] = r.Reason
		}})
		result, _ := run(t, c)
		want := []core.Reason{core.EndOfSequence, core.TooLong, core.TooLong, core.TooLong,
			core.EndOfSequence, core.TokensMax}
		for i := range want {
			if i >= len(reasons) || reasons[i] != want[i] {
				t.Errorf("closed %v: reasons %v, want %v", closed, reasons, want)
				break
			}
		}
		if n := result.Counters[0]; n.Submitted != 6 || n.Rejected != 3 || n.Finished != 3 {
			t.Errorf("closed %v: %+v, want 6 submitted, 3 rejected, 3 finished", closed, n)
		}
	}
}
