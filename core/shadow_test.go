package core_test

import (
	"slices"

	"tokenrouter/core"
)

// shadow is what a node's driver and devices hold: token ids of requests, and the KV pages
// with the token that was fed at each position. It believes nothing: a row is fed through
// its page table, and what the table holds before the row must be the request's own tokens
// (I2, I7), so that a dropped draft, a lost page or a wrong anchor shows as a wrong token.
type shadow struct {
	w      *world
	node   int
	tokens map[uint64][]int32   // known here
	tables [][][]int32          // [model][slot] pages
	pages  [][][]int32          // [model][page] tokens
	fed    [][]int32            // [model] tokens of every row, in order: what the model has seen
	owners map[[2]uint64]uint64 // slot and generation: whose they are
}

func newShadow(w *world, node int) *shadow {
	sh := &shadow{
		w: w, node: node, tokens: map[uint64][]int32{}, fed: make([][]int32, len(w.config.Models)),
		owners: map[[2]uint64]uint64{},
	}
	for _, m := range w.config.Models {
		sh.tables = append(sh.tables, make([][]int32, w.config.Requests))
		pages := make([][]int32, m.Pages)
		for i := range pages {
			pages[i] = make([]int32, w.config.PageTokens)
		}
		sh.pages = append(sh.pages, pages)
	}
	return sh
}

// before takes what an event brings, before its turn.
func (sh *shadow) before(a *arrival) {
	switch e := &a.event; e.Kind {
	case core.BatchDone:
		if !e.Failed {
			sh.write(a)
		}
	case core.Arrived:
		h := e.Handoff
		known := sh.tokens[h.ID]
		if int(h.Anchor) > len(known) || len(a.ids) != int(h.Tokens) {
			sh.w.t.Fatalf("I7: node %d knows %d tokens of request %d, the hand-off has %d from anchor %d",
				sh.node, len(known), h.ID, len(a.ids), h.Anchor)
		}
		all := append(slices.Clone(known[:h.Anchor]), a.ids...)
		if len(all) < len(known) || !slices.Equal(all[:len(known)], known) {
			sh.w.t.Fatalf("I8: node %d knew %v of request %d, the hand-off says %v", sh.node, known, h.ID, all)
		}
		sh.tokens[h.ID] = all
	case core.NewsCame:
		n := &e.News
		if n.Kind != core.NewsEnded || sh.node != 0 {
			return
		}
		known := sh.tokens[n.ID]
		if int(n.Anchor) > len(known) {
			sh.w.t.Fatalf("front knows %d tokens of request %d, its end has anchor %d", len(known), n.ID, n.Anchor)
		}
		sh.tokens[n.ID] = append(slices.Clone(known[:n.Anchor]), a.ids...)
	}
}

// after takes what a turn has decided: admissions, tokens, grants.
func (sh *shadow) after(out *core.Actions) {
	for _, a := range out.Admits {
		if !a.Guest {
			sh.tokens[a.ID] = slices.Clone(sh.w.prompts[a.ID])
		} else if sh.tokens[a.ID] == nil {
			sh.tokens[a.ID] = []int32{}
		}
	}
	for _, tok := range out.Tokens {
		known := sh.tokens[tok.ID]
		if want := len(known) - len(sh.w.prompts[tok.ID]); int(tok.Position) != want {
			sh.w.t.Fatalf("I8: request %d: token at position %d, want %d", tok.ID, tok.Position, want)
		}
		sh.tokens[tok.ID] = append(known, tok.Token)
	}
	for _, l := range out.Leaves {
		if l.Slot >= 0 {
			for m := range sh.tables {
				sh.tables[m][l.Slot] = nil
			}
		}
	}
	for _, g := range out.Grants {
		table := sh.tables[g.Model][g.Slot]
		for len(table) <= int(g.Index) {
			table = append(table, -1)
		}
		table[g.Index] = g.Page
		sh.tables[g.Model][g.Slot] = table
	}
}

// launch checks what the pages hold before each row, and keeps the rows' tables.
func (sh *shadow) launch(l core.Launch) {
	for _, row := range l.Rows {
		known := sh.tokens[row.ID]
		end := int(row.Start + row.Fresh)
		if row.Fresh < 1 || end > len(known) || row.Head != (end == len(known)) {
			sh.w.t.Fatalf("I7: request %d at model %d: row %+v with %d tokens known", row.ID, l.Model, row, len(known))
		}
		name := [2]uint64{uint64(row.Slot), uint64(row.Gen)}
		if owner, known := sh.owners[name]; known && owner != row.ID {
			sh.w.t.Fatalf("I6: slot %d, generation %d: request %d, before %d", row.Slot, row.Gen, row.ID, owner)
		}
		sh.owners[name] = row.ID
		sh.fed[l.Model] = append(sh.fed[l.Model], known[row.Start:end]...)
		table := sh.tables[l.Model][row.Slot]
		for p := range int(row.Start) {
			if got := *sh.at(l.Model, table, p); got != known[p] {
				sh.w.t.Fatalf("I7: request %d at model %d: KV of position %d is of token %d, want %d (of %v)",
					row.ID, l.Model, p, got, known[p], known)
			}
		}
		sh.at(l.Model, table, end-1) // there must be pages for all
	}
}

func (sh *shadow) at(m int, table []int32, position int) *int32 {
	page := sh.w.config.PageTokens
	if position/page >= len(table) {
		sh.w.t.Fatalf("I2: model %d: position %d has no page, the table has %d", m, position, len(table))
	}
	return &sh.pages[m][table[position/page]][position%page]
}

// write fills the pages of a launch that has ended.
func (sh *shadow) write(a *arrival) {
	for _, row := range a.rows {
		known, table := sh.tokens[row.ID], sh.tables[a.event.Model][row.Slot]
		if known == nil {
			continue // the request is gone; nobody will read it
		}
		for p := row.Start; p < row.Start+row.Fresh; p++ {
			*sh.at(a.event.Model, table, int(p)) = known[p]
		}
	}
}

// suffix is the ids from anchor on of a request that has ended.
func (sh *shadow) suffix(id uint64, anchor int32) []int32 {
	known := sh.tokens[id]
	return slices.Clone(known[min(int(anchor), len(known)):])
}

// handoff is the ids that travel with h.
func (sh *shadow) handoff(h *core.Handoff) []int32 {
	known := sh.tokens[h.ID]
	if int(h.Anchor+h.Tokens) != len(known) {
		sh.w.t.Fatalf("I7: request %d leaves with anchor %d and %d tokens, %d are known",
			h.ID, h.Anchor, h.Tokens, len(known))
	}
	return slices.Clone(known[h.Anchor:])
}

// forget drops the ids of requests that have left; the front keeps their answers.
func (sh *shadow) forget(out *core.Actions) {
	for _, l := range out.Leaves {
		known, ok := sh.tokens[l.ID]
		if !ok || l.Reason == core.Duplicate {
			continue
		}
		if sh.node == 0 {
			prompt := len(sh.w.prompts[l.ID])
			if got := len(known) - prompt; got != int(l.Tokens) {
				sh.w.t.Fatalf("request %d left with %d tokens, %d were committed", l.ID, l.Tokens, got)
			}
			sh.w.answers[l.ID] = known[prompt:]
		}
		delete(sh.tokens, l.ID)
	}
}
