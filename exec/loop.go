package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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
	// Gather is how long the loop waits after an event for others of the same instant, so
	// that they make one turn; events stamped less than Gather after it join. 0 means that
	// the loop takes what is in its inbox.
	Gather time.Duration
	// Observe, if set, sees every turn, from the loop's goroutine.
	Observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	// Failed, if set, is told of device and link errors.
	Failed func(error)
}

// Request is a request of a client.
type Request struct {
	ID        uint64
	Prompt    []int32
	TokensMax int32
	Entry     int
	Models    uint32 // as core.Submission.Models
	Draw      float64
	Prefix    []uint64
	Sink      Sink
}

// Sink hears of one request, from the loop's goroutine; it must not block.
type Sink interface {
	Token(core.Token)
	Left(core.Leave)
}

// Loop drives one Scheduler. Submit, Cancel, Deliver and Now may be called from any
// goroutine.
type Loop struct {
	c         Config
	s         *core.Scheduler
	start     time.Time
	inbox     chan stamped
	stopped   chan struct{}
	runners   []runner
	running   sync.WaitGroup
	sequences map[uint64]*sequence
	bySlot    []*sequence
	// duplicates are requests whose ID was in use: the core is about to reject them.
	duplicates []*Request
	held       []stamped // taken from the inbox, not yet handed in
	in         []core.Event
	out        core.Actions
	now        core.Time
}

// stamped is an event with the time at which it happened.
type stamped struct {
	at      core.Time
	kind    core.EventKind
	model   int
	err     error
	request *Request
	id      uint64
	reason  core.Reason
	message Message
}

// ErrStopped is returned by Submit, Cancel and Deliver after the loop has ended.
var ErrStopped = errors.New("exec: the loop has ended")

// New checks c and makes a Loop whose time starts now.
func New(c Config) (*Loop, error) {
	s, err := core.New(c.Core)
	if err != nil {
		return nil, err
	}
	l := &Loop{
		c: c, s: s, start: time.Now(), inbox: make(chan stamped, 4*c.Core.Requests+64),
		stopped: make(chan struct{}), sequences: make(map[uint64]*sequence),
		bySlot: make([]*sequence, c.Core.Requests), runners: make([]runner, len(c.Core.Models)),
	}
	for m := range c.Core.Models {
		owned := c.Core.Models[m].Node == c.Core.Node
		if m >= len(c.Devices) || owned != (c.Devices[m] != nil) {
			return nil, fmt.Errorf("exec: node %d: a device for every model of its own, and no other:"+
				" model %d", c.Core.Node, m)
		}
		if node := c.Core.Models[m].Node; !owned && (node >= len(c.Links) || c.Links[node] == nil) {
			return nil, fmt.Errorf("exec: node %d has no link to node %d", c.Core.Node, node)
		}
		if owned {
			l.runners[m] = runner{device: c.Devices[m], passes: make(chan *Pass, 1)}
			l.runners[m].pass.Results = make([]core.Result, c.Core.Requests)
		}
	}
	return l, nil
}

// Now is the time since New.
func (l *Loop) Now() core.Time { return core.Time(time.Since(l.start)) }

// Submit hands in a request. Its end, a refusal included, comes through its Sink.
func (l *Loop) Submit(r *Request) error {
	return l.put(stamped{at: l.Now(), kind: core.Submitted, request: r})
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
	select {
	case l.inbox <- e:
		return nil
	case <-l.stopped:
		return ErrStopped
	}
}

// Run drives the node until ctx is done. Then it cancels what is live, waits for the passes
// in flight, and returns ctx.Err(). Every request has left by then.
func (l *Loop) Run(ctx context.Context) error {
	for m := range l.runners {
		if l.runners[m].device != nil {
			l.running.Add(1)
			go l.run(m)
		}
	}
	wake := time.NewTimer(time.Hour)
	for {
		wake.Stop()
		if l.out.Wake != 0 {
			wake.Reset(time.Duration(l.out.Wake - l.Now()))
		}
		if len(l.held) == 0 {
			select {
			case e := <-l.inbox:
				l.held = append(l.held, e)
			case <-wake.C:
			case <-ctx.Done():
				l.stop()
				return ctx.Err()
			}
		}
		l.gather()
		l.turn()
	}
}

// gather drains the inbox, after the time that events of one instant may take to come in.
func (l *Loop) gather() {
	if l.c.Gather > 0 {
		time.Sleep(l.c.Gather)
	}
	for {
		select {
		case e := <-l.inbox:
			l.held = append(l.held, e)
		default:
			return
		}
	}
}

// instant says when the next turn is and how many held events, which it sorts by time, are of
// that turn: the first and all within Gather of it.
func (l *Loop) instant() (now core.Time, n int, woken bool) {
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
	return now, n, l.out.Wake != 0 && l.out.Wake <= now
}

// turn hands in the events of an instant and does what the core asks for.
func (l *Loop) turn() {
	now, n, woken := l.instant()
	l.now = max(l.now, now)
	l.in = l.in[:0]
	for i := range n {
		l.in = append(l.in, l.event(&l.held[i]))
	}
	if woken {
		l.in = append(l.in, core.Event{Kind: core.Woken})
	}
	l.held = append(l.held[:0], l.held[n:]...)
	slices.SortStableFunc(l.in, func(a, b core.Event) int { return core.CompareEvents(&a, &b) })
	l.s.Turn(l.now, l.in, &l.out)
	l.carryOut()
	if l.c.Observe != nil {
		l.c.Observe(l.c.Core.Node, l.now, l.in, &l.out)
	}
}

// stop cancels what is live and waits for the passes in flight, so that every request leaves
// and no goroutine stays.
func (l *Loop) stop() {
	close(l.stopped)
	l.gather()
	for _, id := range slices.Sorted(maps.Keys(l.sequences)) {
		l.held = append(l.held, stamped{at: l.Now(), kind: core.Cancelled, id: id})
	}
	for len(l.held) > 0 || l.anyBusy() {
		if len(l.held) == 0 {
			l.held = append(l.held, <-l.inbox)
		}
		l.turn()
	}
	for m := range l.runners {
		if l.runners[m].device != nil {
			close(l.runners[m].passes)
		}
	}
	l.running.Wait()
	for _, id := range slices.Sorted(maps.Keys(l.sequences)) { // at other nodes
		l.leave(&core.Leave{ID: id, Slot: -1, Model: -1, Outcome: core.CancelledOutcome, Reason: core.ClientLeft})
	}
}

func (l *Loop) anyBusy() bool {
	for m := range l.runners {
		if l.runners[m].busy {
			return true
		}
	}
	return false
}

// event prepares what the core must know, and keeps what only the driver must.
func (l *Loop) event(e *stamped) core.Event {
	switch e.kind {
	case core.BatchDone:
		if e.err != nil {
			l.report(fmt.Errorf("model %d (%s): %w", e.model, l.c.Core.Models[e.model].Name, e.err))
		}
		r := &l.runners[e.model]
		r.busy = false
		return core.Event{
			Kind: core.BatchDone, Model: e.model, Failed: e.err != nil, Results: r.pass.Results,
		}
	case core.Submitted:
		r := e.request
		if l.sequences[r.ID] == nil {
			l.sequences[r.ID] = newSequence(r)
		} else {
			l.duplicates = append(l.duplicates, r)
		}
		return core.Event{Kind: core.Submitted, Submission: &core.Submission{
			ID: r.ID, Arrival: e.at, PromptTokens: int32(len(r.Prompt)), TokensMax: r.TokensMax,
			Entry: r.Entry, Models: r.Models, Draw: r.Draw, Prefix: r.Prefix,
		}}
	case core.Cancelled:
		return core.Event{Kind: core.Cancelled, ID: e.id, Reason: e.reason}
	case core.Arrived:
		h := e.message.Handoff
		q := l.sequences[h.ID]
		if q == nil {
			q = &sequence{prompt: int(h.Prompt)}
			l.sequences[h.ID] = q
		}
		q.accept(int(e.message.Anchor), e.message.Tokens)
		q.tell()
		return core.Event{Kind: core.Arrived, Handoff: h}
	case core.NewsCame:
		if q := l.sequences[e.message.News.ID]; q != nil {
			q.accept(int(e.message.Anchor), e.message.Tokens)
			q.tell()
		}
		return core.Event{Kind: core.NewsCame, News: e.message.News}
	}
	return core.Event{Kind: core.Woken}
}

func (l *Loop) report(err error) {
	if l.c.Failed != nil {
		l.c.Failed(err)
	}
}
