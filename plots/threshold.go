package plots

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// ThresholdPanel is the throughput (tok/s, Y) at each threshold B1 of the large model (X) with that many
// requests in flight. Series without points are left away. A name replaces the one in the legend and should
// tell the level of the intervals, as in "simulated, 95 % interval"; it may be empty.
type ThresholdPanel struct {
	Concurrency int
	Predicted   Series // by the throughput model
	Simulated   Series // with intervals over seeds
	Measured    Series // published measurements, or those of the experiment itself, with intervals
}

// ThresholdData is the figure that shows whether prediction, simulation and measurement agree on the best
// threshold; compare figure 10 of TokenRouter, arXiv 2610.12242.
type ThresholdData struct {
	Title  string
	Panels []ThresholdPanel
	// Real says that the experiment measured: its measurements are marks with intervals over seeds, and what was
	// simulated of the same points is a line beside the predicted one.
	Real bool
}

// sourceLooks are those of predicted, simulated and measured values.
var sourceLooks = []look{
	{colour: black, mark: noMark},
	{colour: skyBlue, mark: circle, noLine: true, inside: opened},
	{colour: vermilion, mark: diamond, noLine: true, inside: hollow},
}

// realLooks are the same where the experiment measured.
var realLooks = []look{
	{colour: black, mark: noMark},
	{colour: blue, mark: noMark, dashes: []vg.Length{4, 2}},
	{colour: vermilion, mark: diamond, noLine: true, inside: opened},
}

// Threshold draws a small panel per concurrency at text width, each with its own range. The best point of
// each series is marked: a filled mark, or a ring on the predicted line. It fails if the slices of a series
// differ in length.
func Threshold(d ThresholdData) (*Figure, error) {
	d.Title = clean(d.Title)
	panels := make([]panel, len(d.Panels))
	var all []placed
	for i, q := range d.Panels {
		p, err := q.panel(d.Real)
		if err != nil {
			return nil, err
		}
		panels[i] = p
		all = append(all, p.omitted()...)
	}
	if len(panels) == 0 {
		panels = []panel{newPanel("", thresholdAxis, throughputAxis, nil, nil)}
	}
	note, leftOut := omissions(all)
	g := newGrid(panels)
	entries := thresholdEntries(panels)
	inner := newSheet(g.width, 0).width()
	// A free cell at the end of the grid holds the legend, if it is wide enough; else it stands above.
	inCell := g.free() > 0 && widestEntry(entries) <= g.freeWidth(inner)
	head := legend{}
	if !inCell {
		head = newLegend(entries, inner)
	}
	height := headHeight(d.Title, head, inner) + g.height() + noteHeight(note, inner)
	return &Figure{Width: g.width, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(g.width, height)
		s.drawHead(c, d.Title, head)
		s.drawNote(c, note)
		frames := g.drawAxes(c, s)
		for i, p := range panels {
			p.drawLayers(c, frames[i])
			p.drawBest(c, frames[i])
		}
		if inCell {
			cell := g.cell(s, len(panels))
			key := newLegend(entries, g.freeWidth(inner))
			key.draw(c, at(cell.Max.X-g.freeWidth(inner), (cell.Min.Y+cell.Max.Y+key.height())/2))
		}
	}}, nil
}

var (
	thresholdAxis  = Axis{Label: "threshold of the large model, B_{1} (requests)", Integer: true}
	throughputAxis = Axis{Label: "throughput (tok/s)"}
)

func (q ThresholdPanel) panel(real bool) (panel, error) {
	names, sources := []string{"predicted", "simulated", "measured (published)"}, sourceLooks
	if real {
		names[2], sources = "measured", realLooks
	}
	var series []Series
	var looks []look
	for i, s := range []Series{q.Predicted, q.Simulated, q.Measured} {
		if err := s.check(fmt.Sprintf("threshold: N = %d", q.Concurrency)); err != nil {
			return panel{}, err
		}
		if len(s.X) == 0 && i > 0 {
			continue
		}
		if s.Name = clean(s.Name); s.Name == "" {
			s.Name = names[i]
		}
		series, looks = append(series, s), append(looks, sources[i])
	}
	return newPanel("N = "+strconv.Itoa(q.Concurrency), thresholdAxis, throughputAxis, series, looks), nil
}

// drawBest marks the best point of each series.
func (p panel) drawBest(c *canvas, r vg.Rectangle) {
	for _, l := range p.layers {
		q, ok := l.best()
		if !ok {
			continue
		}
		place := p.at(r, q.x, q.y)
		if l.mark == noMark {
			c.stroke(pen{colour: l.colour, width: 0.9}, circle.outline(place, l.ring()))
			continue
		}
		c.drawMark(l.mark, place, l.radius, l.colour, filled)
	}
}

// Radii of the rings around the best points of lines: wide enough to stand around a mark, and that of a
// dashed line within that of another.
const (
	bestRing   = 4.2
	dashedRing = 2.8
)

func (l look) ring() vg.Length {
	if l.dashes != nil {
		return dashedRing
	}
	return bestRing
}

// thresholdEntries adds the explanation of the best marks to the legend, with those marks that occur.
func thresholdEntries(panels []panel) []entry {
	entries := legendEntries(panels)
	marks := slices.Clone(entries)
	best := swatch(func(c *canvas, r vg.Rectangle) {
		x, y := r.Min.X, (r.Min.Y+r.Max.Y)/2
		for _, e := range marks {
			if e.look.mark == noMark {
				c.stroke(pen{colour: e.look.colour, width: 0.9}, circle.outline(at(x+3.7, y), 3.5))
				x += 8
				continue
			}
			c.drawMark(e.look.mark, at(x+2.9, y), 2, e.look.colour, filled)
			x += 6.1
		}
	})
	if len(entries) == 0 {
		return nil
	}
	return append(entries, entry{name: "best of each", swatch: &best})
}
