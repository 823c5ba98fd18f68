package plots

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// A ParetoLine is what one routing reaches under one policy: a point for each of its thresholds, in their
// order. All slices have the length of Throughput; the intervals may be nil.
type ParetoLine struct {
	Routing    string
	Policy     string    // eager is drawn hollow and dashed, any other filled
	Throughput []float64 // by the X axis of the figure
	Accuracy   []float64 // share of right answers, 0 to 1
	Low, High  []float64 // ends of the interval of each accuracy
	// Alone says that the routing has no threshold, as a model that makes all tokens: its points are large marks
	// with its name beside them.
	Alone bool
}

// A ParetoPanel is all lines with that many requests in flight.
type ParetoPanel struct {
	Concurrency int
	Lines       []ParetoLine
}

// ParetoData is accuracy against throughput; compare figure 7 of TokenRouter, arXiv 2610.12242.
type ParetoData struct {
	Title  string
	X      Axis   // what throughput is
	Note   string // below the axes, as how throughput and intervals are defined
	Panels []ParetoPanel
}

// paretoLooks are those of routings in order of appearance. Under an eager policy the mark is hollow, so each
// has an outline of its own.
var paretoLooks = []look{
	{colour: blue, mark: circle},
	{colour: vermilion, mark: square},
	{colour: green, mark: triangle},
	{colour: purple, mark: diamond},
	{colour: orange, mark: triangleDown},
	{colour: skyBlue, mark: triangleLeft},
	{colour: frameGrey, mark: pentagon},
	{colour: ink, mark: triangleRight},
	{colour: brown, mark: wideCross},
}

// brown is dark enough to differ from orange and vermilion without hue.
var brown = color.RGBA{0x6B, 0x3E, 0x12, 0xFF}

const (
	paretoHeight = 158.0 // of a panel with its title and tick labels
	aloneRadius  = 3.6   // of the mark of a model alone
)

var eagerDashes = []vg.Length{2.5, 1.5}

// Pareto draws a panel for each concurrency, one above the other at column width and with the same axes. It
// fails if the slices of a line differ in length.
func Pareto(d ParetoData) (*Figure, error) {
	d.X.Label = clean(d.X.Label)
	p := newParetoPanels(d.X)
	for _, q := range d.Panels {
		if err := p.add(q); err != nil {
			return nil, err
		}
	}
	if len(p.panels) == 0 {
		p.panels, p.alone = []panel{newPanel("", p.x, p.y, nil, nil)}, make([][]string, 1)
	}
	p.share()
	note, leftOut := omissions(p.omitted())
	if note != "" && d.Note != "" {
		note += ". "
	}
	note += clean(d.Note)
	g := newStack(p.panels, paretoHeight)
	inner := newSheet(g.width, 0).width()
	key := newLegend(p.entries(), inner)
	title := clean(d.Title)
	height := headHeight(title, key, inner) + g.height() + noteHeight(note, inner)
	return &Figure{Width: g.width, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(g.width, height)
		s.drawHead(c, title, key)
		s.drawNote(c, note)
		for i, frame := range g.drawAxes(c, s) {
			p.panels[i].drawLayers(c, frame)
			p.drawNames(c, frame, i)
		}
	}}, nil
}

// paretoPanels are the panels of one figure, with what they have in common.
type paretoPanels struct {
	x, y   Axis
	panels []panel
	alone  [][]string // a panel: the name beside the points of each layer; "" for none
	series []Series   // of all panels
	looks  map[string]look
	eager  bool            // there are eager lines
	other  map[string]bool // routings with a line that is not eager
	single bool            // there are models alone
}

func newParetoPanels(x Axis) paretoPanels {
	return paretoPanels{x: x, y: Axis{Label: "accuracy (%)"}, looks: make(map[string]look),
		other: make(map[string]bool)}
}

func (p *paretoPanels) add(q ParetoPanel) error {
	var series []Series
	var looks []look
	var names []string
	for _, line := range q.Lines {
		s := Series{Name: clean(line.Routing), X: line.Throughput, Y: line.Accuracy, Low: line.Low, High: line.High}
		if err := s.check(fmt.Sprintf("pareto: N = %d", q.Concurrency)); err != nil {
			return err
		}
		s.Y, s.Low, s.High = percent(s.Y), percent(s.Low), percent(s.High)
		name := ""
		if line.Alone {
			name, s.Name = s.Name, ""
		}
		series, looks, names = append(series, s), append(looks, p.look(line)), append(names, name)
	}
	drawn := newPanel("N = "+strconv.Itoa(q.Concurrency), p.x, p.y, series, looks)
	for i := range drawn.layers {
		if names[i] != "" {
			drawn.layers[i].radius = aloneRadius
		}
	}
	p.panels, p.alone, p.series = append(p.panels, drawn), append(p.alone, names), append(p.series, series...)
	return nil
}

// look is the appearance of a line: colour and mark by its routing, filling and dashes by its policy.
func (p *paretoPanels) look(line ParetoLine) look {
	if line.Alone {
		p.single = true
		return look{colour: ink, mark: star, noLine: true}
	}
	name := clean(line.Routing)
	out, known := p.looks[name]
	if !known {
		out = paretoLook(len(p.looks))
		p.looks[name] = out
	}
	if policy, _ := policyLook(line.Policy); policy.colour == policyLooks["eager"].colour {
		out.inside, out.dashes, p.eager = opened, eagerDashes, true
	} else {
		p.other[name] = true
	}
	return out
}

// paretoLook is that of the routing of that number. After a round of the colours these go with other marks.
func paretoLook(i int) look {
	n := len(paretoLooks)
	return look{colour: paretoLooks[i%n].colour, mark: paretoLooks[(i+i/n)%n].mark}
}

// share gives all panels with points the same axes.
func (p *paretoPanels) share() {
	all := newPanel("", p.x, p.y, p.series, make([]look, len(p.series)))
	for i := range p.panels {
		if !p.panels[i].x.empty {
			p.panels[i].x, p.panels[i].y = all.x, all.y
		}
	}
}

func (p *paretoPanels) omitted() []placed {
	var all []placed
	for _, q := range p.panels {
		all = append(all, q.omitted()...)
	}
	return all
}

// entries are the routings, then what filling and stars mean, as far as they occur.
func (p *paretoPanels) entries() []entry {
	entries := legendEntries(p.panels)
	for i := range entries {
		e := &entries[i]
		e.interval = false
		if p.other[e.name] {
			e.look.inside, e.look.dashes = filled, nil
		}
	}
	key := func(name string, m mark, r vg.Length, inside filling) {
		draw := swatch(func(c *canvas, box vg.Rectangle) {
			c.drawMark(m, at(box.Max.X-5, (box.Min.Y+box.Max.Y)/2), r, ink, inside)
		})
		entries = append(entries, entry{name: name, swatch: &draw})
	}
	if p.eager && len(p.other) > 0 {
		key("eager", circle, 2, opened)
		key("delayed", circle, 2, filled)
	}
	if p.single {
		key("no threshold", star, aloneRadius, filled)
	}
	return entries
}

// drawNames writes the names of the routings without a threshold beside their first points, away from all
// else.
func (p *paretoPanels) drawNames(c *canvas, frame vg.Rectangle, i int) {
	room := newRoom(p.panels[i], frame)
	style := plain()
	style.bold = true
	written := make(map[string]bool)
	for k, l := range p.panels[i].layers {
		name, points := p.alone[i][k], l.points()
		if name == "" || written[name] || len(points) == 0 {
			continue
		}
		name = style.fit(name, frame.Size().X/3)
		place := p.panels[i].at(frame, points[0].x, points[0].y)
		if corner, ok := room.around(style, place, name); ok {
			box := style.box(corner, name, atStart, atStart)
			near := at(min(max(place.X, box.Min.X), box.Max.X), min(max(place.Y, box.Min.Y), box.Max.Y))
			if distance(place, near) > 2.2*aloneRadius {
				c.segment(pen{colour: frameGrey, width: 0.5}, place, near)
			}
			c.text(style, corner, name, atStart, atStart)
			written[p.alone[i][k]] = true
		}
	}
}

// around gives the lower left corner of a free place for a text on growing circles around p, and takes it. A
// place from which nothing lies between text and p comes first.
func (m *room) around(s textStyle, p vg.Point, text string) (vg.Point, bool) {
	width, height := s.width(text), vg.Length(s.size*capHeight)
	const directions = 24
	for _, clear := range []bool{true, false} {
		for far := vg.Length(1.9 * aloneRadius); far < 60; far *= 1.15 {
			for turn := range directions {
				sin, cos := math.Sincos(2 * math.Pi * float64(turn) / directions)
				middle := at(p.X+vg.Length(cos)*(far+width/2), p.Y+vg.Length(sin)*(far+height/2))
				box := rectangle(middle.X-width/2, middle.Y-height/2, middle.X+width/2, middle.Y+height/2)
				if m.free(box) && (!clear || m.unbroken(p, middle)) {
					m.taken = append(m.taken, box)
					return box.Min, true
				}
			}
		}
	}
	return vg.Point{}, false
}

// unbroken tells whether nothing lies between p and q but what p itself lies on.
func (m *room) unbroken(p, q vg.Point) bool {
	for _, t := range m.taken {
		if crosses(t, p, q) && !crosses(t, p, p) {
			return false
		}
	}
	return true
}

func distance(a, b vg.Point) vg.Length {
	return vg.Length(math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y)))
}

// percent makes percentages of shares; nil stays nil.
func percent(shares []float64) []float64 {
	if shares == nil {
		return nil
	}
	out := make([]float64, len(shares))
	for i, v := range shares {
		out[i] = 100 * v
	}
	return out
}
