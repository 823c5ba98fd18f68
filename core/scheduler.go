package core

import (
	"cmp"
	"fmt"
	"slices"
)

// phase is where a request is in its life.
type phase uint8

const (
	absent   phase = iota // slot is free
	waiting               // for admission
	live                  // admitted: at a model here, at another node, or on its way
	draining              // gone, but a launch still names its slot (I6)
	tomb                  // NewsEnded came before NewsAdmitted: the slot waits for the latter
)

// nowhere is request.at of a request that is not queued or running at a model of this node.
const nowhere = -1

// request is the part of a slot that turns touch. Its first fields fill a cache line of 64
// bytes: the loops over rows live on that.
type request struct {
	Visit
	known    int32 // tokens: prompt and committed, as far as this node knows
	limit    int32 // known is never above it
	easy     int32 // while known is below it, a token neither ends the request nor takes rowDone
	slot     int32
	gen      uint32
	at       int8 // model of this node where it is queued or running
	phase    phase
	drops    uint8 // drafts dropped since the last commit
	entry    int8
	told     bool // NewsAdmitted has come, or this node is the front
	cancel   bool // NewsCancel has come: end it wherever it turns up
	prefixed bool // details.prefix is not empty
	seats    [ModelsMax]seat
}

// prompt is the number of tokens of the prompt.
func (r *request) prompt() int32 { return r.known - r.Position }

// details is the rest of a slot.
type details struct {
	age     uint64 // order of admission
	prompt  int32  // tokens; Check compares it with request.prompt
	arrival Time
	prefix  []uint64
	outcome Outcome // with request.cancel
	reason  Reason
}

type seatState uint8

const (
	seatAbsent seatState = iota // never there, or lost its pages
	seatQueued
	seatRunning
	seatPending // the request is away; pages and count kept
	seatComing  // its call is on its way to the queue
)

// seat is a request's place at one model.
type seat struct {
	of       *request
	since    Time  // when it joined the queue, or will; of a pending seat, when the request left
	kv       int32 // tokens in KV
	room     int32 // tokens that the pages hold
	pages    int32
	tail     int32 // last page
	seen     int32 // tokens the model knew when the request last left it
	dropped  int32 // drafts dropped here
	state    seatState
	returned bool // first row of this call is still to come; a coming seat without is on its way from the front
	rebuild  bool // it has lost its pages: what is fed next is recomputed
	partial  bool // its last row here ended before the last known token
}

type model struct {
	queue      []*seat // oldest first
	coming     []*seat // calls on their way to the queue, by the time they get there
	rows       []Row   // of the launch in flight
	running    []*seat // of those rows
	pool       pool
	seq        uint64
	rowsMax    int
	owned      bool
	ended      bool // busy, but its results are here: they wait for the other models (barrier)
	failed     bool // with ended
	apart      bool // rows of the launch in flight take rowDone: one has no Head, or calls end with them
	calls      bool // Model.TokenCalls
	forgets    bool // Model.Forgets
	dispatchNs Time // Model.DispatchNs
	extend     bool // the launch that is made leaves out what goes on by one token (Config.Unmixed)
	ahead      bool // ... and calls that came after startNs (Config.Ahead)
	startNs    Time // when the last launch started, and when its results were taken
	endNs      Time
	results    []Result
	reserved   int // pages promised here, also for a model of another node
	pages      int
	tally
}

// tally is what Launch says of its rows in sum.
type tally struct {
	fed, context int64
	returned     int
	waitNs       Time
	pendings     int
	pendingNs    Time
}

// peer is another node. As far as the front knows, its slots hold the requests announced to
// it that it has not freed.
type peer struct {
	node int
	held int // front only
}

// Scheduler makes every decision: admission, batching, hand-off, KV. It is passive: Turn is
// called with what happened and says what must be done. It is not safe for concurrent use.
type Scheduler struct {
	c        Config
	alg      Algorithm
	policy   Policy
	enter    Entry
	receiver Receiver
	batch    Batch
	requests []request
	details  []details
	models   []model
	near     [ModelsMax]*model // those of this node without dispatch; none if the Algorithm is a Receiver
	byID     table
	busy     uint32    // bit m: model m is running
	free     []int32   // slots
	waiting  []int32   // slots, oldest first
	order    []int32   // of events, for a turn with several
	verdicts []Verdict // scratch of completeRows, as goes
	goes     []int32
	live     int    // N
	away     int    // live requests at another node or on their way
	coming   int    // seats in model.coming
	started  uint64 // ages given
	now      Time
	wake     Time // Actions.Wake of the last turn
	view     View
	out      *Actions
	count    Counters
	peers    []peer // the other nodes
	barrier  bool   // the policy is a Barrier
	forcing  bool   // the launch under way may take pages of any request that is away
}

// New validates c and allocates everything the Scheduler will ever need (I12).
func New(c Config) (*Scheduler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		c: c, alg: c.Algorithm, policy: c.Policy,
		requests: make([]request, c.Requests),
		details:  make([]details, c.Requests),
		models:   make([]model, len(c.Models)),
		byID:     newTable(c.Requests),
		free:     make([]int32, 0, c.Requests),
		waiting:  make([]int32, 0, c.Requests),
		order:    make([]int32, 0, 4*c.Requests+16),
		verdicts: make([]Verdict, c.Requests),
		goes:     make([]int32, c.Requests),
	}
	s.enter, _ = c.Algorithm.(Entry)
	s.receiver, _ = c.Algorithm.(Receiver)
	if len(c.Models) > 1 {
		s.batch = batchOf(c.Algorithm)
	}
	_, s.barrier = c.Policy.(Barrier)
	s.view.s = s
	for i := range c.Requests {
		s.free = append(s.free, int32(c.Requests-1-i)) // slot 0 goes out first
	}
	if c.Node != 0 {
		s.addPeer(0) // the front, even if it has no model
	}
	for i, m := range c.Models {
		s.models[i] = model{
			rowsMax: m.RowsMax, owned: m.Node == c.Node, pages: m.Pages, calls: m.TokenCalls, forgets: m.Forgets,
			dispatchNs: m.DispatchNs,
		}
		if m.DispatchNs > 0 || c.FrontNs > 0 {
			s.models[i].coming = make([]*seat, 0, c.Requests)
		}
		if m.RowsMax == 0 {
			s.models[i].rowsMax = c.Requests
		}
		if m.Node != c.Node {
			s.addPeer(m.Node)
			continue
		}
		if s.receiver == nil && m.DispatchNs == 0 {
			s.near[i] = &s.models[i]
		}
		s.models[i].pool = newPool(m.Pages)
		s.models[i].queue = make([]*seat, 0, c.Requests)
		s.models[i].running = make([]*seat, 0, c.Requests)
		s.models[i].rows = make([]Row, 0, c.Requests)
		if s.barrier {
			s.models[i].results = make([]Result, 0, c.Requests)
		}
	}
	return s, nil
}

func (s *Scheduler) addPeer(node int) {
	for i := range s.peers {
		if s.peers[i].node == node {
			return
		}
	}
	s.peers = append(s.peers, peer{node: node})
}

// Turn folds in a set of events that happened by now, plans once, and overwrites out with
// what must be done. The order of in does not matter (I9). It panics on a driver's mistake:
// time that goes back, a completion of an idle model, results that do not match the launch.
func (s *Scheduler) Turn(now Time, in []Event, out *Actions) {
	if now < s.now {
		panic(fmt.Sprintf("core: Turn at %d after Turn at %d", now, s.now))
	}
	s.now = now
	s.out = out
	out.reset()
	if len(in) == 1 {
		s.fold(&in[0])
	} else {
		s.foldSorted(in)
	}
	s.count.Turns++
	if s.coming > 0 {
		s.come()
	}
	s.admit()
	if s.coming > 0 {
		s.wakeForCalls()
	}
	s.plan()
	s.wake = out.Wake
	s.out = nil
}

func (s *Scheduler) foldSorted(in []Event) {
	s.order = s.order[:0]
	for i := range in {
		s.order = append(s.order, int32(i))
	}
	slices.SortStableFunc(s.order, func(a, b int32) int { return compareEvents(&in[a], &in[b]) })
	early := s.order[:0]
	for _, i := range s.order {
		if in[i].Kind == Cancelled && s.byID.get(in[i].ID) < 0 {
			early = append(early, i) // perhaps of a request submitted in this very turn
			continue
		}
		s.fold(&in[i])
	}
	for _, i := range early {
		s.fold(&in[i])
	}
}

// compareEvents orders a turn's events: by kind; completions by model, last model first;
// the others by request, and then by content, so that none is ahead by its place in the turn.
func compareEvents(a, b *Event) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if a.Kind == BatchDone {
		return b.Model - a.Model
	}
	ka, kb := a.key(), b.key()
	switch {
	case ka < kb:
		return -1
	case ka > kb:
		return 1
	}
	switch a.Kind {
	case NewsCame:
		return cmp.Or(int(a.News.Kind)-int(b.News.Kind), int(a.News.Node-b.News.Node))
	case Cancelled:
		return int(a.Reason) - int(b.Reason)
	case Submitted:
		return compareSubmissions(a.Submission, b.Submission)
	}
	return 0
}

// compareSubmissions orders two requests that have the same ID: the second is a Duplicate.
func compareSubmissions(a, b *Submission) int {
	return cmp.Or(
		cmp.Compare(a.PromptTokens, b.PromptTokens), cmp.Compare(a.TokensMax, b.TokensMax),
		cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Models, b.Models),
		cmp.Compare(a.Draw, b.Draw), cmp.Compare(a.Arrival, b.Arrival),
		slices.Compare(a.Prefix, b.Prefix),
	)
}

func (e *Event) key() uint64 {
	switch e.Kind {
	case Arrived:
		return e.Handoff.ID
	case NewsCame:
		return e.News.ID
	case Submitted:
		return e.Submission.ID
	}
	return e.ID
}

func (s *Scheduler) fold(e *Event) {
	switch e.Kind {
	case BatchDone:
		s.batchDone(e)
	case Arrived:
		s.arrived(e.Handoff)
	case NewsCame:
		s.newsCame(&e.News)
	case Lost:
		s.lost(e.ID)
	case Cancelled:
		s.cancelled(e)
	case Submitted:
		s.submitted(e.Submission)
	case Woken:
	default:
		panic(fmt.Sprintf("core: event of kind %d", e.Kind))
	}
}

// bound sets the most tokens of a request, prompt included, and what rests on it. Two kinds take
// rowDone at every row: with a prefix, whose pages it offers to others, and one that may not go
// wherever a Batch sends it.
func (s *Scheduler) bound(r *request, limit int32, prefixed bool) {
	r.limit, r.prefixed = limit, prefixed
	r.easy = limit - 1
	if prefixed || s.batch != nil && r.Models != uint32(1)<<len(s.models)-1 {
		r.easy = 0
	}
}

func (s *Scheduler) seat(slot int32, m int) *seat { return &s.requests[slot].seats[m] }

func (s *Scheduler) wakeBy(t Time) {
	if s.out.Wake == 0 || t < s.out.Wake {
		s.out.Wake = t
	}
}
