package exec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/turnlog"
	"tokenrouter/exec"
	"tokenrouter/sim"
	"tokenrouter/sim/keyed"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// logs are the turn logs of a run, one a node.
type logs struct {
	text    []bytes.Buffer
	writers []*turnlog.Writer
}

func newLogs(s *scenario) *logs {
	l := &logs{text: make([]bytes.Buffer, s.nodes())}
	for node := range l.text {
		config := s.core
		config.Node = node
		l.writers = append(l.writers, must(turnlog.NewWriter(&l.text[node], config)))
	}
	return l
}

func (l *logs) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	l.writers[node].Turn(node, now, in, out)
}

func (l *logs) flush(t *testing.T) {
	t.Helper()
	for _, w := range l.writers {
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// difference tells the first difference between the logs of two runs; "" if there is none.
func difference(t *testing.T, a, b *logs) string {
	t.Helper()
	for node := range a.text {
		if bytes.Equal(a.text[node].Bytes(), b.text[node].Bytes()) {
			continue
		}
		var report strings.Builder
		same, err := turnlog.Diff(&report,
			must(turnlog.NewReader("simulator", bytes.NewReader(a.text[node].Bytes()))),
			must(turnlog.NewReader("executor", bytes.NewReader(b.text[node].Bytes()))))
		return fmt.Sprintf("node %d: same %v, %v\n%s", node, same, err, report.String())
	}
	return ""
}

func (s *scenario) simulate(t *testing.T) (*logs, sim.Result) {
	t.Helper()
	l := newLogs(s)
	result, err := sim.Run(t.Context(), sim.Config{
		Core: s.core, Latency: s.latency, Outcome: s.outcome, Workload: &list{s.requests},
		Closed: s.closed, Seed: s.seed, Observe: l.observe,
		Link: func(from, to int) latency.Link { return s.links[[2]int{from, to}] },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.flush(t)
	return l, result
}

// world is the executor's: devices, links and clients that do what the simulator's would.
type world struct {
	s      *scenario
	mutant mutant
	logs   *logs
	loops  []*exec.Loop
	links  []chan exec.Message
	left   sync.WaitGroup // of requests

	next    int // request of a closed loop
	waiting int // as the front's Scheduler counts
}

// execute runs the scenario in the executor, on a virtual clock.
func (s *scenario) execute(t *testing.T, m mutant) *logs {
	t.Helper()
	w := &world{s: s, mutant: m, logs: newLogs(s)}
	synctest.Test(t, func(t *testing.T) {
		for node := range s.nodes() {
			w.loops = append(w.loops, w.loop(t, node))
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
		w.left.Add(len(s.requests))
		if s.closed {
			w.refill(0)
		} else {
			w.submitAll()
		}
		w.left.Wait()
		time.Sleep(time.Hour) // the last messages arrive
		stop()
		running.Wait()
		for _, link := range w.links {
			close(link)
		}
	})
	w.logs.flush(t)
	return w.logs
}

func (w *world) loop(t *testing.T, node int) *exec.Loop {
	t.Helper()
	config := exec.Config{Core: w.s.core, Gather: 1, Observe: w.observe}
	config.Core.Node = node
	if w.mutant.gather != nil {
		config.Gather = *w.mutant.gather
	}
	var loop *exec.Loop
	now := func() core.Time { return loop.Now() }
	for m, model := range w.s.core.Models {
		var device exec.Device
		if model.Node == node {
			device = w.device(m, now)
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
	device := &exec.Scripted{
		Now: now,
		StepNs: func(l core.Launch) core.Time {
			ns, _ := w.s.latency[m].StepNs(latency.Shape{
				Rows: len(l.Rows), FreshTokens: int(l.Fresh), ContextTokens: int(l.Context), Returns: l.Returned,
			})
			return ns + w.mutant.lateNs
		},
		Fill: func(l core.Launch, results []core.Result) error {
			for i := range l.Rows {
				if id, slot := l.Rows[i].ID, l.Rows[i].Slot; requests[slot].ID != id || requests[slot].PromptTokens == 0 {
					r := w.s.requests[id]
					requests[slot] = outcome.Request{
						ID: id, Key: keyed.NewKey(w.s.seed, id), PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens,
					}
				}
			}
			w.s.outcome.Fill(m, l.Rows, requests, results)
			return w.s.outcome.Err()
		},
	}
	if w.mutant.device != nil {
		return w.mutant.device(device)
	}
	return device
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
			if w.mutant.reorders {
				go deliver(at, m)
				continue
			}
			last = max(last, at)
			deliver(last, m)
		}
	}()
	return sender(link)
}

// client is told of the end of one request.
type client struct{ left *sync.WaitGroup }

func (c client) Token(core.Token) {}
func (c client) Left(core.Leave)  { c.left.Done() }

func (w *world) request(r *workload.Request) *exec.Request {
	tokensMax := r.MaxTokens
	if tokensMax == 0 {
		tokensMax = int32(w.s.core.ContextMax) - r.PromptTokens
	}
	request := &exec.Request{
		ID: r.ID, Prompt: make([]int32, r.PromptTokens), TokensMax: tokensMax,
		Draw: keyed.Float(keyed.Hash(w.s.seed, r.ID, 0, 0, keyed.Entry)), Sink: client{&w.left},
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
		time.Sleep(time.Duration(r.ArrivalNs + w.mutant.tardyNs - front.Now()))
		if err := front.Submit(w.request(r)); err != nil {
			panic(err)
		}
	}
}

func (w *world) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	w.logs.observe(node, now, in, out)
	if node != 0 || !w.s.closed {
		return
	}
	for _, e := range in {
		if e.Kind == core.Submitted {
			w.waiting++
		}
	}
	for _, e := range out.Leaves {
		if e.Outcome == core.Rejected {
			w.waiting--
		}
	}
	w.waiting -= len(out.Admits)
	w.refill(now)
}

// refill keeps the backlog of a closed loop as sim.Config.Closed does: once it is below
// LiveMax it is filled up to twice that.
func (w *world) refill(now core.Time) {
	if w.waiting >= w.s.core.LiveMax {
		return
	}
	for range min(2*w.s.core.LiveMax-w.waiting, len(w.s.requests)-w.next) {
		if err := w.loops[0].SubmitAt(now, w.request(&w.s.requests[w.next])); err != nil {
			panic(err)
		}
		w.next++
	}
}

// TestConformance: the simulator and the executor write the same turn logs, byte for byte, for
// every policy, 2 and 3 models, on one node and on several.
func TestConformance(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	var total core.Counters
	eachScenario(t, seeds, func(t *testing.T, s *scenario) {
		want, result := s.simulate(t)
		for _, c := range result.Counters {
			total.Finished += c.Finished
			total.Rejected += c.Rejected
			total.Handoffs += c.Handoffs
			total.Arrived += c.Arrived
			total.Preempted += c.Preempted
			total.PrefixShared += c.PrefixShared
		}
		if d := difference(t, want, s.execute(t, mutant{})); d != "" {
			t.Fatalf("seed %d: %s\nof %+v", s.seed, d, s.core)
		}
	})
	// The scenarios must show what they are there for.
	for _, count := range []uint64{
		total.Finished, total.Rejected, total.Handoffs, total.Arrived, total.Preempted, total.PrefixShared,
	} {
		if count == 0 {
			t.Errorf("nothing of a kind ever happened: %+v", total)
		}
	}
}
