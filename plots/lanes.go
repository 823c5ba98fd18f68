package plots

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// A Launch is one forward pass of one model over a batch.
type Launch struct {
	Model      int // index of its lane
	Start, End float64
	Requests   []int // the rows of the batch, as indices of requests
}

// A Wait is a request that waits at a model, from its arrival in the queue to the start of its launch.
type Wait struct {
	Model, Request int
	From, To       float64
}

// A Finish is the end of a request, shown in the lane of the model that made its last token.
type Finish struct {
	Model, Request int
	At             float64
}

// timeAxis is the room for tick labels and label below the lanes, and for the border.
const timeAxis = 28.0

// checkSpan tells whether a span of time can be drawn. NaN and infinite times cannot; an end before its
// start, or a lane that does not exist, is an error.
func checkSpan(what string, model, models int, from, to float64) (drawable bool, err error) {
	if model < 0 || model >= models {
		return false, fmt.Errorf("plots: %s: model %d, want 0 to %d", what, model, models-1)
	}
	if bad(from) || bad(to) {
		return false, nil
	}
	if to < from {
		return false, fmt.Errorf("plots: %s: ends at %v before it begins at %v", what, to, from)
	}
	return true, nil
}

func bad(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// unplaced words the number of spans left out, or is empty.
func unplaced(count int) string {
	switch count {
	case 0:
		return ""
	case 1:
		return "1 launch, wait or end not drawn: its time is not finite"
	default:
		return fmt.Sprintf("%d launches, waits or ends not drawn: their times are not finite", count)
	}
}

// timeScale is the horizontal axis of a timeline: from the first to the last instant, without a margin.
func timeScale(label string, times []float64) scale {
	a := Axis{Label: label}
	if len(times) == 0 {
		return scale{Axis: a, min: 0, max: 1, empty: true}
	}
	s := scale{Axis: a, min: times[0], max: times[0]}
	for _, t := range times {
		s.min, s.max = min(s.min, t), max(s.max, t)
	}
	if s.min > 0 && s.min < 0.25*s.max {
		s.min = 0
	}
	if s.max-s.min <= math.Abs(s.max)*1e-12 {
		return newScale(a, times)
	}
	return s
}

// timeGrid draws the vertical lines of the ticks.
func timeGrid(c *canvas, s scale, r vg.Rectangle) {
	marks, _ := panel{x: s}.xTicks(r.Size().X)
	for _, t := range marks {
		x := s.along(t.value, r.Min.X, r.Max.X)
		c.segment(pen{colour: gridGrey, width: 0.5}, at(x, r.Min.Y), at(x, r.Max.Y))
	}
}

// timeTicks draws the axis below all lanes, and gives the power of ten taken out of its labels.
func timeTicks(c *canvas, s scale, r vg.Rectangle) (power int) {
	marks, power := panel{x: s}.xTicks(r.Size().X)
	for _, t := range marks {
		x := s.along(t.value, r.Min.X, r.Max.X)
		c.segment(pen{colour: frameGrey, width: 0.5}, at(x, r.Min.Y), at(x, r.Min.Y+2))
		c.text(plain(), at(x, r.Min.Y-tickGap), t.label, atMid, atEnd)
	}
	c.segment(pen{colour: frameGrey, width: 0.5}, r.Min, at(r.Max.X, r.Min.Y))
	return power
}

// laneName writes a model's name at the left of its lane, with a bar in its colour.
func laneName(c *canvas, r vg.Rectangle, name string, colour color.Color, width vg.Length) {
	c.fillRect(rectangle(r.Min.X-3.2, r.Min.Y, r.Min.X-1.2, r.Max.Y), colour)
	c.text(plain(), at(r.Min.X-6, (r.Min.Y+r.Max.Y)/2), plain().fit(name, width), atEnd, atMid)
}

// nameWidth is the room that the names of lanes need.
func nameWidth(names []string) vg.Length {
	var w vg.Length
	for _, name := range names {
		w = max(w, plain().width(name))
	}
	return min(w, 60)
}
