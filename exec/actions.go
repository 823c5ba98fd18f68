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
		q.append(Token{ID: t.Token, LogProb: t.LogProb, Model: t.Model})
		q.tell()
	}
	l.sendNews()
	for i := range l.out.Leaves {
		l.leave(&l.out.Leaves[i])
	}
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
		q := l.bySlot[h.Slot]
		l.send(l.c.Core.Models[h.To].Node, Message{
			Handoff: &h, Anchor: h.Anchor, Tokens: q.tokens[h.Anchor : h.Anchor+h.Tokens],
		})
	}
	for _, g := range l.out.Grants {
		r := &l.runners[g.Model]
		r.grants = append(r.grants, g)
	}
	for i := range l.out.Launches {
		l.launch(&l.out.Launches[i])
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
				m.Anchor, m.Tokens = int32(anchor), q.tokens[anchor:]
			}
			l.send(node, m)
		}
	}
}

func (l *Loop) send(node int, m Message) {
	if err := l.c.Links[node].Send(m); err != nil {
		l.report(fmt.Errorf("link to node %d: %w", node, err))
	}
}

// hasLeft reports whether a guest came and ended in this very turn.
func (l *Loop) hasLeft(id uint64) bool {
	return slices.ContainsFunc(l.out.Leaves, func(e core.Leave) bool { return e.ID == id })
}

func (l *Loop) leave(e *core.Leave) {
	if e.Reason == core.Duplicate {
		l.refuseDuplicate(e)
		return
	}
	q := l.sequences[e.ID]
	if q == nil {
		return
	}
	delete(l.sequences, e.ID)
	if e.Slot >= 0 {
		for m := range l.runners {
			if l.runners[m].device != nil {
				l.runners[m].freed = append(l.runners[m].freed, e.Slot)
			}
		}
	}
	if q.request != nil && q.request.Sink != nil {
		q.request.Sink.Left(*e)
	}
}

func (l *Loop) refuseDuplicate(e *core.Leave) {
	i := slices.IndexFunc(l.duplicates, func(r *Request) bool { return r.ID == e.ID })
	r := l.duplicates[i]
	l.duplicates = slices.Delete(l.duplicates, i, i+1)
	if r.Sink != nil {
		r.Sink.Left(*e)
	}
}

func (l *Loop) launch(launch *core.Launch) {
	r := &l.runners[launch.Model]
	p := &r.pass
	p.Launch, p.At = *launch, l.now
	p.Tokens = p.Tokens[:0]
	for i := range launch.Rows {
		row := &launch.Rows[i]
		p.Tokens = append(p.Tokens, l.bySlot[row.Slot].ids[row.Start:row.Start+row.Fresh])
	}
	p.Results = p.Results[:len(launch.Rows)]
	clear(p.Results)
	p.Grants = append(p.Grants[:0], r.grants...)
	p.Freed = append(p.Freed[:0], r.freed...)
	r.grants, r.freed = r.grants[:0], r.freed[:0]
	r.busy = true
	r.passes <- p
}
