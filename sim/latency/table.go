package latency

import (
	"fmt"
	"slices"
)

// Grid is a set of measured step times: one for every combination of the points of its axes.
type Grid struct {
	Rows    []int   // rising, at least 1
	Fresh   []int   // rising, at least 1; nil when the time does not depend on it
	Context []int   // rising, at least 0; nil when the time does not depend on it
	Ns      []int64 // len(Rows)*len(Fresh)*len(Context) values, the last axis fastest; 1 to MaxStepNs
}

// Table interpolates linearly between the points of a Grid. Its range is the box of the grid; an axis
// of one point is in range at that point only. Make one with NewTable.
type Table struct {
	grid    Grid
	valid   Range
	outside Outside
}

// NewTable checks and copies a grid. Times need not rise along an axis: measured ones do not always.
func NewTable(grid Grid, outside Outside) (*Table, error) {
	if outside != Refuse && outside != Clamp {
		return nil, fmt.Errorf("latency: table with outside = %v, want refuse or clamp", outside)
	}
	if err := checkAxis("table rows", grid.Rows, 1); err != nil {
		return nil, err
	}
	if grid.Fresh != nil {
		if err := checkAxis("table fresh tokens", grid.Fresh, 1); err != nil {
			return nil, err
		}
	}
	if grid.Context != nil {
		if err := checkAxis("table context tokens", grid.Context, 0); err != nil {
			return nil, err
		}
	}
	want := len(grid.Rows) * max(len(grid.Fresh), 1) * max(len(grid.Context), 1)
	if len(grid.Ns) != want {
		return nil, fmt.Errorf("latency: table of %d times, want %d (rows x fresh x context)", len(grid.Ns), want)
	}
	for i, ns := range grid.Ns {
		if ns < 1 || ns > MaxStepNs {
			return nil, fmt.Errorf("latency: table ns[%d] = %d, want 1 to %d", i, ns, MaxStepNs)
		}
	}
	return &Table{
		outside: outside,
		valid:   Range{Rows: spanOf(grid.Rows), Fresh: spanOf(grid.Fresh), Context: spanOf(grid.Context)},
		grid: Grid{
			Rows: slices.Clone(grid.Rows), Fresh: slices.Clone(grid.Fresh), Context: slices.Clone(grid.Context),
			Ns: slices.Clone(grid.Ns),
		},
	}, nil
}

func checkAxis(name string, axis []int, least int) error {
	if len(axis) == 0 {
		return fmt.Errorf("latency: %s: no points, want at least 1", name)
	}
	for i, point := range axis {
		if point < least {
			return fmt.Errorf("latency: %s[%d] = %d, want at least %d", name, i, point, least)
		}
		if i > 0 && point <= axis[i-1] {
			return fmt.Errorf("latency: %s[%d] = %d after %d, want rising points", name, i, point, axis[i-1])
		}
	}
	return nil
}

// ValidRange returns the box of the grid.
func (t *Table) ValidRange() (valid Range, ok bool) { return t.valid, true }

func spanOf(axis []int) Span {
	if axis == nil {
		return Span{}
	}
	return Between(axis[0], axis[len(axis)-1])
}

// StepNs implements Model.
func (t *Table) StepNs(s Shape) (ns int64, inRange bool) {
	inRange = t.valid.holds(&s)
	if !inRange && t.outside == Refuse {
		return Refused, false
	}
	row := place(t.grid.Rows, s.Rows)
	fresh := place(t.grid.Fresh, s.FreshTokens)
	context := place(t.grid.Context, s.ContextTokens)
	across, along := max(len(t.grid.Fresh), 1)*max(len(t.grid.Context), 1), max(len(t.grid.Context), 1)
	low := t.plane(row.index*across, along, fresh, context)
	if row.share == 0 {
		return wholeNs(low, inRange)
	}
	return wholeNs(blend(low, t.plane((row.index+1)*across, along, fresh, context), row.share), inRange)
}

// plane interpolates over fresh and context at one point of the rows axis.
func (t *Table) plane(offset, along int, fresh, context spot) float64 {
	low := t.line(offset+fresh.index*along, context)
	if fresh.share == 0 {
		return low
	}
	return blend(low, t.line(offset+(fresh.index+1)*along, context), fresh.share)
}

func (t *Table) line(offset int, context spot) float64 {
	low := float64(t.grid.Ns[offset+context.index])
	if context.share == 0 {
		return low
	}
	return blend(low, float64(t.grid.Ns[offset+context.index+1]), context.share)
}

// blend keeps multiply and add apart, so that every architecture rounds alike.
func blend(low, high, share float64) float64 { return low + float64((high-low)*share) }

// spot is a place on an axis: at share of the way from point index to the next.
type spot struct {
	index int
	share float64
}

// place finds n on an axis, at the nearest end when it lies outside. No axis has one place only.
func place(axis []int, n int) spot {
	last := len(axis) - 1
	switch {
	case last < 0 || n <= axis[0]:
		return spot{}
	case n >= axis[last]:
		return spot{index: last}
	}
	i, exact := slices.BinarySearch(axis, n)
	if exact {
		return spot{index: i}
	}
	low, high := axis[i-1], axis[i]
	return spot{index: i - 1, share: float64(n-low) / float64(high-low)}
}
