package sim_test

import (
	"math"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// TestSteadyWindow: of three requests of 4 tokens at 6 ms, one after the other, the first is the
// warm-up; the window closes when the last is admitted.
func TestSteadyWindow(t *testing.T) {
	c := small(requests(3, 0, 2, 4), script(nothing), 6*ms)
	c.Core.LiveMax, c.Closed, c.Steady = 1, true, true
	c.Meter = meter.New(meter.Config{Models: 1, Slots: 64, WarmupRequests: 1})
	result, s := run(t, c)
	if s.OpenedNs != 24*ms || s.ClosedNs != 48*ms || s.Committed != 4 || s.Total != 12 || result.End != 72*ms {
		t.Errorf("window %d to %d with %d tokens of %d, end %d; want 24 to 48 ms, 4 of 12, 72 ms",
			s.OpenedNs, s.ClosedNs, s.Committed, s.Total, result.End)
	}
	if want := 4 / 0.024; math.Abs(s.ThroughputTokS-want) > 1e-9 || s.Models[0].Utilisation != 1 {
		t.Errorf("%v tok/s, utilisation %v, want %v and 1", s.ThroughputTokS, s.Models[0].Utilisation, want)
	}
	// In a closed loop a request arrives when it is admitted.
	if s.Warmups != 1 || s.Finished != 2 || s.Latency.Mean != 24e6 || s.TTFT.Max != 6*ms ||
		s.Admission.Max != 0 {
		t.Errorf("%d warm-ups, %d finished, latency %+v, TTFT %+v, admission %+v; want 1, 2, 24 ms, 6 ms, 0",
			s.Warmups, s.Finished, s.Latency, s.TTFT, s.Admission)
	}
}

// TestStall is the open loop of case 35: 10 requests a second, and a server that is busy for 1 s
// with the first. Every delay is counted from the planned arrival.
func TestStall(t *testing.T) {
	l := requests(10, 100*ms, 1, 1)
	l.left[0].OutputTokens = 100
	c := small(l, script(nothing), 10*ms)
	c.Core.LiveMax = 1
	var ttft []core.Time
	c.Meter = meter.New(meter.Config{Models: 1, Slots: 64,
		OnRequest: func(r *meter.Request) { ttft = append(ttft, r.First-r.Arrival) }})
	_, s := run(t, c)
	// Request k > 0 has the server from 1000 + 10 (k-1) ms on; it was planned at 100 k.
	for k := 1; k < 10; k++ {
		if want := core.Time(1000+10*k-100*k) * ms; ttft[k] != want {
			t.Errorf("request %d: first token %d ns after its planned arrival, want %d", k, ttft[k], want)
		}
	}
	if s.Latency.Max != 1000*ms || s.Admission.Max != 900*ms || s.TTFT.Max != 910*ms {
		t.Errorf("latency %+v, admission %+v, TTFT %+v; want at most 1000, 900, 910 ms",
			s.Latency, s.Admission, s.TTFT)
	}
}

// TestUntil: what happens at Until still happens, nothing after; the window ends with Until.
func TestUntil(t *testing.T) {
	for _, c := range []struct {
		untilMs, endMs core.Time
		tokens         uint64
	}{{20, 18, 3}, {18, 18, 3}, {17, 12, 2}} {
		config := small(requests(1, 0, 2, 9), script(nothing), 6*ms)
		config.Until = c.untilMs * ms
		result, s := run(t, config)
		if result.End != c.endMs*ms || result.Live != 1 || s.Total != c.tokens || s.ClosedNs != config.Until {
			t.Errorf("until %d ms: end %d, %d live, %d tokens, window to %d; want end %d ms, 1, %d, the whole time",
				c.untilMs, result.End, result.Live, s.Total, s.ClosedNs, c.endMs, c.tokens)
		}
		if s.Models[0].Utilisation != 1 {
			t.Errorf("until %d ms: utilisation %v, want 1", c.untilMs, s.Models[0].Utilisation)
		}
	}
}

// TestLittle: the mean number of live requests is their rate times the mean time that they are
// live (Little 1961), in an open loop that queues.
func TestLittle(t *testing.T) {
	length, err := workload.Geometric(20, 1, 200)
	if err != nil {
		t.Fatal(err)
	}
	lengths := workload.Lengths{Prompt: length, Output: length, MaxTokens: 50}
	source, err := workload.NewPoisson(7, 2000, 8, lengths)
	if err != nil {
		t.Fatal(err)
	}
	c := small(source, outcome.Uniform{}, 6*ms, 28*ms)
	c.Core.LiveMax = 5
	live, area, last := 0, 0.0, core.Time(0)
	c.Observe = func(_ int, now core.Time, _ []core.Event, out *core.Actions) {
		area += float64(live) * float64(now-last)
		last = now
		live += len(out.Admits) - len(out.Leaves)
	}
	_, s := run(t, c)
	if s.Finished != 2000 {
		t.Fatalf("%d finished, want all", s.Finished)
	}
	window := float64(s.ClosedNs - s.OpenedNs)
	want := float64(s.Finished) / window * (s.Latency.Mean - s.Admission.Mean)
	if got := area / window; math.Abs(got/want-1) > 1e-9 || want < 2 || want > 5 {
		t.Errorf("mean live %v, rate * mean time live %v", got, want)
	}
}
