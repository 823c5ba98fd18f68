// Package meter measures a run, simulated or real, from nothing but its turns: one
// definition of every metric for both worlds. Dictionary lists them.
//
// All times come from the turn in which a token is committed, never from when text reached
// a client. Dropped drafts count nowhere but in Dropped.
package meter

import (
	"tokenrouter/core"
	"tokenrouter/core/meter/quantile"
)

// Config says what is measured.
type Config struct {
	Models int
	Slots  int // core.Config.Requests, of the front
	Nodes  int // 0 means 1
	// WarmupRequests is how many requests must have left before the window opens. Tokens
	// committed before, and the times of requests admitted before, are left out.
	WarmupRequests int
	// GoodTTFT and GoodTPOT are the limits, in ns, that a request must keep for its tokens to
	// count as goodput; 0 means no limit.
	GoodTTFT, GoodTPOT core.Time
	// OnRequest, if set, gets every request that left, in the order of leaving.
	OnRequest func(*Request)
}

// Request is what was measured of one request. Times are ns; -1 means never.
type Request struct {
	ID       uint64
	Arrival  core.Time // planned; in a closed loop, when its worker became free
	Admitted core.Time
	First    core.Time // its first token's commit
	Left     core.Time
	Tokens   int32
	ByLast   int32 // of those, by the last model
	Dropped  int32
	// Model is Leave.Model: whose pool can never hold it (PoolTooSmall), otherwise where it was;
	// -1: nowhere.
	Model    int
	Outcome  core.Outcome
	Reason   core.Reason
	InWarmup bool
}

type slot struct {
	first    core.Time // commit; -1: none yet
	last     core.Time // the latest; -1: none yet
	arrival  core.Time
	admitted core.Time
	id       uint64
	tokens   int32
	byLast   int32
	warmup   bool
}

// Meter measures the turns of one run. It is not safe for concurrent use.
type Meter struct {
	c      Config
	slots  []slot
	models []perModel
	// Of several nodes, the front's slots count. alias[node][slot] is the front's slot.
	byID  map[uint64]int32
	alias []map[int32]int32

	opened   bool
	openedAt core.Time
	closed   bool
	closedAt core.Time
	left     int // requests that left before the window opened

	committed uint64 // in the window
	total     uint64 // in the whole run
	lastToken core.Time
	good      uint64
	outcomes  [5]uint64
	warmups   uint64 // requests admitted, or refused, before the window opened
	ttft      quantile.Sample
	gap       quantile.Sample
	run       struct {
		gap core.Time
		n   int64
	} // of equal gaps, not yet in gap
	perToken  quantile.Sample
	latency   quantile.Sample
	admission quantile.Sample
}

type perModel struct {
	since     core.Time // of the launch in flight; -1: idle
	busy      core.Time // in the window
	tail      core.Time // of busy: after the token at tailAt
	tailAt    core.Time
	launches  uint64
	rows      uint64
	fresh     uint64
	committed uint64
	wait      core.Time
	pendings  uint64
	pending   core.Time
	pagesMax  int
}

// New returns a Meter whose window is open from the start if there is no warm-up.
func New(c Config) *Meter {
	m := &Meter{c: c, slots: make([]slot, c.Slots), models: make([]perModel, c.Models)}
	for i := range m.models {
		m.models[i].since = -1
	}
	for i := range m.slots {
		m.slots[i].admitted = -1
	}
	m.opened = c.WarmupRequests == 0
	if c.Nodes > 1 {
		m.byID = make(map[uint64]int32)
		for range c.Nodes {
			m.alias = append(m.alias, make(map[int32]int32))
		}
	}
	return m
}

// Turn measures a turn of a node: the events that were handed in and the actions that came
// back. A slot may leave and be taken again in one turn, in that order.
func (m *Meter) Turn(node int, now core.Time, in []core.Event, out *core.Actions) {
	for i := range in {
		if in[i].Kind == core.BatchDone {
			m.batchDone(now, &m.models[in[i].Model])
		}
	}
	if len(out.Tokens) > 0 {
		m.tokens(node, now, out.Tokens)
	}
	for i := range out.Leaves {
		m.leave(node, now, &out.Leaves[i])
	}
	for i := range out.Admits {
		m.admit(node, now, &out.Admits[i])
	}
	for i := range out.Launches {
		m.launch(now, &out.Launches[i])
	}
}

// slot is the account of a request that has this slot at the node.
func (m *Meter) slot(node int, slot int32) *slot {
	if node != 0 {
		slot = m.alias[node][slot]
	}
	return &m.slots[slot]
}

func (m *Meter) counting() bool { return m.opened && !m.closed }

func (m *Meter) batchDone(now core.Time, p *perModel) {
	if m.counting() {
		p.busy += now - max(p.since, m.openedAt)
		if p.tailAt != m.lastToken {
			p.tail, p.tailAt = 0, m.lastToken
		}
		p.tail += now - max(p.since, m.openedAt, m.lastToken)
	}
	p.since = -1
}

func (m *Meter) admit(node int, now core.Time, a *core.Admit) {
	if a.Guest {
		m.alias[node][a.Slot] = m.byID[a.ID]
		return
	}
	if m.byID != nil {
		m.byID[a.ID] = a.Slot
	}
	s := &m.slots[a.Slot]
	arrival := a.Arrival
	if arrival < 0 {
		arrival = now
	}
	*s = slot{id: a.ID, arrival: arrival, admitted: now, first: -1, last: -1, warmup: !m.opened}
	if s.warmup {
		m.warmups++
	}
}

func (m *Meter) tokens(node int, now core.Time, tokens []core.Token) {
	m.total += uint64(len(tokens))
	m.lastToken = now
	for len(tokens) > 0 {
		tokens = tokens[m.tokensOfModel(node, now, tokens):]
	}
	if !m.counting() {
		m.run.n = 0
	}
}

// tokensOfModel takes the tokens of a launch, and so of a model, which stand together, and returns
// their number.
func (m *Meter) tokensOfModel(node int, now core.Time, tokens []core.Token) int {
	model, n := tokens[0].Model, 0
	byLast := int32(0)
	if int(model) == len(m.models)-1 {
		byLast = 1
	}
	for n < len(tokens) && tokens[n].Model == model {
		s := m.slot(node, tokens[n].Slot)
		n++
		s.tokens++
		s.byLast += byLast
		gap := now - s.last
		s.last = now
		if s.tokens == 1 {
			s.first = now
			continue
		}
		if s.warmup {
			continue
		}
		if gap != m.run.gap {
			m.flushGaps()
			m.run.gap = gap
		}
		m.run.n++
	}
	if m.counting() {
		m.committed += uint64(n)
		m.models[model].committed += uint64(n)
	}
	return n
}

// flushGaps adds the run of equal times between commits that is being counted: requests that go
// on together, step after step, share theirs.
func (m *Meter) flushGaps() {
	if m.run.n > 0 && m.counting() {
		m.gap.AddN(m.run.gap, m.run.n)
	}
	m.run.n = 0
}

func (m *Meter) launch(now core.Time, l *core.Launch) {
	p := &m.models[l.Model]
	p.since = now
	if !m.counting() {
		return
	}
	p.launches++
	p.rows += uint64(len(l.Rows))
	p.fresh += uint64(l.Fresh)
	p.wait += l.WaitNs
	p.pendings += uint64(l.Pendings)
	p.pending += l.PendingNs
}

func (m *Meter) leave(node int, now core.Time, l *core.Leave) {
	if l.Guest {
		delete(m.alias[node], l.Slot)
		return
	}
	if l.Outcome == core.Rejected { // a Duplicate has the ID of a request that goes on
		m.refused(now, l)
		return
	}
	delete(m.byID, l.ID)
	s := &m.slots[l.Slot]
	if s.id != l.ID || s.admitted < 0 { // cancelled while it waited for admission
		s = &slot{id: l.ID, arrival: -1, admitted: -1, first: -1, last: -1, warmup: !m.opened}
	}
	if s.warmup {
		m.left++
	} else {
		m.count(l.Outcome)
		m.finish(now, s, l)
	}
	if m.c.OnRequest != nil {
		r := Request{ID: s.id, Arrival: s.arrival, Admitted: s.admitted, First: s.first, Left: now,
			Tokens: s.tokens, ByLast: s.byLast, Dropped: l.Dropped, Model: l.Model,
			Outcome: l.Outcome, Reason: l.Reason, InWarmup: s.warmup}
		m.report(&r)
	}
	s.admitted = -1
	if !m.opened && !m.closed && m.left >= m.c.WarmupRequests {
		m.opened = true
		m.openedAt = now
	}
}

// refused counts a request that never was in.
func (m *Meter) refused(now core.Time, l *core.Leave) {
	if m.opened {
		m.count(l.Outcome)
	} else {
		m.warmups++
	}
	m.report(&Request{ID: l.ID, Arrival: -1, Admitted: -1, First: -1, Left: now,
		Model: l.Model, Outcome: l.Outcome, Reason: l.Reason, InWarmup: !m.opened})
}

func (m *Meter) report(r *Request) {
	if m.c.OnRequest != nil {
		m.c.OnRequest(r)
	}
}

func (m *Meter) count(o core.Outcome) { m.outcomes[o]++ }

func (m *Meter) finish(now core.Time, s *slot, l *core.Leave) {
	if s.admitted >= 0 {
		m.admission.Add(s.admitted - s.arrival)
	}
	if l.Outcome != core.Finished || s.first < 0 {
		return
	}
	ttft := s.first - s.arrival
	m.ttft.Add(ttft)
	m.latency.Add(now - s.arrival)
	perToken := core.Time(0)
	if s.tokens > 1 {
		perToken = (s.last - s.first) / core.Time(s.tokens-1)
		m.perToken.Add(perToken)
	}
	if (m.c.GoodTTFT == 0 || ttft <= m.c.GoodTTFT) && (m.c.GoodTPOT == 0 || perToken <= m.c.GoodTPOT) {
		m.good += uint64(s.tokens)
	}
}

// Pages notes the KV pages in use at a model after a turn.
func (m *Meter) Pages(model, held int) {
	if p := &m.models[model]; held > p.pagesMax {
		p.pagesMax = held
	}
}

// Close ends the window at now, so that a run's tail, in which N falls, does not count for
// throughput. Requests that are still live count for latency when they end. Without it the
// window ends with the last token of the run. A window that has not opened by then never
// does: it is empty, at now.
func (m *Meter) Close(now core.Time) {
	if m.closed {
		return
	}
	if !m.opened {
		m.closed, m.openedAt, m.closedAt = true, now, now
		return
	}
	for i := range m.models {
		if p := &m.models[i]; p.since >= 0 {
			p.busy += now - max(p.since, m.openedAt)
		}
	}
	m.flushGaps()
	m.closed = true
	m.closedAt = now
}
