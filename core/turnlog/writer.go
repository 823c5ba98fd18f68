package turnlog

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"tokenrouter/core"
)

// FormatName and Version stand in the first line of a log.
const (
	FormatName = "tokenrouter-turnlog"
	Version    = 1
)

// flushBytes is how much a Writer gathers before it writes.
const flushBytes = 1 << 16

// Writer writes a log. Its calls must follow one another, whatever goroutines make them.
type Writer struct {
	w    io.Writer
	f    fields
	turn Turn
	in   []core.Event // sorted
	err  error
}

// NewWriter writes the header: the configuration of each Scheduler of the run, in order of
// nodes. Policies and algorithms that have no name are written by their Go type: such a log
// can be read and compared, and replayed by ReplayWith.
func NewWriter(w io.Writer, configs ...core.Config) (*Writer, error) {
	if len(configs) == 0 {
		return nil, fmt.Errorf("turnlog: no configuration, want that of every node")
	}
	t := &Writer{w: w}
	head := header{Format: FormatName, Version: Version, Nodes: len(configs)}
	t.line(func(f *fields) { showHeader(f, &head) })
	for i := range configs {
		if i > 0 && configs[i].Node <= configs[i-1].Node {
			return nil, fmt.Errorf("turnlog: configuration of node %d after that of node %d, want them in order",
				configs[i].Node, configs[i-1].Node)
		}
		t.line(func(f *fields) { showConfig(f, &configs[i]) })
	}
	return t, nil
}

// line writes one line, whose fields show displays.
func (t *Writer) line(show func(*fields)) {
	t.f.mode, t.f.first = writeObject, true
	t.f.to = append(t.f.to, '{')
	show(&t.f)
	t.f.to = append(t.f.to, '}', '\n')
}

// Turn writes what went into and came out of one core.Scheduler.Turn of a node, before the
// next turn of that node. Events are written in the scheduler's order, whatever their order in
// in. Errors of writing wait for Flush.
func (t *Writer) Turn(node int, now core.Time, in []core.Event, out *core.Actions) {
	t.turn.Number++
	t.turn.Node, t.turn.Now, t.turn.Out = node, now, *out
	t.turn.In = t.sorted(in)
	t.f.mode, t.f.first = writeObject, true
	t.f.to = append(t.f.to, '{')
	showTurn(&t.f, &t.turn)
	t.f.to = append(t.f.to, '}', '\n')
	if len(t.f.to) >= flushBytes {
		t.write()
	}
}

// sorted returns in as it is if it is in order, or else a sorted copy.
func (t *Writer) sorted(in []core.Event) []core.Event {
	before := func(a, b core.Event) int { return core.CompareEvents(&a, &b) }
	if len(in) < 2 || slices.IsSortedFunc(in, before) {
		return in
	}
	t.in = append(t.in[:0], in...)
	slices.SortStableFunc(t.in, before)
	return t.in
}

func (t *Writer) write() {
	if t.err == nil {
		_, err := t.w.Write(t.f.to)
		t.err = cmp.Or(t.err, err)
	}
	t.f.to = t.f.to[:0]
}

// Flush writes what is gathered and returns the first error of all writing.
func (t *Writer) Flush() error {
	t.write()
	return t.err
}
