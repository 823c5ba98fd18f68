package meter_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/meter"
)

const ms core.Time = 1_000_000

// turns hands turns of node 0 to a Meter.
type turns struct{ m *meter.Meter }

// at is a turn at a time in ms: models whose passes have ended, and what came of it.
func (r turns) at(msec core.Time, done []int, out core.Actions) {
	var in []core.Event
	for _, m := range done {
		in = append(in, core.Event{Kind: core.BatchDone, Model: m})
	}
	r.m.Turn(0, msec*ms, in, &out)
}

// token is a token of a slot, made by a model.
func token(slot, model int32) core.Token {
	return core.Token{ID: uint64(slot), Slot: slot, Model: model}
}

// admit is an admission of slot; the request's ID is that of its slot.
func admit(slot int32, arrivalMs core.Time) core.Admit {
	return core.Admit{ID: uint64(slot), Slot: slot, Arrival: arrivalMs * ms}
}

func left(slot int32, o core.Outcome) core.Leave {
	return core.Leave{ID: uint64(slot), Slot: slot, Outcome: o}
}

// launch is a pass with rows, fresh tokens, and the rows' time in the queue.
func launch(model, rows int, fresh int64, waitMs core.Time) core.Launch {
	return core.Launch{Model: model, Rows: make([]core.Row, rows), Fresh: fresh, WaitNs: waitMs * ms}
}

func tokens(list ...core.Token) []core.Token     { return list }
func admits(list ...core.Admit) []core.Admit     { return list }
func leaves(list ...core.Leave) []core.Leave     { return list }
func launches(list ...core.Launch) []core.Launch { return list }

// exactly is Stats of a few values: the tails of few are not to be relied on.
func exactly(count int64, mean float64, p50, p90, least, greatest int64) *meter.Stats {
	return &meter.Stats{Count: count, Mean: mean, P50: p50, P90: p90, P95: p90, P99: p90,
		Min: least, Max: greatest, Exact: true}
}

// TestEveryMetric computes each field of the Summary by hand. Two models, two requests: A comes
// at 0 and is admitted at 0, its tokens are committed at 10 (model 0) and 50 (model 1), with a
// draft dropped at 20; B comes at 4, is admitted at 12, and has one token, at 30.
func TestEveryMetric(t *testing.T) {
	var requests []meter.Request
	m := meter.New(meter.Config{
		Models: 2, Slots: 4, GoodTTFT: 20 * ms, GoodTPOT: 40 * ms,
		OnRequest: func(r *meter.Request) { requests = append(requests, *r) },
	})
	r := turns{m}
	r.at(0, nil, core.Actions{Admits: admits(admit(0, 0)), Launches: launches(launch(0, 1, 10, 0))})
	r.at(10, []int{0}, core.Actions{Tokens: tokens(token(0, 0)), Launches: launches(launch(0, 1, 1, 0))})
	r.at(12, nil, core.Actions{Admits: admits(admit(1, 4))})
	away := launch(1, 1, 12, 0)
	away.Pendings, away.PendingNs = 2, 6*ms
	r.at(20, []int{0}, core.Actions{Launches: launches(launch(0, 1, 5, 8), away)})
	m.Pages(0, 3)
	m.Pages(0, 2)
	m.Pages(1, 5)
	r.at(30, []int{0}, core.Actions{Tokens: tokens(token(1, 0)), Leaves: leaves(left(1, core.Finished))})
	endA := left(0, core.Finished)
	endA.Dropped, endA.Reason = 1, core.TokensMax
	r.at(50, []int{1}, core.Actions{Tokens: tokens(token(0, 1)), Leaves: leaves(endA)})
	rejected := core.Leave{ID: 9, Slot: -1, Outcome: core.Rejected, Reason: core.TooLong}
	r.at(50, nil, core.Actions{Leaves: leaves(rejected)})

	want := meter.Summary{
		OpenedNs: 0, ClosedNs: 50 * ms, Committed: 3, Total: 3,
		ThroughputTokS: 60,             // 3 tokens in 50 ms
		GoodputTokS:    40,             // A's two; B's first comes after 26 ms
		Finished:       2, Rejected: 1, //
		TTFT:      exactly(2, 18e6, 10*ms, 26*ms, 10*ms, 26*ms),
		Gap:       exactly(1, 40e6, 40*ms, 40*ms, 40*ms, 40*ms),
		TPOT:      exactly(1, 40e6, 40*ms, 40*ms, 40*ms, 40*ms),
		Latency:   exactly(2, 38e6, 26*ms, 50*ms, 26*ms, 50*ms),
		Admission: exactly(2, 4e6, 0, 8*ms, 0, 8*ms),
		Models: []meter.ModelSummary{
			{Launches: 3, Rows: 3, Fresh: 16, Committed: 2, Share: 2. / 3, BatchMean: 1,
				Utilisation: 0.6, QueueMeanNs: 8e6 / 3, PagesMax: 3},
			{Launches: 1, Rows: 1, Fresh: 12, Committed: 1, Share: 1. / 3, BatchMean: 1,
				Utilisation: 0.6, PendMeanNs: 3e6, PagesMax: 5},
		},
	}
	if d := cmp.Diff(want, m.Summary()); d != "" {
		t.Errorf("want - got +:\n%s", d)
	}
	wantRequests := []meter.Request{
		{ID: 1, Arrival: 4 * ms, Admitted: 12 * ms, First: 30 * ms, Left: 30 * ms, Tokens: 1,
			Outcome: core.Finished},
		{ID: 0, First: 10 * ms, Left: 50 * ms, Tokens: 2, ByLast: 1, Dropped: 1,
			Outcome: core.Finished, Reason: core.TokensMax},
		{ID: 9, Arrival: -1, Admitted: -1, First: -1, Left: 50 * ms, Outcome: core.Rejected, Reason: core.TooLong},
	}
	if d := cmp.Diff(wantRequests, requests); d != "" {
		t.Errorf("requests, want - got +:\n%s", d)
	}
}

// TestDroppedDraftsAndRoleChunks is case 35: arrival 0; a draft at 10 ms is routed; the large
// model commits at 50; more tokens at 56, 62 and 96. Five requests of the warm-up come before.
func TestDroppedDraftsAndRoleChunks(t *testing.T) {
	m := meter.New(meter.Config{Models: 2, Slots: 8, WarmupRequests: 5})
	r := turns{m}
	const start = 1000
	for slot := range int32(5) {
		r.at(0, nil, core.Actions{Admits: admits(admit(slot, 0))})
		r.at(50, []int{0}, core.Actions{Tokens: tokens(token(slot, 0)), Leaves: leaves(left(slot, core.Finished))})
	}
	r.at(start, nil, core.Actions{Admits: admits(admit(0, start)), Launches: launches(launch(0, 1, 10, 0))})
	r.at(start+10, []int{0}, core.Actions{Launches: launches(launch(1, 1, 10, 0))}) // nothing is committed
	r.at(start+50, []int{1}, core.Actions{Tokens: tokens(token(0, 1))})
	r.at(start+56, nil, core.Actions{Tokens: tokens(token(0, 0))})
	r.at(start+62, nil, core.Actions{Tokens: tokens(token(0, 0))})
	r.at(start+96, nil, core.Actions{Tokens: tokens(token(0, 1)), Leaves: leaves(left(0, core.Finished))})
	s := m.Summary()
	if s.TTFT.Count != 1 || s.TTFT.Mean != 50e6 {
		t.Errorf("TTFT %+v, want one of 50 ms: not of the draft", s.TTFT)
	}
	if d := cmp.Diff(exactly(3, 46e6/3, 6*ms, 34*ms, 6*ms, 34*ms), s.Gap); d != "" {
		t.Errorf("gaps, want 6, 6, 34 ms:\n%s", d)
	}
	if s.TPOT.Mean != math.Floor(46e6/3) {
		t.Errorf("TPOT %v ns, want 15.333 ms: (96 - 50) / 3", s.TPOT.Mean)
	}
	if s.Committed != 4 || s.Total != 9 || s.Warmups != 5 || s.Finished != 1 {
		t.Errorf("%d tokens of %d, %d warm-ups, %d finished, want 4 of 9, 5, 1",
			s.Committed, s.Total, s.Warmups, s.Finished)
	}
}

// TestWindow: tokens count after the opening and up to the close; passes count for the part
// that lies in between.
func TestWindow(t *testing.T) {
	m := meter.New(meter.Config{Models: 1, Slots: 8, WarmupRequests: 1})
	r := turns{m}
	r.at(0, nil, core.Actions{Admits: admits(admit(0, 0), admit(1, 0)), Launches: launches(launch(0, 2, 2, 0))})
	// Request 0 leaves at 10: the window opens, behind the tokens of this turn, ahead of what starts.
	r.at(10, []int{0}, core.Actions{
		Tokens: tokens(token(0, 0), token(1, 0)), Leaves: leaves(left(0, core.Finished)),
		Admits: admits(admit(2, 0)), Launches: launches(launch(0, 2, 2, 10)),
	})
	r.at(20, []int{0}, core.Actions{Tokens: tokens(token(1, 0), token(2, 0))})
	r.at(24, nil, core.Actions{Launches: launches(launch(0, 2, 2, 8))})
	r.at(30, nil, core.Actions{})
	m.Close(30 * ms)
	r.at(34, []int{0}, core.Actions{
		Tokens: tokens(token(1, 0), token(2, 0)),
		Leaves: leaves(left(1, core.Finished), left(2, core.Finished)),
	})
	m.Close(40 * ms) // the first counts
	s := m.Summary()
	if s.OpenedNs != 10*ms || s.ClosedNs != 30*ms || s.Committed != 2 || s.Total != 6 ||
		s.ThroughputTokS != 100 {
		t.Errorf("window %d to %d, %d tokens of %d, %v tok/s, want 10 to 30 ms, 2 of 6, 100",
			s.OpenedNs, s.ClosedNs, s.Committed, s.Total, s.ThroughputTokS)
	}
	// Request 1 was admitted before: only 2 counts, though it ends after the close.
	if s.Warmups != 2 || s.Finished != 1 || s.Latency.Mean != 34e6 || s.TTFT.Mean != 20e6 || s.Gap != nil {
		t.Errorf("%d warm-ups, %d finished, latency %+v, TTFT %+v, gaps %+v; want 2, 1, 34 ms, 20 ms, none",
			s.Warmups, s.Finished, s.Latency, s.TTFT, s.Gap)
	}
	if u := s.Models[0]; u.Utilisation != 0.8 || u.Launches != 2 || u.Rows != 4 || u.QueueMeanNs != 4.5e6 {
		t.Errorf("%+v, want utilisation 0.8 (10 to 20, 24 to 30), 2 launches, 4 rows, 4.5 ms of queue", u)
	}
}

// TestWindowThatNeverOpens: a run that is closed, or over, before the warm-up is done has
// measured nothing, and says so; its tail is not measured instead.
func TestWindowThatNeverOpens(t *testing.T) {
	for name, closeAt := range map[string]core.Time{"closed": 5, "over": -1} {
		t.Run(name, func(t *testing.T) {
			m := meter.New(meter.Config{Models: 1, Slots: 8, WarmupRequests: 2})
			r := turns{m}
			r.at(0, nil, core.Actions{
				Admits: admits(admit(0, 0), admit(1, 0)), Launches: launches(launch(0, 2, 2, 0)),
			})
			if closeAt > 0 {
				m.Close(closeAt * ms)
				r.at(8, nil, core.Actions{Leaves: leaves(left(1, core.CancelledOutcome))})
			}
			r.at(10, []int{0}, core.Actions{Tokens: tokens(token(0, 0)), Leaves: leaves(left(0, core.Finished))})
			s := m.Summary()
			if s.OpenedNs != s.ClosedNs || s.Committed != 0 || s.ThroughputTokS != 0 || s.Warmups != 2 ||
				s.Latency != nil || s.Finished != 0 || s.Models[0].Utilisation != 0 {
				t.Errorf("%+v, want an empty window", s)
			}
		})
	}
}

// TestAfterTheLastToken: the window of a run ends with its last token; passes that go on for
// requests that are gone are not of the window.
func TestAfterTheLastToken(t *testing.T) {
	m := meter.New(meter.Config{Models: 3, Slots: 8})
	r := turns{m}
	r.at(0, nil, core.Actions{
		Admits:   admits(admit(0, 0), admit(1, 0)),
		Launches: launches(launch(0, 1, 1, 0), launch(1, 1, 1, 0)),
	})
	r.at(10, []int{0}, core.Actions{
		Tokens: tokens(token(0, 0)), Leaves: leaves(left(0, core.Finished)), Launches: launches(launch(2, 1, 1, 0)),
	})
	r.at(12, []int{2}, core.Actions{
		Leaves: leaves(left(1, core.Failed)), Launches: launches(launch(2, 1, 1, 0)),
	})
	r.at(40, []int{1}, core.Actions{})
	s := m.Summary()
	got := []float64{s.Models[0].Utilisation, s.Models[1].Utilisation, s.Models[2].Utilisation}
	if s.ClosedNs != 10*ms || !cmp.Equal(got, []float64{1, 1, 0}) {
		t.Errorf("closed at %d, utilisation %v, want 10 ms and 1, 1, 0", s.ClosedNs, got)
	}
	if s.Finished != 1 || s.Failed != 1 || s.Latency.Count != 1 {
		t.Errorf("%d finished, %d failed, latency %+v, want 1, 1, of the finished one",
			s.Finished, s.Failed, s.Latency)
	}
}

// TestOutcomes: every end counts once: by outcome if it is of the window, else as a warm-up.
func TestOutcomes(t *testing.T) {
	refused := core.Leave{ID: 77, Slot: -1, Outcome: core.Rejected, Reason: core.Full}
	var requests []meter.Request
	tooBig := core.Leave{
		ID: 78, Slot: -1, Model: 2, Outcome: core.Rejected, Reason: core.PoolTooSmall,
	}
	m := meter.New(meter.Config{Models: 3, Slots: 8, WarmupRequests: 1,
		OnRequest: func(r *meter.Request) { requests = append(requests, *r) }})
	r := turns{m}
	r.at(0, nil, core.Actions{Leaves: leaves(refused), Admits: admits(admit(1, 0))})
	r.at(1, nil, core.Actions{Leaves: leaves(left(1, core.CancelledOutcome)), Admits: admits(admit(2, 0))})
	r.at(2, nil, core.Actions{Leaves: leaves(refused, tooBig, left(2, core.Failed))})
	// Request 0 is cancelled while it waits for admission, in a slot that nobody has had.
	r.at(3, nil, core.Actions{Leaves: leaves(left(0, core.CancelledOutcome))})
	s := m.Summary()
	if s.Warmups != 2 || s.Rejected != 2 || s.Failed != 1 || s.Cancelled != 1 || s.Finished != 0 {
		t.Errorf("%+v, want 2 warm-ups, 2 rejected, 1 failed, 1 cancelled", s)
	}
	if s.Admission.Count != 1 || s.Admission.Mean != 1e6 {
		t.Errorf("waits for admission %+v, want that of request 2 only: 1 ms", s.Admission)
	}
	if r := requests[3]; r.ID != 78 || r.Model != 2 || r.Reason != core.PoolTooSmall {
		t.Errorf("request 78: %+v, want it refused for the pool of model 2", r)
	}
	if last := requests[len(requests)-1]; last.Admitted != -1 || last.Arrival != -1 || last.Left != 3*ms {
		t.Errorf("request 0: %+v, want it never admitted", last)
	}
}

// TestNodes: tokens that other nodes commit belong to the front's request, whatever slots the
// nodes gave it; a refused duplicate does not touch the request whose ID it has.
func TestNodes(t *testing.T) {
	var requests []meter.Request
	m := meter.New(meter.Config{Models: 2, Slots: 8, Nodes: 2,
		OnRequest: func(r *meter.Request) { requests = append(requests, *r) }})
	guest := func(id uint64, slot int32) core.Admit { return core.Admit{ID: id, Slot: slot, Guest: true} }
	turn := func(node int, msec core.Time, out core.Actions) { m.Turn(node, msec*ms, nil, &out) }
	turn(0, 0, core.Actions{Admits: []core.Admit{{ID: 50, Slot: 0}, {ID: 60, Slot: 1}}})
	turn(0, 1, core.Actions{Leaves: leaves(core.Leave{
		ID: 60, Slot: -1, Outcome: core.Rejected, Reason: core.Duplicate,
	})})
	turn(1, 2, core.Actions{Admits: []core.Admit{guest(60, 4), guest(50, 3)}})
	turn(1, 5, core.Actions{Tokens: tokens(core.Token{ID: 50, Slot: 3, Model: 1})})
	turn(1, 6, core.Actions{
		Tokens: tokens(core.Token{ID: 60, Slot: 4, Model: 1}, core.Token{ID: 50, Slot: 3, Model: 1}),
		Leaves: leaves(core.Leave{ID: 50, Slot: 3, Outcome: core.Finished, Guest: true}),
	})
	turn(0, 8, core.Actions{Leaves: leaves(core.Leave{ID: 50, Slot: 0, Outcome: core.Finished})})
	turn(0, 9, core.Actions{
		Tokens: tokens(core.Token{ID: 60, Slot: 1}),
		Leaves: leaves(core.Leave{ID: 60, Slot: 1, Outcome: core.Finished}),
	})
	want := []meter.Request{
		{ID: 60, Arrival: -1, Admitted: -1, First: -1, Left: 1 * ms,
			Outcome: core.Rejected, Reason: core.Duplicate},
		{ID: 50, First: 5 * ms, Left: 8 * ms, Tokens: 2, ByLast: 2, Outcome: core.Finished},
		{ID: 60, First: 6 * ms, Left: 9 * ms, Tokens: 2, ByLast: 1, Outcome: core.Finished},
	}
	if d := cmp.Diff(want, requests); d != "" {
		t.Errorf("want - got +:\n%s", d)
	}
	s := m.Summary()
	if s.Finished != 2 || s.Committed != 4 || s.Models[1].Committed != 3 || s.ClosedNs != 9*ms {
		t.Errorf("%+v, want 2 finished, 4 tokens, 3 of them of model 1, the last at 9 ms", s)
	}
}

// TestNothing: what was never measured is nil or 0, not NaN.
func TestNothing(t *testing.T) {
	s := meter.New(meter.Config{Models: 1, Slots: 1}).Summary()
	if d := cmp.Diff(meter.Summary{Models: []meter.ModelSummary{{}}}, s); d != "" {
		t.Errorf("want - got +:\n%s", d)
	}
}
