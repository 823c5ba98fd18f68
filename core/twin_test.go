package core_test

import (
	"cmp"
	"slices"

	"tokenrouter/core"
)

// twin is a second scheduler, slow and obvious, written from the design: maps and slices of
// pointers, everything looked at anew in every turn. It makes the decisions that core must
// make. Slots and page numbers are core's own business, so twin has none.
type twin struct {
	c       core.Config
	b       [][]int // threshold rows, for N = 1, 2, ... (Delayed only)
	now     core.Time
	byID    map[uint64]*twinRequest
	waiting []*twinRequest
	models  []*twinModel
	ages    int
	slots   int         // in use
	held    map[int]int // node -> requests announced to it and not freed
	out     *core.Actions
	force   bool
	count   core.Counters
}

type twinRequest struct {
	sub       core.Submission
	visit     core.Visit
	known     int
	limit     int
	age       int
	drops     int
	place     string    // waiting, coming, queued, running, away, tomb, gone
	due       core.Time // of one that is coming
	at        int
	told      bool
	cancelled bool
	outcome   core.Outcome
	reason    core.Reason
	seats     []*twinSeat
}

type twinSeat struct {
	kv       int
	seen     int
	pages    []*twinPage
	since    core.Time
	left     core.Time // with pending
	pending  bool      // the request was here and is away
	returned bool
	rebuild  bool
	partial  bool // its last row was a chunk that others follow
	dropped  int
}

// twinPage is a page in use. A shared one is known by its key.
type twinPage struct {
	holders map[*twinRequest]bool
	before  *twinPage
	shared  bool
	key     uint64
}

type twinModel struct {
	owned   bool
	queue   []*twinRequest
	coming  []*twinRequest
	rows    []core.Row
	running []*twinRequest
	busy    bool
	ended   *core.Event
	seq     uint64
	free    int
	shared  map[uint64]*twinPage
	promise int
	started core.Time   // the last launch
	done    core.Time   // its results were taken
	ahead   bool        // the last launch was decided while the one before ran
	returns []core.Time // since the last launch: how long each was pending
}

func newTwin(c core.Config, b [][]int) *twin {
	t := &twin{c: c, b: b, byID: map[uint64]*twinRequest{}, held: map[int]int{}}
	if t.c.LiveMax == 0 {
		t.c.LiveMax = c.Requests
	}
	if c.Node != 0 {
		t.held[0] = 0
	}
	for _, m := range c.Models {
		t.models = append(t.models, &twinModel{
			owned: m.Node == c.Node, free: m.Pages, shared: map[uint64]*twinPage{},
		})
		if m.Node != c.Node {
			t.held[m.Node] = 0
		}
	}
	return t
}

// turn is Scheduler.Turn.
func (t *twin) turn(now core.Time, in []core.Event) *core.Actions {
	t.now, t.out = now, &core.Actions{}
	t.count.Turns++
	for m := len(t.models) - 1; m >= 0; m-- {
		for _, e := range in {
			if e.Kind == core.BatchDone && e.Model == m {
				t.batchDone(e)
			}
		}
	}
	of := func(kind core.EventKind, id func(e core.Event) uint64, then func(e core.Event)) {
		var some []core.Event
		for _, e := range in {
			if e.Kind == kind {
				some = append(some, e)
			}
		}
		slices.SortFunc(some, func(a, b core.Event) int {
			return cmp.Or(cmp.Compare(id(a), id(b)), int(a.News.Kind)-int(b.News.Kind), int(a.Reason)-int(b.Reason))
		})
		for _, e := range some {
			then(e)
		}
	}
	of(core.Arrived, func(e core.Event) uint64 { return e.Handoff.ID },
		func(e core.Event) { t.arrived(*e.Handoff) })
	of(core.NewsCame, func(e core.Event) uint64 { return e.News.ID }, func(e core.Event) { t.newsCame(e.News) })
	var early []core.Event
	of(core.Cancelled, func(e core.Event) uint64 { return e.ID }, func(e core.Event) {
		if t.byID[e.ID] == nil {
			early = append(early, e)
		} else {
			t.cancelled(e)
		}
	})
	of(core.Submitted, func(e core.Event) uint64 { return e.Submission.ID },
		func(e core.Event) { t.submitted(*e.Submission) })
	for _, e := range early {
		t.cancelled(e)
	}
	t.callsCome()
	t.admit()
	for _, r := range t.byID {
		if r.place == "coming" && (t.out.Wake == 0 || r.due < t.out.Wake) {
			t.out.Wake = r.due
		}
	}
	t.plan()
	return t.out
}

// batchDone: results are judged row by row; under a barrier, when all models have ended.
func (t *twin) batchDone(e core.Event) {
	t.models[e.Model].ended = &e
	if _, barrier := t.c.Policy.(core.Barrier); barrier {
		for _, m := range t.models {
			if m.busy && m.ended == nil {
				return
			}
		}
	}
	for m := len(t.models) - 1; m >= 0; m-- {
		if e := t.models[m].ended; e != nil {
			t.models[m].ended = nil
			t.complete(m, *e)
		}
	}
}

func (t *twin) complete(m int, e core.Event) {
	mo := t.models[m]
	mo.busy, mo.done = false, t.now
	for i, r := range mo.running {
		row := mo.rows[i]
		seat := r.seats[m]
		switch {
		case r.place == "gone":
			t.count.RowsLate++
			t.release(r, m)
			t.freed(r)
		case e.Failed:
			t.end(r, m, core.Failed, core.DeviceFailed)
		default:
			seat.kv = int(row.Start + row.Fresh)
			if !t.c.Models[m].Forgets {
				t.share(r, m, int(row.Start))
			}
			if !row.Head {
				t.enqueue(r, m)
				continue
			}
			next := m
			if t.mask(r.sub) != 1<<m {
				next = t.c.Algorithm.Route(t.visitOf(r, m), &e.Results[i])
			}
			t.judge(r, m, next, &e.Results[i])
		}
	}
	mo.running, mo.rows = nil, nil
}

// judge: the request goes on at next. A kept token is committed.
func (t *twin) judge(r *twinRequest, m, next int, res *core.Result) {
	keep := next == m || t.c.Algorithm.Send(t.visitOf(r, m), res, next)
	r.seats[m].rebuild = false
	if keep {
		t.count.Committed++
		t.out.Tokens = append(t.out.Tokens, core.Token{
			ID: r.sub.ID, Position: int32(r.known) - r.sub.PromptTokens, Token: res.Token,
			LogProb: res.LogProb, Model: int32(m),
		})
		r.known++
		r.drops = 0
		if res.EOS {
			t.end(r, m, core.Finished, core.EndOfSequence)
			return
		}
		if r.known == r.limit {
			t.end(r, m, core.Finished, core.TokensMax)
			return
		}
	} else {
		t.count.Dropped++
		r.seats[m].dropped++
		if r.drops++; r.drops == 100 {
			t.end(r, m, core.Failed, core.NoProgress)
			return
		}
	}
	of := t.c.Models[m]
	if of.Forgets && (next != m || of.TokenCalls) {
		t.release(r, m)
		r.seats[m].rebuild = true
	}
	if next == m {
		if of.TokenCalls {
			t.call(r, m)
		} else {
			t.enqueue(r, m)
		}
		return
	}
	t.count.Handoffs++
	r.seats[m].seen, r.seats[m].pending, r.seats[m].left = r.known, true, t.now
	if t.models[next].owned {
		t.come(r, next)
	} else {
		t.send(r, m, next)
	}
}

func (t *twin) visitOf(r *twinRequest, m int) *core.Visit {
	r.visit.ID, r.visit.Models = r.sub.ID, t.mask(r.sub)
	setVisit(&r.visit, m, r.known-int(r.sub.PromptTokens))
	return &r.visit
}

func (t *twin) mask(sub core.Submission) uint32 {
	if sub.Models == 0 {
		return 1<<len(t.models) - 1
	}
	return sub.Models
}

// come: the request joins the queue of m. It may begin with pages that others have filled.
func (t *twin) come(r *twinRequest, m int) {
	seat := r.seats[m]
	if seat.kv == r.known {
		seat.kv-- // all drafts since were dropped: the last token is fed again, to sample anew
	}
	if len(seat.pages) == 0 && !t.c.Models[m].Forgets {
		t.adopt(r, m)
	}
	if seat.pending {
		seat.pending = false
		t.models[m].returns = append(t.models[m].returns, t.now-seat.left)
	}
	if t.c.Algorithm != nil && t.mask(r.sub) != 1<<m {
		if receiver, ok := t.c.Algorithm.(core.Receiver); ok {
			receiver.Receive(t.visitOf(r, m), r.known-seat.seen)
		}
	}
	t.call(r, m)
}

// call: the request begins a call of m, and is in its queue when that is there.
func (t *twin) call(r *twinRequest, m int) {
	r.seats[m].returned = true
	if t.c.Models[m].DispatchNs == 0 {
		t.enqueue(r, m)
		return
	}
	t.await(r, m, t.c.Models[m].DispatchNs)
}

func (t *twin) await(r *twinRequest, m int, ns core.Time) {
	r.place, r.at, r.due = "coming", m, t.now+ns
	t.models[m].coming = append(t.models[m].coming, r)
}

// callsCome: by models, the earliest first.
func (t *twin) callsCome() {
	for m, mo := range t.models {
		slices.SortStableFunc(mo.coming, func(a, b *twinRequest) int { return cmp.Compare(a.due, b.due) })
		for len(mo.coming) > 0 && mo.coming[0].due <= t.now {
			r := mo.coming[0]
			mo.coming = mo.coming[1:]
			if r.seats[m].returned {
				t.enqueue(r, m)
			} else { // from the front
				t.enter(r)
			}
		}
	}
}

func (t *twin) enqueue(r *twinRequest, m int) {
	r.place, r.at, r.seats[m].since = "queued", m, t.now
	t.models[m].queue = append(t.models[m].queue, r)
}

// live counts N: what is admitted and has not ended, wherever it is.
func (t *twin) live() int {
	n := 0
	for _, r := range t.byID {
		if r.place == "coming" || r.place == "queued" || r.place == "running" || r.place == "away" {
			n++
		}
	}
	return n
}

func (t *twin) awayCount() int {
	n := 0
	for _, r := range t.byID {
		if r.place == "away" {
			n++
		}
	}
	return n
}

// end: the request leaves from here, and the other nodes hear of it.
func (t *twin) end(r *twinRequest, m int, outcome core.Outcome, reason core.Reason) {
	if len(t.held) > 0 {
		anchor := int(r.sub.PromptTokens)
		for i, model := range t.c.Models {
			if model.Node == 0 {
				anchor = max(anchor, r.seats[i].seen)
			}
		}
		if t.c.Node == 0 {
			anchor = r.known
		}
		t.out.News = append(t.out.News, core.News{
			Kind: core.NewsEnded, ID: r.sub.ID, Outcome: outcome, Reason: reason,
			Tokens: int32(r.known) - r.sub.PromptTokens, Anchor: int32(anchor),
		})
	}
	t.leave(r, m, outcome, reason, int32(r.known)-r.sub.PromptTokens)
}

// leave gives back all pages but those of a launch that still runs.
func (t *twin) leave(r *twinRequest, m int, outcome core.Outcome, reason core.Reason, tokens int32) {
	leave := core.Leave{
		ID: r.sub.ID, Tokens: tokens, Model: m, Outcome: outcome, Reason: reason, Guest: t.c.Node != 0,
	}
	for _, seat := range r.seats {
		leave.Dropped += int32(seat.dropped)
	}
	t.out.Leaves = append(t.out.Leaves, leave)
	if t.c.Node == 0 {
		switch outcome {
		case core.Finished:
			t.count.Finished++
		case core.CancelledOutcome:
			t.count.Cancelled++
		case core.Failed:
			t.count.Failed++
		}
	}
	if r.place != "waiting" && t.c.Node == 0 {
		t.promiseAll(r, -1)
	}
	delete(t.byID, r.sub.ID)
	r.place = "gone"
	drains := false
	for i, mo := range t.models {
		mo.queue = slices.DeleteFunc(mo.queue, func(q *twinRequest) bool { return q == r })
		mo.coming = slices.DeleteFunc(mo.coming, func(q *twinRequest) bool { return q == r })
		if mo.busy && slices.Contains(mo.running, r) {
			drains = true
		} else {
			t.release(r, i)
		}
	}
	if drains {
		return
	}
	if t.freed(r); !r.told && t.c.Node != 0 {
		t.byID[r.sub.ID] = &twinRequest{sub: core.Submission{ID: r.sub.ID}, place: "tomb"}
		t.slots++
	}
}

func (t *twin) freed(r *twinRequest) {
	t.slots--
	if r.told && t.c.Node != 0 {
		t.out.News = append(t.out.News, core.News{Kind: core.NewsFreed, ID: r.sub.ID, Node: int32(t.c.Node)})
	}
}

// setVisit, getState and putState hide how a Visit holds its fields.
func setVisit(v *core.Visit, m, position int)   { v.Model, v.Position = int32(m), int32(position) }
func getState(v *core.Visit, state *core.State) { *state = v.State }
func putState(v *core.Visit, state core.State)  { v.State = state }
