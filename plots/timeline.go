package plots

import (
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// TimelineData is the launches of a trace.
type TimelineData struct {
	Title     string
	TimeLabel string   // with the unit, as in "time (ms)"
	Models    []string // one lane each, from the top
	Launches  []Launch
	From, To  float64 // the window shown; all if To is not above From
}

const timelineLane = 38.0

// Timeline draws launches as boxes at text width, a lane for each model. The height of a box is the size of
// its batch against the largest one, and the number is written in it where it fits. Launches outside the
// window are not drawn, those across its ends are cut. It fails for a model that does not exist and for a
// launch that ends before it begins.
func Timeline(d TimelineData) (*Figure, error) {
	d.Title, d.TimeLabel, d.Models = clean(d.Title), clean(d.TimeLabel), cleanAll(d.Models)
	windowed := d.To > d.From
	var shown []Launch
	var times []float64
	leftOut, rowsMax := 0, 1
	for i, l := range d.Launches {
		ok, err := checkSpan(fmt.Sprintf("timeline: launch %d", i), l.Model, len(d.Models), l.Start, l.End)
		if err != nil {
			return nil, err
		}
		if !ok {
			leftOut++
			continue
		}
		if windowed && (l.End <= d.From || l.Start >= d.To) {
			continue
		}
		shown = append(shown, l)
		times = append(times, l.Start, l.End)
		rowsMax = max(rowsMax, len(l.Requests))
	}
	if windowed && len(shown) > 0 {
		times = []float64{d.From, d.To}
	}
	note := "Height of a box: requests in the launch, at most " + strconv.Itoa(rowsMax)
	if missing := unplaced(leftOut); missing != "" {
		note += "; " + missing
	}
	time := timeScale(d.TimeLabel, times)
	if windowed && !bad(d.From) && !bad(d.To) && len(shown) > 0 {
		time.min, time.max = d.From, d.To
	}
	inner := newSheet(TextWidth, 0).width()
	lanes := max(1, vg.Length(len(d.Models)))
	height := headHeight(d.Title, legend{}, inner) + lanes*(timelineLane+groupGap) + timeAxis +
		noteHeight(note, inner)
	return &Figure{Width: TextWidth, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(TextWidth, height)
		s.drawHead(c, d.Title, legend{})
		s.drawNote(c, note)
		names := nameWidth(d.Models)
		left := s.left + names + 6
		frame := rectangle(left, s.bottom+labelSize+2+tickSize+tickGap, s.rightOf(time, left), s.top)
		timeGrid(c, time, frame)
		power := timeTicks(c, time, frame)
		s.drawXLabel(c, withPower(d.TimeLabel, power), (frame.Min.X+frame.Max.X)/2)
		d.drawLanes(c, frame, time, shown, rowsMax, names)
	}}, nil
}

func (d TimelineData) drawLanes(c *canvas, r vg.Rectangle, time scale, shown []Launch, rowsMax int,
	names vg.Length) {
	laneOf := func(model int) vg.Rectangle {
		top := r.Max.Y - vg.Length(model)*(timelineLane+groupGap)
		return rectangle(r.Min.X, top-timelineLane, r.Max.X, top)
	}
	for m, name := range d.Models {
		laneName(c, laneOf(m), name, modelColour(name, m), names)
	}
	if time.empty {
		c.noData(r)
	}
	// Overlapping launches of one model cannot be, but if they are, the shorter stays visible.
	ordered := slices.Clone(shown)
	slices.SortStableFunc(ordered, func(a, b Launch) int { return len(b.Requests) - len(a.Requests) })
	for _, l := range ordered {
		lane := laneOf(l.Model)
		height := timelineLane * vg.Length(len(l.Requests)) / vg.Length(rowsMax)
		box := rectangle(time.along(l.Start, r.Min.X, r.Max.X), lane.Min.Y,
			time.along(l.End, r.Min.X, r.Max.X), lane.Min.Y+max(height, 0.5))
		c.fillRect(box, lighter(modelColour(d.Models[l.Model], l.Model)))
		c.strokeRect(box, modelColour(d.Models[l.Model], l.Model), 0.5)
		rows := strconv.Itoa(len(l.Requests))
		if plain().width(rows)+2 <= box.Size().X && box.Size().Y >= tickSize+2 {
			c.text(plain(), at((box.Min.X+box.Max.X)/2, (box.Min.Y+box.Max.Y)/2), rows, atMid, atMid)
		}
	}
}
