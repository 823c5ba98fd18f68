package plots

import (
	"fmt"
	"math"
)

// A Series is one line or set of marks: Y against X, point by point, in drawing order.
//
// Low and High are the ends of the confidence interval of each Y, in its unit; both are nil where there are
// none, and a NaN in either means that this point has none. X, Y and, if given, Low and High have the same
// length. A NaN in X or Y is a missing value and breaks the line.
type Series struct {
	Name      string
	X, Y      []float64
	Low, High []float64
	Predicted bool // drawn as a line without marks, see Sweep
	Published bool // drawn as white diamonds, see Sweep
}

func (s Series) check(what string) error {
	if len(s.X) != len(s.Y) {
		return fmt.Errorf("plots: %s: series %q has %d X and %d Y, want as many",
			what, s.Name, len(s.X), len(s.Y))
	}
	if len(s.Low) != len(s.High) {
		return fmt.Errorf("plots: %s: series %q has %d Low and %d High, want as many",
			what, s.Name, len(s.Low), len(s.High))
	}
	if s.Low != nil && len(s.Low) != len(s.Y) {
		return fmt.Errorf("plots: %s: series %q has %d intervals for %d points, want one each or none",
			what, s.Name, len(s.Low), len(s.Y))
	}
	return nil
}

// A point is a drawable point. Its interval is [low, high]; without one both are NaN.
type point struct {
	x, y      float64
	low, high float64
	index     int // in the series
}

func (p point) hasInterval() bool { return !math.IsNaN(p.low) && !math.IsNaN(p.high) }

// placed is what an axis pair can show of a series.
type placed struct {
	name        string
	runs        [][]point // the unbroken pieces of the line
	notPositive int       // left out: zero or negative on a log axis
	infinite    int       // left out: infinite
}

// place sorts the points of s into those that the axes can show and those that they cannot. A point left out
// breaks the line, because a line across it would claim a value there.
func place(s Series, logX, logY bool) placed {
	out := placed{name: s.Name}
	var run []point
	flush := func() {
		if len(run) > 0 {
			out.runs = append(out.runs, run)
			run = nil
		}
	}
	for i, x := range s.X {
		y := s.Y[i]
		switch {
		case math.IsNaN(x) || math.IsNaN(y):
			flush()
		case math.IsInf(x, 0) || math.IsInf(y, 0):
			out.infinite++
			flush()
		case logX && x <= 0 || logY && y <= 0:
			out.notPositive++
			flush()
		default:
			p := point{x: x, y: y, low: math.NaN(), high: math.NaN(), index: i}
			if s.Low != nil {
				p.low, p.high = min(s.Low[i], s.High[i]), max(s.Low[i], s.High[i])
			}
			run = append(run, p)
		}
	}
	flush()
	return out
}

// points lists all drawable points.
func (p placed) points() []point {
	var all []point
	for _, run := range p.runs {
		all = append(all, run...)
	}
	return all
}

// best is the drawable point with the largest Y, the first of equals.
func (p placed) best() (point, bool) {
	var top point
	found := false
	for _, q := range p.points() {
		if !found || q.y > top.y {
			top, found = q, true
		}
	}
	return top, found
}

// omissions words the number of points left out, or is empty.
func omissions(all []placed) (note string, count int) {
	notPositive, infinite := 0, 0
	for _, p := range all {
		notPositive += p.notPositive
		infinite += p.infinite
	}
	plural := func(n int) string {
		if n == 1 {
			return "1 point"
		}
		return fmt.Sprintf("%d points", n)
	}
	switch {
	case notPositive > 0 && infinite > 0:
		note = fmt.Sprintf("%s not drawn: %d zero or negative on a log axis, %d infinite",
			plural(notPositive+infinite), notPositive, infinite)
	case notPositive > 0:
		note = plural(notPositive) + " not drawn: zero or negative on a log axis"
	case infinite > 0:
		note = plural(infinite) + " not drawn: infinite"
	}
	return note, notPositive + infinite
}
