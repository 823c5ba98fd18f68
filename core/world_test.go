package core_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"tokenrouter/core"
)

// ms is a millisecond of core.Time.
const ms core.Time = 1_000_000

// world drives the Schedulers of one system, a node each, through scripted time. It holds no
// scheduling decision. Each model's step takes a constant time, each link has its delays.
type world struct {
	t      testing.TB
	config core.Config
	nodes  []*node
	step   []core.Time // a model
	now    core.Time
	queue  []arrival
	count  int

	// result says what pass number n (from 0) of request id gives, at an answer's position.
	result func(id uint64, n, position, model int) core.Result
	// delay is what the next message from one node to another takes; nil means none.
	delay    func(from, to int) core.Time
	newsLast bool // of one turn's messages on a link, hand-offs go first
	// fails says whether a launch fails; nil means never.
	fails func(model int, seq uint64) bool
	// observe sees every turn after it was carried out; nil means nobody.
	observe func(n *node, in []core.Event, out *core.Actions)

	prompts  map[uint64][]int32
	passes   map[uint64]int
	answers  map[uint64][]int32 // of requests that have left
	leaves   map[uint64]core.Leave
	leftAt   map[uint64]core.Time
	arriveAt map[[2]int]core.Time // of the last message on a link: links keep order
	turnsMax int
}

// node is one Scheduler and the device and messages around it.
type node struct {
	id     int
	s      *core.Scheduler
	out    core.Actions
	wake   core.Time
	shadow *shadow
	turns  int
	tally  core.Counters // what its turns asked for, added up
}

// arrival is an event on its way to a node. ids are the token ids that travel with it.
type arrival struct {
	at    core.Time
	order int
	node  int
	event core.Event
	ids   []int32
	rows  []core.Row // BatchDone
	seq   uint64
}

// newWorld makes a Scheduler for every node of config. step is a model's step time.
func newWorld(t testing.TB, config core.Config, step ...core.Time) *world {
	t.Helper()
	if config.PageTokens == 0 {
		config.PageTokens = 4
	}
	config.Admission = cmp.Or(config.Admission, core.Reserve)
	config.ContextMax = cmp.Or(config.ContextMax, 4096)
	config.Requests = cmp.Or(config.Requests, 64)
	w := &world{
		t: t, config: config, step: step, turnsMax: 100_000,
		prompts: map[uint64][]int32{}, passes: map[uint64]int{}, answers: map[uint64][]int32{},
		leaves: map[uint64]core.Leave{}, leftAt: map[uint64]core.Time{}, arriveAt: map[[2]int]core.Time{},
	}
	nodes := 1
	for _, m := range config.Models {
		nodes = max(nodes, m.Node+1)
	}
	if nodes > 1 && config.LiveMax == 0 {
		config.LiveMax = config.Requests / 2
	}
	for id := range nodes {
		config.Node = id
		s, err := core.New(config)
		if err != nil {
			t.Fatalf("node %d: %v", id, err)
		}
		w.nodes = append(w.nodes, &node{id: id, s: s, shadow: newShadow(w, id)})
	}
	return w
}

// models makes n models of 1000 pages each.
func models(n int) []core.Model {
	out := make([]core.Model, n)
	for i := range out {
		out[i] = core.Model{Name: fmt.Sprintf("m%d", i), Pages: 1000}
	}
	return out
}

// submit hands in request id at a time. Its prompt's ids are made up if none are given.
func (w *world) submit(at core.Time, sub core.Submission, prompt ...int32) {
	if prompt == nil {
		for i := range sub.PromptTokens {
			prompt = append(prompt, -int32(sub.ID*1000)-i)
		}
	}
	sub.PromptTokens = int32(len(prompt))
	if _, twice := w.prompts[sub.ID]; !twice {
		w.prompts[sub.ID] = prompt
	}
	w.push(arrival{at: at, event: core.Event{Kind: core.Submitted, Submission: &sub}})
}

func (w *world) cancel(at core.Time, id uint64, reason core.Reason) {
	w.push(arrival{at: at, event: core.Event{Kind: core.Cancelled, ID: id, Reason: reason}})
}

func (w *world) push(a arrival) {
	w.count++
	a.order = w.count
	w.queue = append(w.queue, a)
}

// run goes on until nothing happens any more.
func (w *world) run() *world { return w.until(math.MaxInt64) }

// until handles all that happens before time end.
func (w *world) until(end core.Time) *world {
	w.t.Helper()
	for {
		t := core.Time(math.MaxInt64)
		for _, a := range w.queue {
			t = min(t, a.at)
		}
		for _, n := range w.nodes {
			if n.wake != 0 {
				t = min(t, n.wake)
			}
		}
		if t >= end {
			return w
		}
		w.now = t
		for _, n := range w.nodes {
			w.turn(n)
		}
	}
}

// due takes from the queue what happens at node n by now, in the order in which it was sent.
func (w *world) due(n *node) []arrival {
	var due, rest []arrival
	for _, a := range w.queue {
		if a.node == n.id && a.at <= w.now {
			due = append(due, a)
		} else {
			rest = append(rest, a)
		}
	}
	w.queue = rest
	slices.SortFunc(due, func(a, b arrival) int { return cmp.Or(cmp.Compare(a.at, b.at), a.order-b.order) })
	return due
}

func (w *world) turn(n *node) {
	due := w.due(n)
	if len(due) == 0 && (n.wake == 0 || n.wake > w.now) {
		return
	}
	var in []core.Event
	for i := range due {
		n.shadow.before(&due[i])
		in = append(in, due[i].event)
	}
	if n.wake != 0 && n.wake <= w.now {
		in = append(in, core.Event{Kind: core.Woken})
	}
	if n.turns++; n.turns > w.turnsMax {
		w.t.Fatalf("%d turns and no end", n.turns)
	}
	n.s.Turn(w.now, in, &n.out)
	if err := n.s.Check(); err != nil {
		w.t.Fatalf("t=%d node %d: %v", w.now, n.id, err)
	}
	n.wake = n.out.Wake
	n.count(&n.out)
	w.carryOut(n)
	if w.observe != nil {
		w.observe(n, in, &n.out)
	}
}

// count adds up what the Scheduler's own Counters must say.
func (n *node) count(out *core.Actions) {
	n.tally.Turns++
	n.tally.Committed += uint64(len(out.Tokens))
	for _, l := range out.Launches {
		n.tally.Launches++
		n.tally.Rows += uint64(len(l.Rows))
		for _, row := range l.Rows {
			n.tally.Fed += uint64(row.Fresh)
		}
	}
	for _, l := range out.Leaves {
		n.tally.Dropped += uint64(l.Dropped)
	}
}

func (w *world) carryOut(n *node) {
	n.shadow.after(&n.out)
	for _, l := range n.out.Leaves {
		if n.id == 0 {
			before, twice := w.leaves[l.ID]
			if twice && l.Reason != core.Duplicate && before.Reason != core.Duplicate {
				w.t.Fatalf("request %d left twice: %+v", l.ID, l)
			}
			w.leaves[l.ID], w.leftAt[l.ID] = l, w.now
		}
	}
	for _, l := range n.out.Launches {
		w.launch(n, l)
	}
	if w.newsLast {
		w.sendAll(n)
		w.tellAll(n)
	} else {
		w.tellAll(n)
		w.sendAll(n)
	}
	n.shadow.forget(&n.out)
}

// tellAll sends a turn's news to every other node; an end takes the last ids along.
func (w *world) tellAll(n *node) {
	for _, news := range n.out.News {
		for to := range w.nodes {
			if to != n.id {
				var ids []int32
				if news.Kind == core.NewsEnded {
					ids = n.shadow.suffix(news.ID, news.Anchor)
				}
				w.send(n.id, to, arrival{event: core.Event{Kind: core.NewsCame, News: news}, ids: ids})
			}
		}
	}
}

func (w *world) sendAll(n *node) {
	for _, h := range n.out.Sends {
		ids := n.shadow.handoff(&h)
		w.send(n.id, w.config.Models[h.To].Node, arrival{event: core.Event{Kind: core.Arrived, Handoff: &h},
			ids: ids})
	}
}

// send puts a message on a link, behind all that are on it.
func (w *world) send(from, to int, a arrival) {
	a.node, a.at = to, w.now
	if w.delay != nil {
		a.at += w.delay(from, to)
	}
	link := [2]int{from, to}
	a.at = max(a.at, w.arriveAt[link])
	w.arriveAt[link] = a.at
	w.push(a)
}

func (w *world) launch(n *node, l core.Launch) {
	n.shadow.launch(l)
	done := core.Event{Kind: core.BatchDone, Model: l.Model}
	if w.fails != nil && w.fails(l.Model, l.Seq) {
		done.Failed = true
	}
	for _, row := range l.Rows {
		var r core.Result
		if row.Head {
			position := int(row.Start+row.Fresh) - len(w.prompts[row.ID])
			r = w.result(row.ID, w.passes[row.ID], position, l.Model)
			w.passes[row.ID]++
		}
		done.Results = append(done.Results, r)
	}
	w.push(arrival{
		at: w.now + w.step[l.Model], node: n.id, event: done, rows: slices.Clone(l.Rows), seq: l.Seq,
	})
}

// settled fails the test unless every request has left and everything is free again.
func (w *world) settled() {
	w.t.Helper()
	for id := range w.prompts {
		if _, ok := w.leaves[id]; !ok {
			w.t.Errorf("request %d never left", id)
		}
	}
	c := w.nodes[0].s.Counters()
	if gone := c.Finished + c.Rejected + c.Cancelled + c.Failed; gone != c.Submitted {
		w.t.Errorf("I1: submitted %d, gone %d", c.Submitted, gone)
	}
	for _, n := range w.nodes {
		c := n.s.Counters()
		counted := core.Counters{
			Turns: c.Turns, Committed: c.Committed, Launches: c.Launches, Rows: c.Rows, Fed: c.Fed, Dropped: c.Dropped,
		}
		if counted != n.tally {
			w.t.Errorf("node %d counts %+v, want %+v", n.id, counted, n.tally)
		}
		if n.s.Live() != 0 || n.s.Waiting() != 0 || n.s.FreeSlots() != w.config.Requests || n.s.HeldByPeers() != 0 {
			w.t.Errorf("node %d: live %d, waiting %d, free slots %d of %d, held by peers %d, want none", n.id,
				n.s.Live(), n.s.Waiting(), n.s.FreeSlots(), w.config.Requests, n.s.HeldByPeers())
		}
		if len(n.shadow.tokens) != 0 {
			w.t.Errorf("node %d: %d admissions without a leave", n.id, len(n.shadow.tokens))
		}
		for m, model := range w.config.Models {
			if model.Node == n.id && n.s.PagesHeld(m) != 0 || n.s.Promised(m) != 0 {
				w.t.Errorf("node %d: model %d: %d pages held, %d promised, want none", n.id, m,
					n.s.PagesHeld(m), n.s.Promised(m))
			}
		}
	}
}
