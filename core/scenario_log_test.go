package core_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tokenrouter/core"
)

// scenarioLog writes what happens in a scenario's words.
type scenarioLog struct {
	strings.Builder
	w *world
}

func (l *scenarioLog) line(format string, args ...any) { fmt.Fprintf(l, format+"\n", args...) }

func (l *scenarioLog) name(m int) string {
	if m < 0 {
		return "nowhere"
	}
	return l.w.config.Models[m].Name
}

func (l *scenarioLog) turn(n *node, in []core.Event, out *core.Actions) {
	var what []string
	for i := range in {
		what = append(what, l.event(&in[i]))
	}
	where := ""
	if len(l.w.nodes) > 1 {
		where = fmt.Sprintf(" node %d", n.id)
	}
	l.line("%d%s: %s", l.w.now/ms, where, strings.Join(what, ", "))
	for _, a := range out.Admits {
		if a.Guest {
			l.line("  guest %d in slot %d", a.ID, a.Slot)
		} else {
			l.line("  admit %d in slot %d", a.ID, a.Slot)
		}
	}
	for _, t := range out.Tokens {
		l.line("  token %d.%d = %d by %s", t.ID, t.Position, t.Token, l.name(int(t.Model)))
	}
	for _, leave := range out.Leaves {
		l.line("  %d leaves %s: %v, %v, %d tokens", leave.ID, l.name(leave.Model), leave.Outcome, leave.Reason,
			leave.Tokens)
	}
	for _, h := range out.Sends {
		ids := n.shadow.tokens[h.ID]
		l.line("  send %d from %s to %s: anchor %d, ids %s", h.ID, l.name(h.From), l.name(h.To), h.Anchor,
			numbers(ids[h.Anchor:]))
	}
	for _, news := range out.News {
		l.line("  news: %s %d", []string{"", "admitted", "ended", "cancel", "freed"}[news.Kind], news.ID)
	}
	for _, launch := range out.Launches {
		var rows []string
		for _, r := range launch.Rows {
			row := fmt.Sprintf("%d@%d+%d", r.ID, r.Start, r.Fresh)
			if r.Returned {
				row += "*"
			}
			if !r.Head {
				row += "..."
			}
			rows = append(rows, row)
		}
		l.line("  %s starts: %s", l.name(launch.Model), strings.Join(rows, " "))
	}
	if out.Wake != 0 {
		l.line("  wake at %d", out.Wake/ms)
	}
	l.state(n)
}

func (l *scenarioLog) event(e *core.Event) string {
	switch e.Kind {
	case core.BatchDone:
		if e.Failed {
			return l.name(e.Model) + " fails"
		}
		return l.name(e.Model) + " ends"
	case core.Arrived:
		return fmt.Sprintf("%d arrives at %s", e.Handoff.ID, l.name(e.Handoff.To))
	case core.NewsCame:
		return fmt.Sprintf("%s %d", []string{"", "admitted", "ended", "cancel", "freed"}[e.News.Kind], e.News.ID)
	case core.Cancelled:
		return fmt.Sprintf("cancel %d", e.ID)
	case core.Submitted:
		return fmt.Sprintf("submit %d", e.Submission.ID)
	case core.Woken:
		return "wake"
	}
	panic(fmt.Sprintf("no event of kind %d", e.Kind))
}

// state writes N, queues and pages held.
func (l *scenarioLog) state(n *node) {
	state := fmt.Sprintf("  N %d", n.s.Live())
	if w := n.s.Waiting(); w > 0 {
		state += fmt.Sprintf(", waiting %d", w)
	}
	for m, model := range l.w.config.Models {
		if model.Node == n.id {
			state += fmt.Sprintf(", %s queue %d pages %d", model.Name, n.s.Queued(m), n.s.PagesHeld(m))
		}
	}
	l.line("%s", state)
}

// end writes answers, what each model was fed, and the counts that are not 0.
func (l *scenarioLog) end() {
	for _, id := range slices.Sorted(maps.Keys(l.w.answers)) {
		l.line("answer %d: %s", id, numbers(l.w.answers[id]))
	}
	for m, model := range l.w.config.Models {
		fed := numbers(l.w.nodes[model.Node].shadow.fed[m])
		if n := len(l.w.nodes[model.Node].shadow.fed[m]); n > 50 {
			fed = fmt.Sprintf("%d tokens", n)
		}
		l.line("fed to %s: %s", model.Name, fed)
	}
	for _, n := range l.w.nodes {
		c := n.s.Counters()
		text := fmt.Sprintf("node %d:", n.id)
		for _, count := range []struct {
			name string
			n    uint64
		}{
			{"submitted", c.Submitted}, {"finished", c.Finished}, {"rejected", c.Rejected},
			{"cancelled", c.Cancelled}, {"failed", c.Failed}, {"committed", c.Committed}, {"dropped", c.Dropped},
			{"fed", c.Fed}, {"recomputed", c.Recomputed}, {"shared", c.PrefixShared}, {"preempted", c.Preempted},
			{"late rows", c.RowsLate}, {"late cancels", c.CancelsLate}, {"unstalled", c.Unstalled},
		} {
			if count.n > 0 {
				text += fmt.Sprintf(" %d %s", count.n, count.name)
			}
		}
		l.line("%s", text)
	}
}
