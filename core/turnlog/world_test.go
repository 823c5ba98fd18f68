package turnlog_test

import (
	"hash/fnv"
	"math"
	"testing"

	"tokenrouter/core"
)

// world drives Schedulers the plainest way: launches take a fixed time a model, messages a
// fixed time, results are a hash of request, position and model.
type world struct {
	configs    []core.Config
	schedulers []*core.Scheduler
	stepNs     []core.Time
	linkNs     core.Time
	eosBelow   float64 // a token is EOS if its draw is below this
	// fill gives results, if it is set, instead of a hash.
	fill    func(row core.Row, model int, position int32) core.Result
	observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	pending []pending
	prompt  map[uint64]int32
}

type pending struct {
	at    core.Time
	node  int
	event core.Event
}

// request is a submission and its time, and when its client leaves; 0: never.
type request struct {
	at, leaveAt core.Time
	core.Submission
}

func newWorld(tb testing.TB, configs []core.Config, stepNs ...core.Time) *world {
	tb.Helper()
	w := &world{configs: configs, stepNs: stepNs, linkNs: 7, prompt: make(map[uint64]int32)}
	for _, c := range configs {
		s, err := core.New(c)
		if err != nil {
			tb.Fatal(err)
		}
		w.schedulers = append(w.schedulers, s)
	}
	return w
}

func (w *world) run(tb testing.TB, requests []request) {
	tb.Helper()
	for i := range requests {
		r := &requests[i]
		w.prompt[r.ID] = r.PromptTokens
		w.push(r.at, 0, core.Event{Kind: core.Submitted, Submission: &r.Submission})
		if r.leaveAt > 0 {
			w.push(r.leaveAt, 0, core.Event{Kind: core.Cancelled, ID: r.ID})
		}
	}
	out := make([]core.Actions, len(w.schedulers))
	for turns := 0; len(w.pending) > 0; turns++ {
		if turns > 100_000 {
			tb.Fatal("no end after 100000 turns")
		}
		now, node, in := w.pop()
		w.schedulers[node].Turn(now, in, &out[node])
		if err := w.schedulers[node].Check(); err != nil {
			tb.Fatal(err)
		}
		w.observe(node, now, in, &out[node])
		w.carryOut(now, node, &out[node])
	}
}

func (w *world) push(at core.Time, node int, e core.Event) {
	w.pending = append(w.pending, pending{at, node, e})
}

// pop takes all events of the earliest instant at its lowest node.
func (w *world) pop() (now core.Time, node int, in []core.Event) {
	now = math.MaxInt64
	for _, p := range w.pending {
		if p.at < now || p.at == now && p.node < node {
			now, node = p.at, p.node
		}
	}
	rest := w.pending[:0:0]
	for _, p := range w.pending {
		if p.at == now && p.node == node {
			in = append(in, p.event)
		} else {
			rest = append(rest, p)
		}
	}
	w.pending = rest
	return now, node, in
}

func (w *world) carryOut(now core.Time, node int, out *core.Actions) {
	for _, l := range out.Launches {
		e := core.Event{Kind: core.BatchDone, Model: l.Model, Results: make([]core.Result, len(l.Rows))}
		for i, row := range l.Rows {
			if row.Head {
				e.Results[i] = w.result(row, l.Model)
			}
		}
		w.push(now+w.stepNs[l.Model], node, e)
	}
	models := w.configs[0].Models
	for i := range out.Sends {
		h := out.Sends[i]
		w.push(now+w.linkNs, models[h.To].Node, core.Event{Kind: core.Arrived, Handoff: &h})
	}
	for _, n := range out.News {
		for other := range w.schedulers {
			if other != node {
				w.push(now+w.linkNs, other, core.Event{Kind: core.NewsCame, News: n})
			}
		}
	}
	if out.Wake != 0 {
		w.push(out.Wake, node, core.Event{Kind: core.Woken})
	}
}

func (w *world) result(row core.Row, model int) core.Result {
	position := row.Start + row.Fresh - w.prompt[row.ID]
	if w.fill != nil {
		return w.fill(row, model, position)
	}
	h := fnv.New64a()
	h.Write([]byte{byte(row.ID), byte(position), byte(position >> 8), byte(model), 'x', 'y', 'z', 'w'})
	sum := h.Sum64()
	u := float64(sum%1_000_003) / 1_000_003
	return core.Result{
		Token: int32(sum % 1000), LogProb: float32(-u), TopProb: float32(u), Score: u, Entropy: u, Draw: u,
		EOS: u < w.eosBelow,
	}
}
