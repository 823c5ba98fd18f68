package calibrate

import (
	"cmp"
	"slices"

	"tokenrouter/core"
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

// BoundsOf is what all models of a scheduler can do.
func BoundsOf(c core.Config) Bounds {
	b := Bounds{
		Rows: c.LiveMax, Fresh: c.TokenBudget, Context: c.ContextMax,
		Tokens: c.Models[0].Pages * c.PageTokens,
	}
	for _, m := range c.Models {
		if m.RowsMax > 0 {
			b.Rows = min(b.Rows, m.RowsMax)
		}
	}
	return b
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
	contexts, middle := []int{16, 128, 512, 2048}, 128
	if b.Context < 2*middle {
		middle = b.Context / 2
		contexts = []int{b.Context / 8, middle, b.Context - 1}
	}
	for _, rows := range []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, b.Rows} {
		for _, context := range contexts {
			add(Shape{rows, 1, context})
		}
	}
	for _, rows := range []int{1, 2, 4, 8, 16} {
		for _, fresh := range []int{2, 4, 8, 16, 32} {
			add(Shape{rows, fresh, middle})
		}
	}
	for _, fresh := range []int{8, 64, 128, 256, 512} {
		add(Shape{1, fresh, 0})
		add(Shape{1, fresh, 512})
	}
	slices.SortFunc(shapes, func(a, b Shape) int {
		return cmp.Or(cmp.Compare(a.Rows, b.Rows), cmp.Compare(a.Fresh, b.Fresh), cmp.Compare(a.Context, b.Context))
	})
	return shapes
}
