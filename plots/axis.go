package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// An Axis says how one direction of a figure is drawn.
type Axis struct {
	Label   string // the quantity with its unit, as in "throughput (tok/s)"; may hold _{1} and ^{2}
	Log     bool   // logarithmic; zero and negative values are left out
	Integer bool   // only whole numbers are labelled, for counts such as N and B1
	Zero    bool   // a linear axis begins at zero if nothing is negative
}

// A scale is an axis with its range: the values at both ends, min < max and, if log, 0 < min.
type scale struct {
	Axis
	min, max float64
	empty    bool // there was nothing to show, so the ends mean nothing
	whole    bool // each label has its own power of ten, as panels share the axis label
}

// Margins between the outermost value and the frame, as parts of the range.
const rangeMargin = 0.06

// newScale chooses a range that holds all values, with a margin. The values are finite and, for a log axis,
// positive. A flat range is widened: by half a unit on an integer axis, to twice and half the value on a log
// axis, by a tenth of the value else.
func newScale(a Axis, values []float64) scale {
	if len(values) == 0 {
		if a.Log {
			return scale{Axis: a, min: 1, max: 10, empty: true}
		}
		return scale{Axis: a, min: 0, max: 1, empty: true}
	}
	lo, hi := values[0], values[0]
	for _, v := range values[1:] {
		lo, hi = min(lo, v), max(hi, v)
	}
	if a.Log {
		return logScale(a, lo, hi)
	}
	return linearScale(a, lo, hi)
}

func linearScale(a Axis, lo, hi float64) scale {
	fromZero := a.Zero && lo >= 0
	if fromZero {
		lo = 0
	}
	var margin float64
	switch {
	case lo < hi && hi/2-lo/2 > math.Abs(lo)*1e-12:
		margin = (hi/2 - lo/2) * 2 * rangeMargin
	case a.Integer:
		margin = max(0.5, math.Abs(lo)*1e-9)
	case lo == 0 && hi == 0:
		margin = 1
	default:
		margin = max(math.Abs(lo)/10, math.SmallestNonzeroFloat64*1e6)
	}
	low, high := finite(lo-margin), finite(hi+margin)
	if fromZero {
		low = 0
	}
	return scale{Axis: a, min: low, max: high}
}

func logScale(a Axis, lo, hi float64) scale {
	low, high := math.Log10(lo), math.Log10(hi)
	margin := (high - low) * rangeMargin
	if high-low < 1e-9 {
		margin = math.Log10(2)
	}
	// At both ends of the floats the margin runs out of numbers, but the values stay inside.
	lowest := max(math.Pow(10, low-margin), math.SmallestNonzeroFloat64)
	return scale{Axis: a, min: min(lo, lowest), max: max(hi, finite(math.Pow(10, high+margin)))}
}

// finite moves an overflow back to the largest number.
func finite(v float64) float64 {
	return max(-math.MaxFloat64, min(math.MaxFloat64, v))
}

// part is the place of v along the axis: 0 at min, 1 at max. Halves keep the difference of huge numbers
// finite.
func (s scale) part(v float64) float64 {
	if s.Log {
		low := math.Log(s.min)
		return (math.Log(v) - low) / (math.Log(s.max) - low)
	}
	if s.max-s.min > math.MaxFloat64/2 {
		return (v/2 - s.min/2) / (s.max/2 - s.min/2)
	}
	return (v - s.min) / (s.max - s.min)
}

// along is the place of v between two ends on paper, kept inside them.
func (s scale) along(v float64, from, to vg.Length) vg.Length {
	part := max(0, min(1, s.part(v)))
	return from + vg.Length(part)*(to-from)
}
