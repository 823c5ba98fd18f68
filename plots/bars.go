package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
)

// A BarSeries is one bar in every group. All slices have one element a group; Low, High and Published may be
// nil.
type BarSeries struct {
	Name      string
	Values    []float64 // NaN for no bar
	Low, High []float64 // ends of the confidence intervals
	Published []float64 // what a publication has at the same place; NaN for nothing
}

// BarsData is any metric of several systems, in groups of bars.
type BarsData struct {
	Title     string
	X         string // what the groups are; may be empty
	Y         Axis   // a linear one begins at zero, or holds it
	Groups    []string
	Series    []BarSeries
	Published string // name of the published values in the legend; default "published"
}

// barColours are those of series that are no policies, in order; after a round they come lighter.
var barColours = []color.RGBA{blue, orange, green, purple, skyBlue, vermilion, yellow, frameGrey}

// Distances of bars in points, and parts of the room of a group.
const (
	barsHeight  = 128.0 // of the frame
	barWidthMax = 20.0
	groupPart   = 0.84 // of its room that a group fills
	labelRow    = tickSize + 1.6
	columnBars  = 15 // most bars of a figure at column width
)

// Bars draws groups of bars, with a mark across a bar where a publication has a value. It is as wide as a
// column, or as the text if there are many bars. It fails if a slice of a series has not one element a group.
func Bars(d BarsData) (*Figure, error) {
	b, err := newBars(d)
	if err != nil {
		return nil, err
	}
	note, leftOut := omissions(b.omitted())
	width := ColumnWidth
	if len(b.Groups)*len(b.Series) > columnBars || !b.groupLabels(ColumnWidth).whole {
		width = TextWidth
	}
	labels := b.groupLabels(width)
	inner := newSheet(width, 0).width()
	key := newLegend(b.entries(), inner)
	below := tickGap + labels.height + 2
	if b.X != "" {
		below += labelSize + 3
	}
	height := headHeight(b.Title, key, inner) + barsHeight + below + noteHeight(note, inner) + 2*edge
	return &Figure{Width: width, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(width, height)
		s.drawHead(c, b.Title, key)
		s.drawNote(c, note)
		frame := rectangle(b.left(s), s.bottom+below, s.rightOfBars(), s.top-2)
		b.drawAxes(c, s, frame, labels)
		b.drawBars(c, frame)
		c.strokeRect(frame, frameGrey, 0.5)
	}}, nil
}

// bars is BarsData with a vertical axis that holds everything.
type bars struct {
	BarsData
	panel  panel // only y counts; layers hold the intervals
	values []placed
	marks  []placed
}

func newBars(d BarsData) (*bars, error) {
	b := &bars{BarsData: d}
	b.Title, b.X, b.Y.Label = clean(d.Title), clean(d.X), clean(d.Y.Label)
	if b.Published = clean(d.Published); b.Published == "" {
		b.Published = "published"
	}
	b.Groups = nil
	for _, g := range d.Groups {
		b.Groups = append(b.Groups, clean(g))
	}
	places := make([]float64, len(d.Groups))
	for i := range places {
		places[i] = float64(i)
	}
	b.Series = nil
	var series []Series
	for _, q := range d.Series {
		q.Name = clean(q.Name)
		s := Series{Name: q.Name, X: places, Y: q.Values, Low: q.Low, High: q.High}
		if err := s.check("bars"); err != nil {
			return nil, err
		}
		if q.Published == nil {
			q.Published = missing(len(places))
		}
		if len(q.Published) != len(places) {
			return nil, fmt.Errorf("plots: bars: series %q has %d published values for %d groups, want one each",
				q.Name, len(q.Published), len(places))
		}
		series = append(series, s)
		b.Series = append(b.Series, q)
		b.values = append(b.values, place(s, false, b.Y.Log))
		b.marks = append(b.marks, place(Series{X: places, Y: q.Published}, false, b.Y.Log))
	}
	zero := Series{X: []float64{0}, Y: []float64{0}}
	for _, q := range b.Series {
		series = append(series, Series{X: places, Y: q.Published})
	}
	shown := newPanel("", Axis{}, b.Y, series, make([]look, len(series))).points()
	if len(shown) > 0 && !b.Y.Log {
		series = append(series, zero)
	}
	b.Y.Zero = true
	b.panel = newPanel("", Axis{}, b.Y, series, make([]look, len(series)))
	return b, nil
}

// missing is n values that are not there.
func missing(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// points are those of all layers.
func (p panel) points() []point {
	var all []point
	for _, l := range p.layers {
		all = append(all, l.points()...)
	}
	return all
}

func (b *bars) omitted() []placed { return append(append([]placed(nil), b.values...), b.marks...) }

// colour is that of a series: of a policy its own, of the others the next that no policy of the figure has.
func (b *bars) colour(i int) color.RGBA {
	var taken []color.RGBA
	others := 0
	for k, s := range b.Series {
		l, policy := policyLook(s.Name)
		switch {
		case policy && k == i:
			return l.colour
		case policy:
			taken = append(taken, l.colour)
		case k < i:
			others++
		}
	}
	var free []color.RGBA
	for _, c := range barColours {
		if !slices.Contains(taken, c) {
			free = append(free, c)
		}
	}
	switch colour := free[others%len(free)]; others / len(free) {
	case 0:
		return colour
	case 1:
		return lighter(colour)
	default:
		return darker(colour)
	}
}

func (b *bars) entries() []entry {
	var entries []entry
	add := func(name string, draw swatch) { entries = append(entries, entry{name: name, swatch: &draw}) }
	intervals, published := false, false
	for i, s := range b.Series {
		name, colour := s.Name, b.colour(i)
		if len(b.values[i].points()) == 0 && len(b.marks[i].points()) == 0 {
			name += " (no data)"
		}
		add(name, func(c *canvas, r vg.Rectangle) {
			box := rectangle(r.Max.X-9, r.Min.Y, r.Max.X, r.Max.Y)
			c.fillRect(box, colour)
			c.strokeRect(box, ink, 0.4)
		})
		published = published || len(b.marks[i].points()) > 0
		for _, q := range b.values[i].points() {
			intervals = intervals || q.hasInterval() && q.low < q.high
		}
	}
	if published {
		add(b.Published, func(c *canvas, r vg.Rectangle) {
			drawPublished(c, at(r.Max.X-5, (r.Min.Y+r.Max.Y)/2), 5)
		})
	}
	if intervals {
		add("95 % interval", func(c *canvas, r vg.Rectangle) {
			x, bar := r.Max.X-5, pen{colour: ink, width: 0.7}
			c.segment(bar, at(x, r.Min.Y), at(x, r.Max.Y))
			c.segment(bar, at(x-1.6, r.Min.Y), at(x+1.6, r.Min.Y))
			c.segment(bar, at(x-1.6, r.Max.Y), at(x+1.6, r.Max.Y))
		})
	}
	return entries
}

// drawPublished draws the mark of a published value, a line of that half width with a diamond.
func drawPublished(c *canvas, p vg.Point, half vg.Length) {
	c.segment(pen{colour: ink, width: 1}, at(p.X-half, p.Y), at(p.X+half, p.Y))
	c.drawMark(diamond, p, 1.8, ink, opened)
}

// left is the left end of the frame.
func (b *bars) left(s sheet) vg.Length {
	ys, _ := b.panel.yTicks(barsHeight)
	return s.left + labelSize + 4 + tickWidth(ys) + tickGap
}

// rightOfBars is the right end of the frame.
func (s sheet) rightOfBars() vg.Length { return s.right - 4 }

// groupLabels are the names of the groups in lines that fit under them.
type groupLabels struct {
	lines  [][]string
	turned bool // a line each, reading upwards
	height vg.Length
	whole  bool // nothing is shortened or turned
}

// groupLabels breaks the names of the groups, in a figure of that width, or turns all of them where words do
// not fit.
func (b *bars) groupLabels(width vg.Length) groupLabels {
	const linesMax, turnedMax = 4, 110.0
	s := newSheet(width, 0)
	room := (s.rightOfBars()-b.left(s))/vg.Length(max(len(b.Groups), 1)) - wordGap
	out := groupLabels{whole: true}
	for _, g := range b.Groups {
		wrapped := plain().wrap(g, room)
		out.whole = out.whole && len(wrapped) <= linesMax && strings.Join(wrapped, " ") ==
			strings.Join(strings.Fields(g), " ")
		out.lines = append(out.lines, wrapped)
		out.height = max(out.height, vg.Length(len(wrapped))*labelRow)
	}
	if out.whole {
		return out
	}
	out = groupLabels{turned: true}
	for _, g := range b.Groups {
		line := plain().fit(g, turnedMax)
		out.lines = append(out.lines, []string{line})
		out.height = max(out.height, plain().width(line))
	}
	return out
}

func (b *bars) drawAxes(c *canvas, s sheet, frame vg.Rectangle, labels groupLabels) {
	_, power := b.panel.yTicks(frame.Size().Y)
	b.panel.drawYGrid(c, frame)
	s.drawYLabel(c, withPower(b.Y.Label, power), frame)
	room := frame.Size().X / vg.Length(max(len(b.Groups), 1))
	for i, lines := range labels.lines {
		middle := frame.Min.X + room*(vg.Length(i)+0.5)
		if labels.turned {
			turned := plain()
			turned.turned = true
			c.text(turned, at(middle+tickSize*capHeight/2, frame.Min.Y-tickGap), lines[0], atEnd, atStart)
		} else {
			for k, line := range lines {
				c.text(plain(), at(middle, frame.Min.Y-tickGap-vg.Length(k)*labelRow), line, atMid, atEnd)
			}
		}
		if i > 0 {
			x := frame.Min.X + room*vg.Length(i)
			c.segment(pen{colour: frameGrey, width: 0.5}, at(x, frame.Min.Y), at(x, frame.Min.Y-2))
		}
	}
	if b.X != "" {
		s.drawXLabel(c, b.X, (frame.Min.X+frame.Max.X)/2)
	}
	if b.panel.y.empty {
		c.noData(frame)
	}
}

// drawBars draws bars from zero, or the lower end of the axis, then intervals and published values.
func (b *bars) drawBars(c *canvas, frame vg.Rectangle) {
	room := frame.Size().X / vg.Length(max(len(b.Groups), 1))
	width := min(room*groupPart/vg.Length(max(len(b.Series), 1)), barWidthMax)
	middle := func(series int, group float64) vg.Length {
		offset := vg.Length(series) - vg.Length(len(b.Series)-1)/2
		return frame.Min.X + room*(vg.Length(group)+0.5) + offset*width
	}
	up := func(v float64) vg.Length { return b.panel.y.along(v, frame.Min.Y, frame.Max.Y) }
	floor := frame.Min.Y
	if !b.Y.Log {
		floor = up(0)
	}
	for i := range b.Series {
		for _, q := range b.values[i].points() {
			x, y := middle(i, q.x), up(q.y)
			box := rectangle(x-width/2, min(floor, y), x+width/2, max(floor, y))
			c.fillRect(box, b.colour(i))
			c.strokeRect(box, ink, 0.4)
		}
	}
	for i := range b.Series {
		for _, q := range b.values[i].points() {
			if !q.hasInterval() || q.low == q.high {
				continue
			}
			x, thin := middle(i, q.x), pen{colour: ink, width: 0.7}
			low, high := up(max(q.low, b.panel.y.min)), up(q.high)
			c.segment(thin, at(x, low), at(x, high))
			for _, y := range []vg.Length{low, high} {
				c.segment(thin, at(x-1.6, y), at(x+1.6, y))
			}
		}
		for _, q := range b.marks[i].points() {
			drawPublished(c, at(middle(i, q.x), up(q.y)), width/2)
		}
	}
}
