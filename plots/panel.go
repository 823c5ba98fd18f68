package plots

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// A panel is one pair of axes and what is drawn between them.
type panel struct {
	title  string
	x, y   scale
	layers []layer
}

// A layer is a series with its look.
type layer struct {
	placed
	look
	radius vg.Length // of its marks
	pen    vg.Length // of its line
}

// newPanel places the series on the axes and chooses the ranges from what can be drawn.
func newPanel(title string, x, y Axis, series []Series, looks []look) panel {
	p := panel{title: title}
	var xs, ys []float64
	for i, s := range series {
		l := layer{placed: place(s, x.Log, y.Log), look: looks[i], radius: 2, pen: 1}
		for _, q := range l.points() {
			xs, ys = append(xs, q.x), append(ys, q.y)
			for _, end := range []float64{q.low, q.high} {
				if q.hasInterval() && !math.IsInf(end, 0) && (!y.Log || end > 0) {
					ys = append(ys, end)
				}
			}
		}
		p.layers = append(p.layers, l)
	}
	p.x, p.y = newScale(x, xs), newScale(y, ys)
	return p
}

// omitted lists the layers' placements, for the note about points left out.
func (p panel) omitted() []placed {
	var all []placed
	for _, l := range p.layers {
		all = append(all, l.placed)
	}
	return all
}

// Distances in points.
const (
	tickGap    = 3.0  // between a frame and its tick labels
	tickRowMin = 15.0 // for each label on a vertical axis, on average
	wordGap    = 5.0  // between labels on a horizontal axis
	rowGap     = 4.0  // between labels on a vertical axis, at least
)

// yTicks chooses the ticks of a vertical axis of that height.
func (p panel) yTicks(height vg.Length) ([]tick, int) {
	rowHeight := func(string) vg.Length { return tickSize * capHeight }
	return p.y.fittingTicks(max(2, min(6, int(height/tickRowMin))), height, rowHeight, rowGap)
}

// xTicks chooses as many ticks as fit beside each other.
func (p panel) xTicks(width vg.Length) ([]tick, int) {
	return p.x.fittingTicks(9, width, plain().width, wordGap)
}

// fittingTicks chooses at most most ticks whose labels, of that extent along the axis, keep a gap.
func (s scale) fittingTicks(most int, length vg.Length, extent func(string) vg.Length,
	gap vg.Length) ([]tick, int) {
	for {
		all, power := s.ticks(most)
		var kept []tick
		for _, t := range all {
			if n := len(kept); n > 0 {
				room := s.along(t.value, 0, length) - s.along(kept[n-1].value, 0, length)
				if room < extent(t.label)/2+extent(kept[n-1].label)/2+gap {
					continue
				}
			}
			kept = append(kept, t)
		}
		if most <= 2 || len(kept) == len(all) {
			return kept, power
		}
		most--
	}
}

// tickWidth is the width of the widest tick label.
func tickWidth(marks []tick) vg.Length {
	var w vg.Length
	for _, t := range marks {
		w = max(w, plain().width(t.label))
	}
	return w
}

// at is the place on paper of a pair of values in the frame r.
func (p panel) at(r vg.Rectangle, x, y float64) vg.Point {
	return at(p.x.along(x, r.Min.X, r.Max.X), p.y.along(y, r.Min.Y, r.Max.Y))
}

// drawFrame draws grid, frame, tick labels and the panel's title above the frame.
func (p panel) drawFrame(c *canvas, r vg.Rectangle) {
	grid := pen{colour: gridGrey, width: 0.5}
	xs, _ := p.xTicks(r.Size().X)
	for _, t := range xs {
		x := p.x.along(t.value, r.Min.X, r.Max.X)
		c.segment(grid, at(x, r.Min.Y), at(x, r.Max.Y))
		c.text(plain(), at(x, r.Min.Y-tickGap), t.label, atMid, atEnd)
	}
	p.drawYGrid(c, r)
	c.strokeRect(r, frameGrey, 0.5)
	if p.title != "" {
		style := axisText()
		style.bold = true
		c.text(style, at((r.Min.X+r.Max.X)/2, r.Max.Y+3), style.fit(p.title, r.Size().X), atMid, atStart)
	}
	if p.x.empty {
		c.noData(r)
	}
}

// drawYGrid draws the lines and labels of the vertical axis.
func (p panel) drawYGrid(c *canvas, r vg.Rectangle) {
	ys, _ := p.yTicks(r.Size().Y)
	for _, t := range ys {
		y := p.y.along(t.value, r.Min.Y, r.Max.Y)
		c.segment(pen{colour: gridGrey, width: 0.5}, at(r.Min.X, y), at(r.Max.X, y))
		c.text(plain(), at(r.Min.X-tickGap, y), t.label, atEnd, atMid)
	}
}

// drawLayers draws all intervals, then all lines, then all marks, so that no mark is hidden by a line.
func (p panel) drawLayers(c *canvas, r vg.Rectangle) {
	for _, l := range p.layers {
		for _, q := range l.points() {
			p.drawInterval(c, r, l, q)
		}
	}
	for _, l := range p.layers {
		if l.noLine {
			continue
		}
		for _, run := range l.runs {
			path := make([]vg.Point, len(run))
			for i, q := range run {
				path[i] = p.at(r, q.x, q.y)
			}
			c.polyline(pen{colour: l.colour, width: l.pen, dashes: l.dashes}, path)
		}
	}
	for _, l := range p.layers {
		for _, run := range l.runs {
			for _, q := range run {
				// A crowded line is readable without marks, a lone point is not visible without one.
				if len(run) == 1 || len(run) <= crowd {
					c.drawMark(l.shown(len(run)), p.at(r, q.x, q.y), l.radius, l.colour, l.fill())
				}
			}
		}
	}
}

// crowd is the number of points of an unbroken line from which on it is drawn without marks.
const crowd = 40

// shown is the mark of the points of a run: a lone point is always shown as a mark.
func (l layer) shown(runLength int) mark {
	if l.mark == noMark && runLength == 1 {
		return circle
	}
	return l.mark
}

// drawInterval draws an error bar. An end outside the axis (zero or less on a log axis, or infinite) runs
// into the frame without a cap.
func (p panel) drawInterval(c *canvas, r vg.Rectangle, l layer, q point) {
	if !q.hasInterval() {
		return
	}
	thin := pen{colour: l.colour, width: 0.7}
	x := p.x.along(q.x, r.Min.X, r.Max.X)
	end := func(v float64, beyond vg.Length) vg.Length {
		if math.IsInf(v, 0) || p.y.Log && v <= 0 {
			return beyond
		}
		y := p.y.along(v, r.Min.Y, r.Max.Y)
		c.segment(thin, at(x-1.6, y), at(x+1.6, y))
		return y
	}
	low, high := end(q.low, r.Min.Y), end(q.high, r.Max.Y)
	c.segment(thin, at(x, low), at(x, high))
}
