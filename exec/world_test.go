package exec_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// world is the executor's: devices, links and clients that do what the simulator's would.
type world struct {
	s       *scenario
	loops   []*exec.Loop
	links   []chan exec.Message
	clients []*client
	left    sync.WaitGroup // of requests
	observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	failed  func(error)

	next    int             // request of a closed loop
	waiting map[uint64]bool // for admission, in a closed loop

	// What a test may change, before the world is made.
	gather   time.Duration
	lateNs   int64                                  // passes end so much late
	tardyNs  int64                                  // clients submit so much late
	reorders bool                                   // links let short messages overtake long ones
	wrap     func(m int, d exec.Device) exec.Device // around the devices
	cancelAt map[uint64]core.Time                   // clients leave then
}

// execute runs the scenario in the executor, on a virtual clock, until every request has
// left and every message has arrived.
func (s *scenario) execute(t *testing.T, changes ...func(*world)) *world {
	t.Helper()
	w := &world{s: s, gather: 1, waiting: map[uint64]bool{}}
	w.observe = func(int, core.Time, []core.Event, *core.Actions) {}
	w.failed = func(err error) { t.Error(err) }
	w.wrap = func(_ int, d exec.Device) exec.Device { return d }
	for _, change := range changes {
		change(w)
	}
	synctest.Test(t, w.run)
	return w
}

func (w *world) run(t *testing.T) {
	for i := range w.s.requests {
		w.clients = append(w.clients, &client{t: t, id: uint64(i), left: &w.left})
	}
	for node := range w.s.nodes() {
		w.loops = append(w.loops, w.loop(t, node))
	}
	w.left.Add(len(w.s.requests))
	if w.s.closed {
		w.refill(0)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, loop := range w.loops {
		running.Go(func() {
			if err := loop.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v, want %v", err, context.Canceled)
			}
		})
	}
	for id, at := range w.cancelAt {
		go func() {
			time.Sleep(time.Duration(at))
			if err := w.loops[0].Cancel(id, core.ClientLeft); err != nil {
				t.Error(err)
			}
		}()
	}
	if !w.s.closed {
		w.submitAll()
	}
	w.await(t)
	time.Sleep(time.Hour) // the last messages arrive
	stop()
	running.Wait()
	for _, link := range w.links {
		close(link)
	}
}

// await waits until every request has left, and gives up after a virtual day.
func (w *world) await(t *testing.T) {
	done := make(chan struct{})
	go func() {
		w.left.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(24 * time.Hour):
		for _, c := range w.clients {
			if len(c.leaves) == 0 {
				t.Errorf("request %d never left: it has %d tokens", c.id, len(c.tokens))
			}
		}
	}
}

func (w *world) loop(t *testing.T, node int) *exec.Loop {
	t.Helper()
	config := exec.Config{
		Core: w.s.core, Gather: w.gather, Failed: w.failed,
		Observe: func(node int, now core.Time, in []core.Event, out *core.Actions) {
			w.observe(node, now, in, out)
			w.follow(node, now, in, out)
		},
	}
	config.Core.Node = node
	var loop *exec.Loop
	now := func() core.Time { return loop.Now() }
	for m, model := range w.s.core.Models {
		var device exec.Device
		if model.Node == node {
			device = w.wrap(m, w.device(m, now))
		}
		config.Devices = append(config.Devices, device)
	}
	for to := range w.s.nodes() {
		var link exec.Link
		if to != node {
			link = w.link(node, to)
		}
		config.Links = append(config.Links, link)
	}
	loop, err := exec.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return loop
}

// device takes the time and gives the outcome that the simulator's world would.
func (w *world) device(m int, now func() core.Time) exec.Device {
	requests := make([]outcome.Request, w.s.core.Requests) // a slot
	gens := make([]uint32, w.s.core.Requests)
	return &exec.Scripted{
		Now: now,
		StepNs: func(l core.Launch) core.Time {
			ns, _ := w.s.latency[m].StepNs(latency.Shape{
				Rows: len(l.Rows), FreshTokens: int(l.Fresh), ContextTokens: int(l.Context), Returns: l.Returned,
			})
			return ns + w.lateNs
		},
		Fill: func(l core.Launch, results []core.Result) error {
			for i := range l.Rows {
				row := &l.Rows[i]
				if requests[row.Slot].PromptTokens > 0 && gens[row.Slot] == row.Gen {
					continue
				}
				r := w.s.requests[row.ID]
				gens[row.Slot] = row.Gen
				requests[row.Slot] = outcome.Request{
					ID: r.ID, Key: keyed.NewKey(w.s.seed, r.ID),
					PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens,
				}
			}
			w.s.outcome.Fill(m, l.Rows, requests, results)
			return w.s.outcome.Err()
		},
	}
}

// sender is a link that takes the scenario's time and keeps order.
type sender chan<- exec.Message

func (s sender) Send(m exec.Message) error {
	s <- m
	return nil
}

func (w *world) link(from, to int) exec.Link {
	link := make(chan exec.Message, 1<<10)
	w.links = append(w.links, link)
	deliver := func(at core.Time, m exec.Message) {
		time.Sleep(time.Duration(at - w.loops[to].Now()))
		if err := w.loops[to].Deliver(at, m); err != nil {
			panic(err)
		}
	}
	go func() {
		last := core.Time(0)
		for m := range link {
			at := m.At + w.s.links[[2]int{from, to}].TransferNs(int64(64+4*len(m.Tokens)))
			if w.reorders {
				go deliver(at, m)
				continue
			}
			last = max(last, at)
			deliver(last, m)
		}
	}()
	return sender(link)
}

// prompt is the ids of a request's prompt. Those of a group begin alike.
func (w *world) prompt(r *workload.Request) []int32 {
	ids := make([]int32, r.PromptTokens)
	for i := range ids {
		ids[i] = int32(1000*(r.ID+10) + uint64(i))
		if i < int(r.PrefixTokens) {
			ids[i] = int32(1000*int(r.PrefixGroup) + i)
		}
	}
	return ids
}

func (w *world) request(r *workload.Request) *exec.Request {
	tokensMax := r.MaxTokens
	if tokensMax == 0 {
		tokensMax = max(int32(w.s.core.ContextMax)-r.PromptTokens, 1)
	}
	request := &exec.Request{
		ID: r.ID, Prompt: w.prompt(r), TokensMax: tokensMax, Sink: w.clients[r.ID],
		Draw: keyed.Float(keyed.Hash(w.s.seed, r.ID, 0, 0, keyed.Entry)),
	}
	if w.s.closed {
		request.Arrival = -1
	}
	for page := range int(r.PrefixTokens) / w.s.core.PageTokens {
		key := keyed.Hash(uint64(r.PrefixGroup), uint64(page), 0, 0, keyed.Prompt)
		request.Prefix = append(request.Prefix, key)
	}
	return request
}

// submitAll is an open loop.
func (w *world) submitAll() {
	front := w.loops[0]
	for i := range w.s.requests {
		r := &w.s.requests[i]
		time.Sleep(time.Duration(r.ArrivalNs + w.tardyNs - front.Now()))
		if err := front.Submit(w.request(r)); err != nil {
			panic(err)
		}
	}
}

// follow keeps a closed loop going.
func (w *world) follow(node int, now core.Time, in []core.Event, out *core.Actions) {
	if node != 0 || !w.s.closed {
		return
	}
	for _, e := range in {
		if e.Kind == core.Submitted {
			w.waiting[e.Submission.ID] = true
		}
	}
	for _, a := range out.Admits {
		delete(w.waiting, a.ID)
	}
	for _, e := range out.Leaves {
		delete(w.waiting, e.ID)
	}
	w.refill(now)
}

// refill keeps the backlog of a closed loop as sim.Config.Closed does: once it is below
// LiveMax it is filled up to twice that.
func (w *world) refill(now core.Time) {
	if len(w.waiting) >= w.s.core.LiveMax {
		return
	}
	for range min(2*w.s.core.LiveMax-len(w.waiting), len(w.s.requests)-w.next) {
		if err := w.loops[0].SubmitAt(now, w.request(&w.s.requests[w.next])); err != nil {
			panic(err)
		}
		w.next++
	}
}

// client is a Sink that holds what it hears of one request to what a Sink may expect: tokens
// in order, then one end with their number, then nothing.
type client struct {
	t      *testing.T
	id     uint64
	left   *sync.WaitGroup // may be nil
	tokens []core.Token
	leaves []core.Leave
}

// Token implements exec.Sink.
func (c *client) Token(token core.Token) {
	if token.ID != c.id || int(token.Position) != len(c.tokens) || len(c.leaves) > 0 {
		c.t.Errorf("request %d has %d tokens and %d ends, and is told of %+v",
			c.id, len(c.tokens), len(c.leaves), token)
	}
	c.tokens = append(c.tokens, token)
}

// Left implements exec.Sink.
func (c *client) Left(e core.Leave) {
	if e.ID != c.id || int(e.Tokens) != len(c.tokens) || len(c.leaves) > 0 {
		c.t.Errorf("request %d has %d tokens and %d ends, and is told of %+v",
			c.id, len(c.tokens), len(c.leaves), e)
	}
	c.leaves = append(c.leaves, e)
	if c.left != nil {
		c.left.Done()
	}
}

// ids are the tokens of the answer.
func (c *client) ids() []int32 {
	ids := []int32{}
	for _, token := range c.tokens {
		ids = append(ids, token.Token)
	}
	return ids
}

// ended fails the test unless the request has left, so and with these tokens.
func (c *client) ended(outcome core.Outcome, reason core.Reason, ids ...int32) {
	c.t.Helper()
	if len(c.leaves) != 1 || c.leaves[0].Outcome != outcome || c.leaves[0].Reason != reason {
		c.t.Errorf("request %d: ends %+v, want one: %v, %v", c.id, c.leaves, outcome, reason)
	}
	if got := c.ids(); !slices.Equal(got, ids) {
		c.t.Errorf("request %d: tokens %v, want %v", c.id, got, ids)
	}
}
