package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a spec or a system's file.
type Problem struct {
	Document string // what the file is: "system"; empty means a spec
	File     string
	Line     int    // from 1; 0 when no line has it
	Key      string // dotted path, as in models[1].latency.step; empty when the file itself is meant
	Value    string // as given; empty when nothing was given
	Text     string // what would be right, as in "want 1 to 4", or what is wrong
}

// Error says where, what was given and what was wanted.
func (p Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", cmp.Or(p.Document, "spec"), p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key)
		if p.Value == "" {
			b.WriteString(": ")
		} else {
			b.WriteString(" = " + p.Value + ", ")
		}
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is everything that is wrong with a spec, in order of file and line, a line of text each. It is
// the only error that Load and LoadSystem return; it means that the file, not the world, is at fault.
type Problems []Problem

// Error is one line a problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems one by one to errors.As and errors.Is.
func (p Problems) Unwrap() []error {
	out := make([]error, len(p))
	for i, problem := range p {
		out[i] = problem
	}
	return out
}

// sorted puts problems in order and leaves one of equals, which points of a sweep make.
func (p Problems) sorted() Problems {
	seen := make(map[Problem]bool)
	p = slices.DeleteFunc(p, func(q Problem) bool {
		again := seen[q]
		seen[q] = true
		return again
	})
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	return p
}

// Nearest returns the known name closest to name, for "did you mean", or "" when none is close: a third of
// its letters may differ, or two.
func Nearest(name string, known []string) string {
	best, least := "", min(max(2, len(name)/3)+1, len(name))
	for _, candidate := range known {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if d < least {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the least number of insertions, deletions, replacements and swaps of neighbours.
func distance(a, b string) int {
	const lengthMax = 64
	if len(a) > lengthMax || len(b) > lengthMax {
		return lengthMax
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
