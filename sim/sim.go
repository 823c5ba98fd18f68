// Package sim drives the scheduler core through simulated time. It holds no scheduling
// decision: it pops the earliest instant and all its events, calls Turn, and asks the world
// (latency, outcome, workload) how long each launch takes and what it gives.
//
// Time is integer nanoseconds. Randomness is keyed (package keyed), so a run's bytes do not
// depend on policies, order or workers.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/meter"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// never is a time that no event has.
const never = math.MaxInt64

// Message sizes of a link: what a hand-off or a control message carries besides token ids.
const (
	headerBytes = 64
	tokenBytes  = 4
)

// Config is one simulated run.
type Config struct {
	// Core describes the system. Models on several nodes get a Scheduler a node; Core.Node
	// is not read.
	Core    core.Config
	Latency []latency.Model // a model each
	// Beside is how much longer a step of each model takes while another model of its node runs: a factor from
	// 1 to latency.BesideMax. A step beside which others run for a part of its time takes longer for that part.
	// nil: 1.
	Beside  []float64
	Outcome outcome.Source
	// Workload gives the requests. Closed says that it is a closed loop of Core.LiveMax
	// workers, so that arrival times are not read: a request arrives when a worker is free.
	Workload workload.Source
	Closed   bool
	Seed     uint64
	// Link returns the link between two nodes. It must take at least 1 ns.
	Link func(from, to int) latency.Link
	// Until ends the run, and the Meter's window, at this time, whatever is in flight: what
	// happens at Until still happens. 0 means when all is done.
	Until core.Time
	// Meter measures the run; its window is closed when the workload runs dry, if Steady.
	Meter  *meter.Meter
	Steady bool
	// Observe, if set, sees every turn right after it. What it is shown is overwritten later.
	Observe func(node int, now core.Time, in []core.Event, out *core.Actions)
}

// Result is what a run leaves besides the Meter.
type Result struct {
	End      core.Time
	Counters []core.Counters // a node
	Tallies  []latency.Tally // a model: launches outside the calibrated range
	Live     int             // requests in flight when Until came
	Waiting  int             // requests that waited for admission when the last one came
	// Of outcome.Recorded: what is known of the answers, and what a reader must know of the trace, empty for
	// nothing.
	Answers outcome.Answers
	Warning string
}

// Run simulates c until the workload is done, or Until. Errors are of the world (a trace
// that ends early, a shape that a latency model refuses) or of c; nothing is half-done.
func Run(ctx context.Context, c Config) (Result, error) {
	w, err := newWorld(&c)
	if err != nil {
		return Result{}, err
	}
	return w.run(ctx)
}

// nodes is the number of nodes: 0 to that of the last model.
func (c *Config) nodes() int {
	count := 1
	for _, m := range c.Core.Models {
		count = max(count, m.Node+1)
	}
	return count
}

// check refuses what core.New does not see.
func (c *Config) check() error {
	if c.Workload == nil || c.Outcome == nil {
		return fmt.Errorf("sim: Workload and Outcome must be set")
	}
	if got, want := len(c.Latency), len(c.Core.Models); got != want {
		return fmt.Errorf("sim: %d latency models for %d models", got, want)
	}
	if c.nodes() == 1 {
		return nil
	}
	if c.Link == nil {
		return fmt.Errorf("sim: models on %d nodes and no Link", c.nodes())
	}
	for from := range c.nodes() {
		for to := range c.nodes() {
			if ns := c.Link(from, to).TransferNs(headerBytes); from != to && ns < 1 {
				return fmt.Errorf("sim: the link from node %d to node %d takes %d ns, want at least 1:"+
					" a node's turn can not change another's of the same instant", from, to, ns)
			}
		}
	}
	return nil
}

// node is one Scheduler and what it waits for.
type node struct {
	s        *core.Scheduler
	out      core.Actions
	in       []core.Event
	doneAt   []core.Time // a model: end of its launch, or never
	wake     core.Time
	next     core.Time       // the earliest of doneAt and wake
	results  [][]core.Result // a model
	rows     [][]core.Row
	requests []outcome.Request // a slot
	beside   contention
}

type world struct {
	c        Config
	nodes    []node
	links    messages
	constant []core.Time // step time of a model whatever its batch, or 0
	returns  []bool      // a model: its latency asks for latency.Shape.ReturnTokens
	tallies  []latency.Tally
	coming   map[uint64]outcome.Request // submitted and not gone
	prefixes prefixes
	enterer  outcome.Enterer // or nil
	leaver   outcome.Leaver  // or nil

	next      workload.Request // not yet submitted
	more      bool
	due       core.Time         // when next is to be submitted, or never
	waiting   int               // Result.Waiting
	submitted []core.Submission // of this turn
	closedAt  bool              // Meter.Close was called
}

func newWorld(c *Config) (*world, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	models := len(c.Core.Models)
	if c.Core.LiveMax == 0 {
		c.Core.LiveMax = c.Core.Requests
	}
	if least := 4 * c.Core.LiveMax; c.Closed && c.Core.Requests < least {
		c.Core.Requests = least // a backlog, so that who leaves is replaced in the same turn
	}
	w := &world{
		c: *c, coming: make(map[uint64]outcome.Request), tallies: make([]latency.Tally, models),
		constant: make([]core.Time, models), returns: make([]bool, models),
		prefixes: newPrefixes(c.Core.PageTokens),
	}
	w.enterer, _ = c.Outcome.(outcome.Enterer)
	w.leaver, _ = c.Outcome.(outcome.Leaver)
	count := c.nodes()
	for i := range c.Core.Models {
		if ns, ok := latency.ConstantNs(c.Latency[i]); ok {
			w.constant[i] = ns
		}
		w.returns[i] = latency.CountsReturnTokens(c.Latency[i])
	}
	for id := range count {
		config := c.Core
		config.Node = id
		if count > 1 {
			config.Requests = max(config.Requests, 4*config.LiveMax)
		}
		s, err := core.New(config)
		if err != nil {
			return nil, err
		}
		beside, err := newContention(c.Beside, models)
		if err != nil {
			return nil, err
		}
		n := node{s: s, wake: never, next: never, beside: beside}
		n.requests = make([]outcome.Request, config.Requests)
		for range models {
			n.doneAt = append(n.doneAt, never)
			n.results = append(n.results, make([]core.Result, config.Requests))
			n.rows = append(n.rows, nil)
		}
		w.nodes = append(w.nodes, n)
	}
	w.links = newMessages(count)
	w.next, w.more = c.Workload.Next()
	return w, nil
}

func (w *world) run(ctx context.Context) (Result, error) {
	for turns := 0; ; turns++ {
		t := w.earliest()
		if t == never {
			break
		}
		if w.c.Until > 0 && t > w.c.Until {
			if w.c.Meter != nil {
				w.c.Meter.Close(w.c.Until)
			}
			break
		}
		if turns&0xfff == 0 {
			if err := cmp.Or(ctx.Err(), w.c.Outcome.Err()); err != nil {
				return Result{}, err
			}
		}
		if err := w.step(t); err != nil {
			return Result{}, err
		}
	}
	if err := w.c.Outcome.Err(); err != nil {
		return Result{}, err
	}
	if err := workload.Err(w.c.Workload); err != nil {
		return Result{}, err
	}
	r := Result{Tallies: w.tallies, Live: w.nodes[0].s.Live(), Waiting: w.waiting}
	for i := range w.nodes {
		r.Counters = append(r.Counters, w.nodes[i].s.Counters())
		r.End = max(r.End, w.nodes[i].s.Now())
	}
	if played, ok := w.c.Outcome.(*outcome.Recorded); ok {
		r.Answers, r.Warning = played.Answers(), played.Warning()
	}
	return r, nil
}

// earliest is the next instant at which anything happens.
func (w *world) earliest() core.Time {
	w.due = never
	if w.more {
		w.due = w.arrival()
	}
	t := min(w.due, w.links.earliest())
	for i := range w.nodes {
		t = min(t, w.nodes[i].next)
	}
	return t
}

// arrival is when the next request is to be submitted. In a closed loop that is at once,
// while the backlog has room.
func (w *world) arrival() core.Time {
	if !w.c.Closed {
		return w.next.ArrivalNs
	}
	front := w.nodes[0].s
	if front.Waiting() < w.c.Core.LiveMax {
		return front.Now()
	}
	return never
}

// step handles all events of instant t, node by node.
func (w *world) step(t core.Time) error {
	for i := range w.nodes {
		n := &w.nodes[i]
		w.collect(i, n, t)
		if len(n.in) == 0 {
			continue
		}
		n.s.Turn(t, n.in, &n.out)
		if w.c.Observe != nil { // before launches fill anew the results that n.in points to
			w.c.Observe(i, t, n.in, &n.out)
		}
		if err := w.carryOut(i, n, t); err != nil {
			return err
		}
	}
	return nil
}

// collect gathers the events of node i at instant t.
func (w *world) collect(i int, n *node, t core.Time) {
	n.in = n.in[:0]
	for m, done := range n.doneAt {
		if done == t {
			n.doneAt[m] = never
			e := n.event(core.BatchDone)
			e.Model, e.Failed, e.Results = m, false, n.results[m][:len(n.rows[m])]
		}
	}
	if len(w.nodes) > 1 {
		n.in = w.links.take(n.in, i, t)
	}
	if i == 0 && w.due <= t {
		w.submit(n, t)
	}
	if n.wake <= t {
		n.wake = never
		n.event(core.Woken)
	}
}

// event adds an event of a kind. Only the fields of its kind are read, so that those of others
// may be left from earlier turns: an Event is large, and most turns have one.
func (n *node) event(kind core.EventKind) *core.Event {
	if len(n.in) < cap(n.in) {
		n.in = n.in[:len(n.in)+1]
	} else {
		n.in = append(n.in, core.Event{})
	}
	e := &n.in[len(n.in)-1]
	e.Kind = kind
	return e
}

// submit hands in all requests that are due at t.
func (w *world) submit(n *node, t core.Time) {
	w.submitted = w.submitted[:0]
	w.waiting = n.s.Waiting()
	room := math.MaxInt
	if w.c.Closed {
		room = 2*w.c.Core.LiveMax - n.s.Waiting()
	}
	for w.more && len(w.submitted) < room && (w.c.Closed || w.next.ArrivalNs <= t) {
		r := &w.next
		w.submitted = append(w.submitted, w.submission(r))
		w.coming[r.ID] = outcome.Request{
			ID: r.ID, Key: keyed.NewKey(w.c.Seed, r.ID),
			PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens,
		}
		w.next, w.more = w.c.Workload.Next()
	}
	for j := range w.submitted {
		n.event(core.Submitted).Submission = &w.submitted[j]
	}
}

func (w *world) submission(r *workload.Request) core.Submission {
	tokensMax := r.MaxTokens
	if tokensMax == 0 {
		// What leaves no room for an answer is refused as too long, not as asking for none.
		tokensMax = max(int32(w.c.Core.ContextMax)-r.PromptTokens, 1)
	}
	arrival := r.ArrivalNs
	if w.c.Closed {
		arrival = -1
	}
	entry := 0
	if w.enterer != nil {
		entry = w.enterer.Entry(r.ID)
	}
	return core.Submission{
		ID: r.ID, Entry: entry, Arrival: arrival, PromptTokens: r.PromptTokens, TokensMax: tokensMax,
		Draw:   keyed.Float(keyed.Hash(w.c.Seed, r.ID, 0, 0, keyed.Entry)),
		Prefix: w.prefixes.keys(r.PrefixGroup, r.PrefixTokens),
	}
}

// carryOut does what a turn asked for.
func (w *world) carryOut(i int, n *node, t core.Time) error {
	for _, a := range n.out.Admits {
		n.requests[a.Slot] = w.coming[a.ID]
	}
	for k := range n.out.Launches {
		if err := w.launch(n, &n.out.Launches[k], t); err != nil {
			return err
		}
	}
	n.beside.settle(n.doneAt, t)
	if i == 0 {
		for _, l := range n.out.Leaves {
			delete(w.coming, l.ID)
			if w.leaver != nil {
				w.leaver.Leave(l.ID)
			}
		}
	}
	if n.wake = never; n.out.Wake != 0 {
		n.wake = n.out.Wake
	}
	n.next = n.wake
	for _, done := range n.doneAt {
		n.next = min(n.next, done)
	}
	if len(w.nodes) > 1 {
		w.send(i, n, t)
	}
	if m := w.c.Meter; m != nil {
		m.Turn(i, t, n.in, &n.out)
		for k := range n.out.Launches {
			m.Pages(n.out.Launches[k].Model, n.s.PagesHeld(n.out.Launches[k].Model))
		}
		if w.c.Steady && !w.closedAt && !w.more && n.s.Waiting() == 0 && i == 0 {
			w.closedAt = true
			m.Close(t)
		}
	}
	return nil
}

// returnTokens counts the tokens, fed and in KV, of rows that begin a call.
func returnTokens(rows []core.Row) int {
	tokens := 0
	for i := range rows {
		if rows[i].Returned {
			tokens += int(rows[i].Start + rows[i].Fresh)
		}
	}
	return tokens
}

// launch asks how long a launch takes and what it gives.
func (w *world) launch(n *node, l *core.Launch, t core.Time) error {
	m := l.Model
	ns := w.constant[m]
	if ns == 0 {
		shape := latency.Shape{
			Rows: len(l.Rows), FreshTokens: int(l.Fresh), ContextTokens: int(l.Context), Returns: l.Returned,
			Ahead: l.Ahead,
		}
		if w.returns[m] {
			shape.ReturnTokens = returnTokens(l.Rows)
		}
		step, inRange := w.c.Latency[m].StepNs(shape)
		if step < 1 {
			return latency.OutOfRangeError(w.c.Core.Models[m].Name, w.c.Latency[m], shape)
		}
		w.tallies[m].Note(w.c.Latency[m], shape, inRange)
		ns = step
	}
	if !n.beside.begin(m, t, ns) {
		return fmt.Errorf("latency of %s: a launch of %d ns alone is too long beside other models",
			w.c.Core.Models[m].Name, ns)
	}
	n.doneAt[m] = t + ns
	n.rows[m] = l.Rows
	w.c.Outcome.Fill(m, l.Rows, n.requests, n.results[m][:len(l.Rows)])
	return nil
}
