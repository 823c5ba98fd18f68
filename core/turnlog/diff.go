package turnlog

import (
	"bufio"
	"fmt"
	"io"
	"reflect"

	"tokenrouter/core"
)

// contextTurns is how many equal turns Diff shows before the first that differs.
const contextTurns = 2

// Diff compares two logs and writes to w, for a person to read, what differs first: in the
// configurations, and then the first turn that is not the same, with the turns before it. It
// reports whether the logs are the same, turn for turn; configurations may then still differ.
// Times, results and events count, not only actions.
func Diff(w io.Writer, a, b *Reader) (same bool, err error) {
	out := bufio.NewWriter(w)
	diffConfigs(out, a, b)
	same, err = diffTurns(out, a, b)
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return same, err
}

func diffConfigs(w *bufio.Writer, a, b *Reader) {
	for i := range max(len(a.configs), len(b.configs)) {
		if i >= len(a.configs) || i >= len(b.configs) {
			fmt.Fprintf(w, "%s has %d nodes, %s has %d\n", a.Name(), len(a.configs), b.Name(), len(b.configs))
			return
		}
		lineA, lineB := configLine(&a.configs[i]), configLine(&b.configs[i])
		if lineA != lineB {
			fmt.Fprintf(w, "configuration of node %d differs\n  %s\n    %s\n  %s\n    %s\n",
				a.configs[i].Node, a.Name(), lineA, b.Name(), lineB)
		}
	}
}

func configLine(c *core.Config) string {
	f := fields{mode: writeObject, first: true}
	showConfig(&f, c)
	return string(f.to)
}

func diffTurns(w *bufio.Writer, a, b *Reader) (same bool, err error) {
	var before []*Turn
	for {
		turnA, err := next(a)
		if err != nil {
			return false, err
		}
		turnB, err := next(b)
		if err != nil {
			return false, err
		}
		if turnA == nil && turnB == nil {
			return true, nil
		}
		field, inA, inB := turnDifference(turnA, turnB)
		if field == "" {
			before = append(before, turnA)
			if len(before) > contextTurns {
				before = before[1:]
			}
			continue
		}
		for _, turn := range before {
			printTurn(w, "  ", turn)
		}
		printSide(w, "- ", turnA)
		printSide(w, "+ ", turnB)
		fmt.Fprintf(w, "first difference: %s\n- %s: %s\n+ %s: %s\n", field, a.Name(), inA, b.Name(), inB)
		return false, nil
	}
}

// next returns the next turn, or nil at the end.
func next(r *Reader) (*Turn, error) {
	turn, err := r.Next()
	if err == io.EOF {
		return nil, nil
	}
	return turn, err
}

func turnDifference(a, b *Turn) (field, inA, inB string) {
	switch {
	case a == nil:
		return "length", "ends", fmt.Sprintf("has turn %d", b.Number)
	case b == nil:
		return "length", fmt.Sprintf("has turn %d", a.Number), "ends"
	}
	lineA, lineB := a.Line, b.Line
	a.Line, b.Line = 0, 0
	field, inA, inB = firstDifference(reflect.ValueOf(a), reflect.ValueOf(b))
	a.Line, b.Line = lineA, lineB
	return field, inA, inB
}

func printSide(w *bufio.Writer, mark string, t *Turn) {
	if t == nil {
		fmt.Fprintf(w, "%send of the log\n", mark)
		return
	}
	printTurn(w, mark, t)
}

// printTurn writes a turn with a line for each event and each kind of action, in the words of
// the log.
func printTurn(w *bufio.Writer, mark string, t *Turn) {
	fmt.Fprintf(w, "%sturn %d node %d now %d\n", mark, t.Number, t.Node, t.Now)
	f := fields{mode: writeObject, first: true}
	for i := range t.In {
		f.to, f.first = f.to[:0], true
		showEvent(&f, &t.In[i])
		fmt.Fprintf(w, "%s  in  %s\n", mark, f.to)
	}
	out := &t.Out
	parts := []core.Actions{
		{Admits: out.Admits}, {Tokens: out.Tokens}, {Leaves: out.Leaves}, {Grants: out.Grants},
	}
	for i := range out.Launches {
		parts = append(parts, core.Actions{Launches: out.Launches[i : i+1]})
	}
	parts = append(parts, core.Actions{Sends: out.Sends}, core.Actions{News: out.News},
		core.Actions{Wake: out.Wake})
	for i := range parts {
		f.to, f.first = f.to[:0], true
		showActions(&f, &parts[i])
		if len(f.to) > 0 {
			fmt.Fprintf(w, "%s  out %s\n", mark, f.to)
		}
	}
}
