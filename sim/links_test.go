package sim_test

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/sim/latency"
)

// TestLinks is computed by hand: SLM (6 ms) at node 0, LLM (28 ms) at node 1, links of 2 ms and
// 1 us a byte. A message is 64 bytes and 4 a token.
func TestLinks(t *testing.T) {
	us := core.Time(1000)
	for name, c := range map[string]struct {
		routed                 func(position int32) bool
		first, last, left, end core.Time // us
	}{
		// SLM to 6000; 3 prompt tokens, 76 bytes: at node 1 at 8076; LLM to 36076; its token, 68
		// bytes: back at 38144; SLM to 44144, EOS. Node 1 hears that at 46208, and the front that
		// the slot is free at 48272.
		"ends at the front": {func(p int32) bool { return p == 0 }, 36_076, 44_144, 44_144, 48_272},
		// At 44144 the draft is dropped: nothing but the order to go on, 64 bytes: at node 1 at
		// 46208; LLM to 74208, EOS. The end takes the front that token, 68 bytes: 76276.
		"ends elsewhere": {func(int32) bool { return true }, 36_076, 74_208, 76_276, 76_276},
	} {
		t.Run(name, func(t *testing.T) {
			script := script(func(_ uint64, position int32, model int) core.Result {
				score := 0.0
				if model == 0 && c.routed(position) {
					score = 1
				}
				return core.Result{Score: score}
			})
			config := small(requests(1, 0, 3, 2), script, 6*ms, 28*ms)
			config.Core.Models[1].Node = 1
			link, err := latency.NewLink(2*ms, 1e6)
			if err != nil {
				t.Fatal(err)
			}
			config.Link = func(int, int) latency.Link { return link }
			var r meter.Request
			config.Meter = meter.New(meter.Config{Models: 2, Slots: 64, Nodes: 2,
				OnRequest: func(got *meter.Request) { r = *got }})
			result, s := run(t, config)
			if r.First != c.first*us || s.ClosedNs != c.last*us || r.Left != c.left*us || result.End != c.end*us {
				t.Errorf("first token %d, last %d, left %d, end %d ns; want %d, %d, %d, %d us",
					r.First, s.ClosedNs, r.Left, result.End, c.first, c.last, c.left, c.end)
			}
			if r.Tokens != 2 || r.Outcome != core.Finished {
				t.Errorf("%+v, want 2 tokens, finished", r)
			}
		})
	}
}
