package latency

import (
	"fmt"
	"strings"
)

// Span is an inclusive span of whole numbers; the zero Span holds every number. Make one with Between.
type Span struct {
	Min, Max int
	Bound    bool // false: every number
}

// Between returns the span from least to greatest.
func Between(least, greatest int) Span { return Span{Min: least, Max: greatest, Bound: true} }

// String returns "8..32", or "any" for the zero Span.
func (s Span) String() string {
	if !s.Bound {
		return "any"
	}
	return fmt.Sprintf("%d..%d", s.Min, s.Max)
}

func (s *Span) holds(n int) bool { return !s.Bound || n >= s.Min && n <= s.Max }

// side returns -1 below the span, 1 above it and 0 inside.
func (s Span) side(n int) int {
	switch {
	case s.Bound && n < s.Min:
		return -1
	case s.Bound && n > s.Max:
		return 1
	default:
		return 0
	}
}

func (s Span) nearest(n int) int {
	if !s.Bound {
		return n
	}
	return min(max(n, s.Min), s.Max)
}

// Range is the set of shapes a model was calibrated on: a box. A zero Span leaves its axis free, for a
// quantity that the model does not depend on.
type Range struct {
	Rows, Fresh, Context Span
}

// Holds reports whether a shape lies in the range.
func (r Range) Holds(s Shape) bool { return r.holds(&s) }

// holds is Holds without copies.
func (r *Range) holds(s *Shape) bool {
	return r.Rows.holds(s.Rows) && r.Fresh.holds(s.FreshTokens) && r.Context.holds(s.ContextTokens)
}

// String names the axes that are bound: "rows 8..32, context 0..65536".
func (r Range) String() string {
	var parts []string
	for _, axis := range r.axes() {
		if axis.span.Bound {
			parts = append(parts, axis.name+" "+axis.span.String())
		}
	}
	if parts == nil {
		return "any shape"
	}
	return strings.Join(parts, ", ")
}

type rangeAxis struct {
	name string
	span Span
}

func (r Range) axes() [3]rangeAxis {
	return [3]rangeAxis{{"rows", r.Rows}, {"fresh tokens", r.Fresh}, {"context tokens", r.Context}}
}

func (r Range) nearest(s Shape) Shape {
	s.Rows = r.Rows.nearest(s.Rows)
	s.FreshTokens = r.Fresh.nearest(s.FreshTokens)
	s.ContextTokens = r.Context.nearest(s.ContextTokens)
	return s
}

func (r Range) check() error {
	for _, axis := range r.axes() {
		if axis.span.Min < 0 || axis.span.Max < axis.span.Min {
			return fmt.Errorf("latency: calibrated %s %d..%d, want 0 <= least <= greatest",
				axis.name, axis.span.Min, axis.span.Max)
		}
	}
	return nil
}

// RangeOf returns the calibrated range of a model, looking through wrappers, or ok = false when the
// model is valid everywhere.
func RangeOf(m Model) (valid Range, ok bool) {
	switch m := m.(type) {
	case interface{ ValidRange() (Range, bool) }:
		return m.ValidRange()
	case interface{ Unwrap() Model }:
		return RangeOf(m.Unwrap())
	default:
		return Range{}, false
	}
}

// OutOfRangeError returns the error that ends a run whose model refused a shape.
func OutOfRangeError(name string, m Model, s Shape) error {
	shape := fmt.Sprintf("%d rows, %d fresh and %d context tokens", s.Rows, s.FreshTokens, s.ContextTokens)
	if valid, ok := RangeOf(m); ok && !valid.Holds(s) {
		return fmt.Errorf("latency of %s: a launch of %s lies outside the calibrated range %v", name, shape, valid)
	}
	return fmt.Errorf("latency of %s: a launch of %s takes longer than %d ns", name, shape, MaxStepNs)
}

// Tally counts the launches of one model that were outside its calibrated range. The zero value is
// ready.
type Tally struct {
	Launches int64 // all
	Below    int64 // outside, with some axis below its span and none above
	Above    int64 // outside, with some axis above its span
}

// Note counts one launch and the inRange that StepNs gave for it.
func (t *Tally) Note(m Model, s Shape, inRange bool) {
	t.Launches++
	if !inRange {
		t.noteOutside(m, s)
	}
}

func (t *Tally) noteOutside(m Model, s Shape) {
	valid, _ := RangeOf(m)
	s = innerShape(m, s)
	for _, side := range [...]int{
		valid.Rows.side(s.Rows), valid.Fresh.side(s.FreshTokens), valid.Context.side(s.ContextTokens),
	} {
		if side > 0 {
			t.Above++
			return
		}
	}
	t.Below++
}

// innerShape is the shape that the innermost of wrapped models is asked for.
func innerShape(m Model, s Shape) Shape {
	for {
		if l, ok := m.(*Launched); ok {
			s, _ = l.captured(s)
		}
		inner, ok := m.(interface{ Unwrap() Model })
		if !ok {
			return s
		}
		m = inner.Unwrap()
	}
}

// Warning returns the sentence that a result carries, or "" when every launch was in range.
func (t *Tally) Warning(name string, m Model) string {
	if t.Below+t.Above == 0 {
		return ""
	}
	valid, _ := RangeOf(m)
	var parts []string
	if t.Below > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d launches below", t.Below, t.Launches))
	}
	if t.Above > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d launches above", t.Above, t.Launches))
	}
	return fmt.Sprintf("latency of %s: %s the calibrated range %v", name, strings.Join(parts, " and "), valid)
}

// boxOf returns the least range that holds all points. An axis that is 0 in every point was not recorded
// and stays free.
func boxOf(points []Point) Range {
	grow := func(span Span, n int) Span {
		if !span.Bound {
			return Between(n, n)
		}
		return Between(min(span.Min, n), max(span.Max, n))
	}
	var box Range
	for _, point := range points {
		box.Rows = grow(box.Rows, point.Shape.Rows)
		box.Fresh = grow(box.Fresh, point.Shape.FreshTokens)
		box.Context = grow(box.Context, point.Shape.ContextTokens)
	}
	for _, span := range []*Span{&box.Rows, &box.Fresh, &box.Context} {
		if span.Min == 0 && span.Max == 0 {
			*span = Span{}
		}
	}
	return box
}
