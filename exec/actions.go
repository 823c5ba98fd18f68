package exec

import (
	"fmt"
	"slices"

	"tokenrouter/core"
)

// carryOut does what the turn asked for. The order is the core's own: tokens, ends,
// admissions (a slot may be freed and taken in one turn), then messages, pages and launches.
func (l *Loop) carryOut() {
	for i := range l.out.Tokens {
		t := &l.out.Tokens[i]
		q := l.bySlot[t.Slot]
		q.append(Token{ID: t.Token, LogProb: t.LogProb, Model: t.Model, Detail: l.detail(t, q)})
		q.tell()
	}
	l.keepDrafts()
	l.sendNews()
	for i := range l.out.Leaves {
		l.leave(&l.out.Leaves[i])
	}
	for id, q := range l.submitted {
		l.sequences[id] = q
	}
	clear(l.submitted)
	for _, a := range l.out.Admits {
		q := l.sequences[a.ID]
		if q == nil && !l.hasLeft(a.ID) {
			q = &sequence{} // a guest that has not come here yet
			l.sequences[a.ID] = q
		}
		l.bySlot[a.Slot] = q
	}
	for i := range l.out.Sends {
		h := l.out.Sends[i]
		tokens := l.bySlot[h.Slot].suffix(int(h.Anchor), int(h.Anchor+h.Tokens))
		l.send(l.c.Core.Models[h.To].Node, Message{
			Handoff: &h, Anchor: h.Anchor, Tokens: tokens, Sampling: l.bySlot[h.Slot].sampling,
		})
	}
	for _, g := range l.out.Grants {
		r := &l.runners[g.Model]
		r.grants = append(r.grants, g)
	}
	for i := range l.out.Launches {
		l.launch(&l.out.Launches[i])
	}
	for m := range l.runners {
		if !l.runners[m].busy {
			l.runners[m].due = 0
		}
	}
}

// detail is what the pass that made the token says of it, nil unless the request wants that.
func (l *Loop) detail(t *core.Token, q *sequence) *Detail {
	if !q.detailed() {
		return nil
	}
	r := &l.runners[t.Model]
	row := r.rowOf[t.Slot]
	result := &r.pass.Results[row]
	return &Detail{
		TopProb: result.TopProb, Score: result.Score, Entropy: result.Entropy,
		Top: slices.Clone(r.pass.Top[row]),
	}
}

// keepDrafts keeps the scores of drafts that the turn has dropped: of rows whose sequence has not grown.
func (l *Loop) keepDrafts() {
	for i := range l.in {
		e := &l.in[i]
		if e.Kind != core.BatchDone || e.Failed {
			continue
		}
		rows := l.runners[e.Model].pass.Launch.Rows
		for k := range rows {
			row := &rows[k]
			q := l.bySlot[row.Slot]
			if row.Head && q != nil && q.detailed() && len(q.ids) == int(row.Start+row.Fresh) {
				score := e.Results[k].Score
				q.draft = &score
			}
		}
	}
}

// sendNews sends control messages to all other nodes. News of an end carries to the front
// the tokens that it may not have.
func (l *Loop) sendNews() {
	for _, n := range l.out.News {
		for node, link := range l.c.Links {
			if link == nil {
				continue
			}
			m := Message{News: n}
			if q := l.sequences[n.ID]; n.Kind == core.NewsEnded && node == 0 && q != nil {
				anchor := min(int(n.Anchor), len(q.tokens))
				m.Anchor, m.Tokens = int32(anchor), q.suffix(anchor, len(q.tokens))
			}
			l.send(node, m)
		}
	}
}

func (l *Loop) send(node int, m Message) {
	m.At = l.now
	if err := l.c.Links[node].Send(m); err != nil {
		l.report(fmt.Errorf("link to node %d: %w", node, err))
		if m.Handoff != nil {
			l.inbox.complete(stamped{at: l.now, kind: core.Lost, id: m.Handoff.ID})
		}
	}
}

// hasLeft reports whether a guest came and ended in this very turn.
func (l *Loop) hasLeft(id uint64) bool {
	return slices.ContainsFunc(l.out.Leaves, func(e core.Leave) bool { return e.ID == id })
}

// leave tells the end to the one whom it concerns: a refusal to the turn's submission of that
// ID, any other end to the request that was there before, if there was one.
func (l *Loop) leave(e *core.Leave) {
	requests := l.sequences
	if e.Outcome == core.Rejected || requests[e.ID] == nil {
		requests = l.submitted
	}
	q := requests[e.ID]
	if q == nil {
		return // a guest that came and ended before its first message
	}
	delete(requests, e.ID)
	l.own.remove(q.request)
	if e.Slot >= 0 {
		l.bySlot[e.Slot] = nil
		for m := range l.runners {
			if r := &l.runners[m]; r.device != nil {
				r.freed = append(r.freed, e.Slot)
			}
		}
	}
	if q.request != nil && q.request.Sink != nil {
		q.request.Sink.Left(*e)
	}
}

func (l *Loop) launch(launch *core.Launch) {
	r := &l.runners[launch.Model]
	p := &r.pass
	own := append(p.Launch.Rows[:0], launch.Rows...) // the core's may change before the pass's results are told
	p.Launch, p.At = *launch, l.now
	p.Launch.Rows = own
	p.Tokens, p.Contexts = p.Tokens[:0], p.Contexts[:0]
	for i := range launch.Rows {
		row := &launch.Rows[i]
		q := l.bySlot[row.Slot]
		p.Tokens = append(p.Tokens, q.ids[row.Start:row.Start+row.Fresh])
		p.Contexts = append(p.Contexts, Context{Sampling: q.sampling, Prompt: q.prompt, IDs: q.ids})
		r.rowOf[row.Slot] = int32(i)
	}
	rows := len(launch.Rows)
	p.Results, p.Top, p.Errors = p.Results[:rows], p.Top[:rows], p.Errors[:rows]
	clear(p.Results)
	clear(p.Top)
	clear(p.Errors)
	p.DeviceNs = 0
	p.Grants = append(p.Grants[:0], r.grants...)
	p.Freed = append(p.Freed[:0], r.freed...)
	r.grants, r.freed = r.grants[:0], r.freed[:0]
	r.busy = true
	if r.due == 0 {
		r.due = l.now
	}
	r.passes <- p
}
