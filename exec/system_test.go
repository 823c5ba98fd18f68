package exec_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec"
)

const ms = core.Time(time.Millisecond)

// system is a small hand-made one, on a virtual clock: a Loop a node, links of a constant time.
type system struct {
	t        *testing.T
	loops    []*exec.Loop
	links    []chan exec.Message
	running  sync.WaitGroup // loops
	carrying sync.WaitGroup // links
	cancel   context.CancelFunc
	mu       sync.Mutex
	failures []error // of all nodes
	turns    []turn  // of the front
}

// turn is what some tests look at.
type turn struct {
	now      core.Time
	launches []core.Launch
	leaves   []core.Leave
}

// config is a system of R2R with two models, small and large, by default on one node.
func config(nodes ...int) core.Config {
	nodes = append(nodes, 0, 0)[:max(len(nodes), 2)]
	c := core.Config{
		Algorithm: route.R2R{Threshold: 0.5}, Policy: core.Eager{}, Admission: core.Reserve,
		Requests: 16, LiveMax: 8, ContextMax: 64, PageTokens: 4,
	}
	for m, node := range nodes {
		name := []string{"small", "large"}[m]
		c.Models = append(c.Models, core.Model{Name: name, Node: node, Pages: 200})
	}
	return c
}

// start runs the system. Links take linkTime and keep order; change may change any config.
func start(t *testing.T, c core.Config, linkTime time.Duration, devices []exec.Device,
	change func(*exec.Config)) *system {
	t.Helper()
	s := &system{t: t}
	nodes := 1
	for _, m := range c.Models {
		nodes = max(nodes, m.Node+1)
	}
	for node := range nodes {
		config := exec.Config{Core: c, Gather: 1, Links: make([]exec.Link, nodes)}
		config.Core.Node = node
		config.Failed = func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failures = append(s.failures, err)
		}
		if node == 0 {
			config.Observe = s.observe
		}
		for m, model := range c.Models {
			config.Devices = append(config.Devices, nil)
			if model.Node == node {
				config.Devices[m] = devices[m]
			}
		}
		for to := range nodes {
			if to != node {
				config.Links[to] = s.link(to, linkTime)
			}
		}
		if change != nil {
			change(&config)
		}
		loop, err := exec.New(config)
		if err != nil {
			t.Fatal(err)
		}
		s.loops = append(s.loops, loop)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, loop := range s.loops {
		s.running.Go(func() { _ = loop.Run(ctx) })
	}
	return s
}

func (s *system) observe(_ int, now core.Time, _ []core.Event, out *core.Actions) {
	s.turns = append(s.turns, turn{now, slices.Clone(out.Launches), slices.Clone(out.Leaves)})
}

// stop ends all loops and waits for them.
func (s *system) stop() {
	s.cancel()
	s.running.Wait()
	for _, link := range s.links {
		close(link)
	}
	s.carrying.Wait()
}

func (s *system) link(to int, linkTime time.Duration) exec.Link {
	link := make(chan exec.Message, 64)
	s.links = append(s.links, link)
	s.carrying.Go(func() {
		for m := range link {
			at := m.At + core.Time(linkTime)
			time.Sleep(time.Duration(at - s.loops[to].Now()))
			_ = s.loops[to].Deliver(at, m) // which a stopped loop refuses
		}
	})
	return sender(link)
}

// submit hands in a request of an ID and prompt; more may change it.
func (s *system) submit(id uint64, prompt []int32, tokensMax int32, more ...func(*exec.Request)) *client {
	s.t.Helper()
	c := &client{t: s.t, id: id}
	r := &exec.Request{ID: id, Prompt: prompt, TokensMax: tokensMax, Sink: c}
	for _, change := range more {
		change(r)
	}
	if err := s.loops[0].Submit(r); err != nil {
		s.t.Errorf("Submit(%d): %v", id, err)
	}
	return c
}

// settle lets time pass, and all goroutines come to rest, so that a test may look at what they
// did. Then it may look until it settles again.
func (s *system) settle(d time.Duration) {
	for _, loop := range s.loops {
		loop.Sync()
	}
	time.Sleep(d)
	synctest.Wait()
}

// fed is a row as a device sees it.
type fed struct {
	ID    uint64
	Start int32
	IDs   []int32
}

// scripted takes a time for every pass and gives what the script says of a request's position
// in its context: the token that is sampled after the last that is fed.
type scripted struct {
	step   core.Time
	script func(id uint64, position int32) core.Result
	at     []core.Time // of each pass
	passes [][]fed
	fail   func(pass int) error
}

// Step implements exec.Device.
func (d *scripted) Step(p *exec.Pass) error {
	d.at = append(d.at, p.At)
	var rows []fed
	for i, row := range p.Launch.Rows {
		rows = append(rows, fed{row.ID, row.Start, slices.Clone(p.Tokens[i])})
	}
	d.passes = append(d.passes, rows)
	time.Sleep(time.Duration(cmp.Or(d.step, ms)))
	if d.fail != nil {
		if err := d.fail(len(d.passes)); err != nil {
			return err
		}
	}
	for i, row := range p.Launch.Rows {
		if row.Head {
			p.Results[i] = d.script(row.ID, row.Start+row.Fresh)
		}
	}
	return nil
}

// counting gives token position, never routed.
func counting(_ uint64, position int32) core.Result { return core.Result{Token: position} }

// routes gives token position, routed by R2R always.
func routes(_ uint64, position int32) core.Result { return core.Result{Token: position, Score: 1} }
