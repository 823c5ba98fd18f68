package core_test

import (
	"math"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// onlooker is a policy that starts everything and writes down the queues that it sees.
type onlooker struct{ seen *[][2]int }

func (p onlooker) Start(m int, v *core.View) bool {
	*p.seen = append(*p.seen, [2]int{v.Queued(0), v.Queued(1)})
	if v.Queued(0) > 0 && v.OldestSince(0) == v.Now() && v.Now() > 10*ms {
		panic("request 1 has waited at model 0 since before now")
	}
	return true
}

// TestAllModelsSeeTheSameView: what model 0 takes in a turn is still in the queue that model
// 1's decision sees.
func TestAllModelsSeeTheSameView(t *testing.T) {
	var seen [][2]int
	w := newWorld(t, core.Config{Models: models(2), Policy: onlooker{&seen}, Algorithm: route.Recorded{}},
		10*ms, 10*ms)
	w.result = func(uint64, int, int, int) core.Result { return core.Result{EOS: true} }
	w.submit(0, core.Submission{ID: 1, TokensMax: 2}, 1)
	w.submit(0, core.Submission{ID: 2, TokensMax: 2}, 1)
	w.submit(0, core.Submission{ID: 3, TokensMax: 2, Entry: 1}, 1)
	w.run().settled()
	if len(seen) != 2 || seen[0] != [2]int{2, 1} || seen[1] != [2]int{2, 1} {
		t.Errorf("queues seen %v, want [2 1] twice", seen)
	}
}

// TestMaxWaitNearTheLargestTime: since + MaxWait may leave an int64; such a wait is for ever,
// not over.
func TestMaxWaitNearTheLargestTime(t *testing.T) {
	policy := core.Delayed{Thresholds: fixed(t, 2, 1, 2), MaxWait: math.MaxInt64}
	w := newWorld(t, core.Config{Models: models(2), Policy: policy, Algorithm: route.Recorded{}, LiveMax: 2},
		10*ms, 10*ms)
	w.strings(map[uint64]string{1: "SL", 2: "SSSL"})
	large := w.launches(llm)
	w.submit(5*ms, core.Submission{ID: 1, TokensMax: 2}, 1)
	w.submit(5*ms, core.Submission{ID: 2, TokensMax: 4}, 1)
	w.run().settled()
	wantLaunches(t, *large, launched{35, []uint64{1, 2}})
}

// stubborn never starts anything.
type stubborn struct{}

func (stubborn) Start(int, *core.View) bool { return false }

// TestNothingStallsWhateverThePolicySays (I3): the oldest request's model is started when
// nothing runs, nothing is on its way and no wake-up is set; it is counted.
func TestNothingStallsWhateverThePolicySays(t *testing.T) {
	w := newWorld(t, core.Config{Models: models(2), Policy: stubborn{}, Algorithm: route.Recorded{}}, 10*ms,
		10*ms)
	w.strings(map[uint64]string{1: "SLS", 2: "LSL"})
	w.submit(0, core.Submission{ID: 1, TokensMax: 3}, 1)
	w.submit(0, core.Submission{ID: 2, TokensMax: 3, Entry: 1}, 1)
	w.run().settled()
	if c := w.nodes[0].s.Counters(); c.Unstalled != c.Launches || c.Unstalled == 0 {
		t.Errorf("%d of %d launches were unstalled, want all", c.Unstalled, c.Launches)
	}
}

// TestNoProgressFails: an Algorithm that moves a request in a circle and drops every draft
// ends it as failed after 100, and nobody else.
func TestNoProgressFails(t *testing.T) {
	w := newWorld(t, core.Config{Models: models(2), Policy: core.Eager{}, Algorithm: route.Recorded{}}, 10*ms,
		10*ms)
	w.result = func(id uint64, _, _, model int) core.Result {
		if id == 1 {
			return core.Result{Next: uint8(1 - model), Drop: true}
		}
		return core.Result{Next: uint8(model)}
	}
	w.submit(0, core.Submission{ID: 1, TokensMax: 3}, 1)
	w.submit(0, core.Submission{ID: 2, TokensMax: 200}, 1)
	w.run().settled()
	if l := w.leaves[1]; l.Outcome != core.Failed || l.Reason != core.NoProgress || l.Dropped != 100 ||
		l.Tokens != 0 {
		t.Errorf("request 1 left with %+v", l)
	}
	if l := w.leaves[2]; l.Outcome != core.Finished || l.Tokens != 200 {
		t.Errorf("request 2 left with %+v", l)
	}
}
