package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"tokenrouter/core"
)

// Config is one node of a real system.
type Config struct {
	Core core.Config
	// Devices has the device of each model of this node; nil for models of other nodes.
	Devices []Device
	// Links has the link to each other node; nil for this one.
	Links []Link
	// Gather is how long after an event the loop waits for others of the same instant, so
	// that they make one turn: those stamped less than Gather after it join. 0 means that the
	// loop takes what has come, and that all of it makes one turn.
	Gather time.Duration
	// Observe, if set, sees every turn right after it, from the loop's goroutine. What it is
	// shown is overwritten later.
	Observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	// OwnAlgorithms lets requests bring an Algorithm of their own, at the price of a call or two a row where
	// Core.Algorithm is a core.Batch.
	OwnAlgorithms bool
	// Vocab bounds the ids of prompts: those below it are known to the models. 0 means no bound.
	Vocab int
	// Failed, if set, is told of device and link errors, from the loop's goroutine. Of a row it is told by a
	// *RowError, before its request leaves.
	Failed func(error)
}

// Request is a request of a client. It must not change once it is submitted.
type Request struct {
	// ID must be one that no live request has; on several nodes, one that none has had.
	ID        uint64
	Prompt    []int32
	TokensMax int32
	Entry     int
	Models    uint32 // as core.Submission.Models
	Draw      float64
	Prefix    []uint64
	// Algorithm, if not nil, takes the place of Config.Core.Algorithm, and is as that: no core.Entry and no
	// core.Receiver. It needs Config.OwnAlgorithms.
	Algorithm core.Algorithm
	// Sampling says how its tokens are drawn; nil: the most likely one each time.
	Sampling *Sampling
	// Arrival is when the request was planned to come, no later than it does: delays are
	// counted from then. 0 means when it is submitted, negative means when it is admitted.
	Arrival core.Time
	Sink    Sink
}

// Sink hears of one request, from the loop's goroutine: every token of the answer once and in
// order, then Left, once. It must not block; it may call Submit and Cancel.
type Sink interface {
	Token(core.Token)
	Left(core.Leave)
}

// Loop drives one Scheduler. Submit, Cancel, Deliver and Now may be called from any
// goroutine and never block.
type Loop struct {
	c         Config
	s         *core.Scheduler
	own       *owned // nil: requests have no algorithms of their own
	start     time.Time
	inbox     inbox
	runners   []runner
	timings   []Timing // by model
	running   sync.WaitGroup
	sequences map[uint64]*sequence // of all requests that the core knows
	submitted map[uint64]*sequence // of the turn's submissions: the core may refuse them
	bySlot    []*sequence
	held      []stamped // taken from the inbox, not yet handed in
	in        []core.Event
	out       core.Actions
	now       core.Time
}

// ErrStopped is returned by Submit, Cancel and Deliver when the loop is ending or has ended.
var ErrStopped = errors.New("exec: the loop has ended")

// New checks c and makes a Loop whose time starts now.
func New(c Config) (*Loop, error) {
	var own *owned
	if c.OwnAlgorithms {
		var err error
		if own, err = newOwned(&c); err != nil {
			return nil, err
		}
		c.Core.Algorithm = own
	}
	s, err := core.New(c.Core)
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	l := &Loop{
		c: c, s: s, own: own, start: time.Now(), inbox: newInbox(),
		sequences: make(map[uint64]*sequence), submitted: make(map[uint64]*sequence),
		bySlot: make([]*sequence, c.Core.Requests), runners: make([]runner, len(c.Core.Models)),
		timings: make([]Timing, len(c.Core.Models)),
	}
	for m, device := range c.Devices {
		if device != nil {
			l.runners[m] = runner{device: device, passes: make(chan *Pass, 1)}
			l.runners[m].pass.Results = make([]core.Result, c.Core.Requests)
			l.runners[m].pass.Top = make([][]Candidate, c.Core.Requests)
			l.runners[m].pass.Errors = make([]error, c.Core.Requests)
			l.runners[m].rowOf = make([]int32, c.Core.Requests)
		}
	}
	return l, nil
}

// check refuses devices and links that do not fit the models.
func (c *Config) check() error {
	own := c.Core.Node
	if len(c.Devices) != len(c.Core.Models) {
		return fmt.Errorf("exec: node %d: %d devices for %d models, want an entry for each",
			own, len(c.Devices), len(c.Core.Models))
	}
	if c.Gather < 0 {
		return fmt.Errorf("exec: node %d: Gather = %v, want at least 0", own, c.Gather)
	}
	if own < len(c.Links) && c.Links[own] != nil {
		return fmt.Errorf("exec: node %d has a link to itself", own)
	}
	linked := func(node int) error {
		if node != own && (node >= len(c.Links) || c.Links[node] == nil) {
			return fmt.Errorf("exec: node %d has no link to node %d", own, node)
		}
		return nil
	}
	for m, model := range c.Core.Models {
		if (model.Node == own) != (c.Devices[m] != nil) {
			return fmt.Errorf("exec: node %d: model %d (%s) of node %d: device %v, want one for each model"+
				" of its own and no other", own, m, model.Name, model.Node, c.Devices[m] != nil)
		}
		if err := linked(model.Node); err != nil {
			return err
		}
	}
	return linked(0)
}

// Now is the time since New.
func (l *Loop) Now() core.Time { return core.Time(time.Since(l.start)) }

// Scheduler is the node's scheduler, for figures only: nobody but the loop may call Turn. It may be looked at
// from the loop's goroutine (Config.Observe, a Sink), and once Run has returned.
func (l *Loop) Scheduler() *core.Scheduler { return l.s }

// Submit hands in a request. Its end, a refusal by the scheduler included, comes through its Sink. A token
// that no model knows and a Sampling out of bounds are errors: such a request is not taken.
func (l *Loop) Submit(r *Request) error {
	if err := l.c.refusal(r); err != nil {
		return fmt.Errorf("exec: request %d: %w", r.ID, err)
	}
	return l.put(stamped{at: l.Now(), kind: core.Submitted, request: r})
}

func (c *Config) refusal(r *Request) error {
	for i, id := range r.Prompt {
		if c.Vocab > 0 && (id < 0 || int(id) >= c.Vocab) {
			return fmt.Errorf("prompt[%d] = %d, want 0 to %d", i, id, c.Vocab-1)
		}
	}
	if r.Algorithm != nil && !c.OwnAlgorithms {
		return errors.New("an Algorithm of its own, and Config.OwnAlgorithms is not set")
	}
	if r.Sampling == nil {
		return nil
	}
	return r.Sampling.Validate()
}

// Cancel ends a request for the reason: core.ClientLeft, core.TimedOut or core.StopString.
func (l *Loop) Cancel(id uint64, reason core.Reason) error {
	return l.put(stamped{at: l.Now(), kind: core.Cancelled, id: id, reason: reason})
}

// Deliver hands in a message that came over a link, with the time at which it came.
func (l *Loop) Deliver(at core.Time, m Message) error {
	kind := core.NewsCame
	if m.Handoff != nil {
		kind = core.Arrived
	}
	return l.put(stamped{at: at, kind: kind, message: m})
}

func (l *Loop) put(e stamped) error {
	if !l.inbox.put(e) {
		return ErrStopped
	}
	return nil
}

// Run drives the node until ctx is done. Then it cancels what is live, waits for the passes
// in flight, and returns ctx.Err(). Every request has left by then. It is called once.
func (l *Loop) Run(ctx context.Context) error {
	for m := range l.runners {
		if l.runners[m].device != nil {
			l.running.Add(1)
			go l.run(m)
		}
	}
	wake := time.NewTimer(math.MaxInt64)
	defer wake.Stop()
	for ctx.Err() == nil {
		if l.gather() {
			l.turn()
			continue
		}
		wake.Stop()
		if l.out.Wake != 0 {
			wake.Reset(time.Duration(l.out.Wake - l.Now()))
		}
		select {
		case <-l.inbox.ready:
		case <-wake.C:
		case <-ctx.Done():
		}
	}
	l.stop()
	return ctx.Err()
}

// gather takes what has come, and waits until all events of the first one's instant have
// had Gather to come too. It reports false if there is nothing to do yet.
func (l *Loop) gather() bool {
	l.held = l.inbox.take(l.held)
	first := core.Time(math.MaxInt64)
	for i := range l.held {
		first = min(first, l.held[i].at)
	}
	if wake := l.out.Wake; wake != 0 && wake < first && wake <= l.Now() {
		first = wake
	}
	if first == math.MaxInt64 {
		return false
	}
	if left := first + core.Time(l.c.Gather) - l.Now(); l.c.Gather > 0 && left > 0 {
		time.Sleep(time.Duration(left))
		l.held = l.inbox.take(l.held)
	}
	return true
}

// instant says when the next turn is and how many held events, which it sorts by time, are of
// that turn: the first and all within Gather of it.
func (l *Loop) instant() (now core.Time, n int) {
	slices.SortStableFunc(l.held, func(a, b stamped) int { return cmp.Compare(a.at, b.at) })
	now = math.MaxInt64
	if len(l.held) > 0 {
		now = l.held[0].at
	}
	if wake := l.out.Wake; wake != 0 && wake < now {
		now = wake
	}
	end := now + core.Time(l.c.Gather)
	for n < len(l.held) && (l.c.Gather == 0 || l.held[n].at < end) {
		now = max(now, l.held[n].at)
		n++
	}
	return now, n
}

// turn hands in the events of an instant and does what the core asks for.
func (l *Loop) turn() {
	now, n := l.instant()
	l.now = max(l.now, now)
	woken := l.out.Wake != 0 && l.out.Wake <= l.now
	l.handIn(n)
	if woken {
		l.in = append(l.in, core.Event{Kind: core.Woken})
	}
	l.fold()
}

// fold calls Turn with l.in and carries out what it asks for.
func (l *Loop) fold() {
	slices.SortStableFunc(l.in, func(a, b core.Event) int { return core.CompareEvents(&a, &b) })
	l.s.Turn(l.now, l.in, &l.out)
	if l.c.Observe != nil { // before launches fill anew the results that l.in points to
		l.c.Observe(l.c.Core.Node, l.now, l.in, &l.out)
	}
	l.carryOut()
}

// handIn makes l.in of the first n held events. Of two submissions of one ID, the second
// waits for the next turn: then every end can be told to the right one.
func (l *Loop) handIn(n int) {
	l.in = l.in[:0]
	kept := l.held[:0]
	for i := range l.held {
		e := &l.held[i]
		if i >= n || e.kind == core.Submitted && l.submitted[e.request.ID] != nil {
			kept = append(kept, *e)
			continue
		}
		l.in = append(l.in, l.event(e))
	}
	clear(l.held[len(kept):])
	l.held = kept
}
