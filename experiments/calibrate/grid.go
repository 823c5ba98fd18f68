package calibrate

import (
	"cmp"
	"slices"

	"tokenrouter/sim/latency"
)

// Shape is one step of a calibration: so many requests, each with the same number of fresh tokens and the
// same number of tokens already in KV.
type Shape struct{ Rows, Fresh, Context int }

// Total is the shape as latency models know it: sums over rows.
func (s Shape) Total() latency.Shape {
	return latency.Shape{Rows: s.Rows, FreshTokens: s.Rows * s.Fresh, ContextTokens: s.Rows * s.Context}
}

// Bounds are what the system to be measured can do.
type Bounds struct {
	Rows    int // requests of a step
	Fresh   int // tokens fed in a step
	Context int // tokens of a request
	Tokens  int // of all requests of a step: what the KV pool holds
}

// Grid is the shapes to measure within bounds: decoding (one fresh token) over batch sizes and contexts,
// extends of a few tokens over batch sizes, and prompts of one request. Rows and contexts vary apart from
// each other, for otherwise a fit can not tell them apart.
func Grid(b Bounds) []Shape {
	var shapes []Shape
	add := func(s Shape) {
		fits := s.Rows <= b.Rows && s.Rows*s.Fresh <= b.Fresh && s.Context+s.Fresh <= b.Context &&
			s.Rows*(s.Context+s.Fresh) <= b.Tokens
		if fits && !slices.Contains(shapes, s) {
			shapes = append(shapes, s)
		}
	}
	for _, rows := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, b.Rows} {
		for _, context := range []int{16, 128, 512, 2048} {
			add(Shape{rows, 1, context})
		}
	}
	for _, rows := range []int{1, 2, 4, 8, 16} {
		for _, fresh := range []int{2, 4, 8, 16, 32} {
			add(Shape{rows, fresh, 128})
		}
	}
	for _, fresh := range []int{64, 128, 256, 512} {
		add(Shape{1, fresh, 0})
		add(Shape{1, fresh, 512})
	}
	slices.SortFunc(shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Fresh, b.Fresh), cmp.Compare(a.Context, b.Context))
	})
	return shapes
}
