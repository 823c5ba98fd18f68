package plots

import (
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// A Schedule is what one policy does with the requests.
type Schedule struct {
	Policy      string
	Launches    []Launch
	Waits       []Wait
	Finishes    []Finish
	MeanLatency float64 // in the unit of the time axis; NaN if there is none
}

// SchedulesData is the mechanism figure: the same few requests under several policies; compare figure 4 of
// TokenRouter, arXiv 2610.12242.
type SchedulesData struct {
	Title     string
	TimeLabel string   // with the unit, as in "time (SLM steps)"
	Models    []string // one lane each, from the top
	Requests  []string // one row each within a lane, from the top
	Schedules []Schedule
}

// Sizes of the timeline in points.
const (
	requestRow = 7.4
	endRadius  = 1.6
	laneGap    = 2.0
	groupTitle = 11.5
	groupGap   = 5.0
)

// Schedules draws the policies one below the other at column width, with a lane for each model and a row for
// each request in it: launches as boxes with a cell for each request, waits as thin lines from a ring, ends
// of requests as diamonds. It fails for a model or request that does not exist and for a launch or wait that
// ends before it begins.
func Schedules(d SchedulesData) (*Figure, error) {
	d = d.cleaned()
	times, leftOut, err := d.times()
	if err != nil {
		return nil, err
	}
	note := unplaced(leftOut)
	time := timeScale(d.TimeLabel, times)
	inner := newSheet(ColumnWidth, 0).width()
	key := newLegend(d.entries(), inner)
	lane := max(1, vg.Length(len(d.Requests))) * requestRow
	group := groupTitle + vg.Length(len(d.Models))*(lane+laneGap) + groupGap
	groups := max(1, vg.Length(len(d.Schedules)))
	height := headHeight(d.Title, key, inner) + groups*group + timeAxis + noteHeight(note, inner)
	return &Figure{Width: ColumnWidth, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(ColumnWidth, height)
		s.drawHead(c, d.Title, key)
		s.drawNote(c, note)
		names := nameWidth(d.Models)
		left := s.left + names + 6
		frame := rectangle(left, s.bottom+labelSize+2+tickSize+tickGap, s.rightOf(time, left), s.top)
		power := timeTicks(c, time, frame)
		s.drawXLabel(c, withPower(d.TimeLabel, power), (frame.Min.X+frame.Max.X)/2)
		if time.empty {
			c.noData(frame)
		}
		for i, q := range d.Schedules {
			top := frame.Max.Y - vg.Length(i)*group
			lanes := rectangle(frame.Min.X, top-group+groupGap, frame.Max.X, top-groupTitle)
			timeGrid(c, time, lanes)
			d.drawGroup(c, q, time, rectangle(frame.Min.X, top-group, frame.Max.X, top), lane, names)
		}
	}}, nil
}

// cleaned makes all strings safe without touching the caller's slices.
func (d SchedulesData) cleaned() SchedulesData {
	d.Title, d.TimeLabel = clean(d.Title), clean(d.TimeLabel)
	d.Models, d.Requests = cleanAll(d.Models), cleanAll(d.Requests)
	schedules := make([]Schedule, len(d.Schedules))
	copy(schedules, d.Schedules)
	for i := range schedules {
		schedules[i].Policy = clean(schedules[i].Policy)
	}
	d.Schedules = schedules
	return d
}

// times lists all drawable instants and checks every span.
func (d SchedulesData) times() (all []float64, leftOut int, err error) {
	add := func(what string, model int, requests []int, from, to float64) error {
		for _, r := range requests {
			if r < 0 || r >= len(d.Requests) {
				return fmt.Errorf("plots: schedules: %s: request %d, want 0 to %d",
					what, r, len(d.Requests)-1)
			}
		}
		ok, err := checkSpan("schedules: "+what, model, len(d.Models), from, to)
		if err != nil {
			return err
		}
		if !ok {
			leftOut++
			return nil
		}
		all = append(all, from, to)
		return nil
	}
	for _, s := range d.Schedules {
		for i, l := range s.Launches {
			what := fmt.Sprintf("%s: launch %d", s.Policy, i)
			if err := add(what, l.Model, l.Requests, l.Start, l.End); err != nil {
				return nil, 0, err
			}
		}
		for i, w := range s.Waits {
			what := fmt.Sprintf("%s: wait %d", s.Policy, i)
			if err := add(what, w.Model, []int{w.Request}, w.From, w.To); err != nil {
				return nil, 0, err
			}
		}
		for i, f := range s.Finishes {
			what := fmt.Sprintf("%s: end %d", s.Policy, i)
			if err := add(what, f.Model, []int{f.Request}, f.At, f.At); err != nil {
				return nil, 0, err
			}
		}
	}
	return all, leftOut, nil
}

// unitOf is the unit in parentheses at the end of an axis label, after a space, or empty.
func unitOf(label string) string {
	open := strings.LastIndexByte(label, '(')
	if open < 0 || !strings.HasSuffix(label, ")") {
		return ""
	}
	return " " + label[open+1:len(label)-1]
}

// drawGroup draws one schedule into r, which is the group with its title.
func (d SchedulesData) drawGroup(c *canvas, s Schedule, time scale, r vg.Rectangle, lane, names vg.Length) {
	style := axisText()
	style.bold = true
	latency := ""
	if !bad(s.MeanLatency) {
		latency = "mean latency " + strconv.FormatFloat(s.MeanLatency, 'f', 2, 64) + unitOf(d.TimeLabel)
	}
	room := r.Size().X - plain().width(latency) - 6
	c.text(style, at(r.Min.X, r.Max.Y-groupTitle+3), style.fit(s.Policy, room), atStart, atStart)
	c.text(plain(), at(r.Max.X, r.Max.Y-groupTitle+3), latency, atEnd, atStart)

	laneOf := func(model int) vg.Rectangle {
		top := r.Max.Y - groupTitle - vg.Length(model)*(lane+laneGap)
		return rectangle(r.Min.X, top-lane, r.Max.X, top)
	}
	rowOf := func(model, request int) (bottom, top vg.Length) {
		top = laneOf(model).Max.Y - vg.Length(request)*requestRow
		return top - requestRow, top
	}
	x := func(t float64) vg.Length { return time.along(t, r.Min.X, r.Max.X) }
	for m, name := range d.Models {
		laneName(c, laneOf(m), name, modelColour(name, m), names)
	}
	for _, l := range s.Launches {
		if !bad(l.Start) && !bad(l.End) {
			d.drawLaunch(c, l, laneOf(l.Model), x, rowOf)
		}
	}
	for _, w := range s.Waits {
		if bad(w.From) || bad(w.To) {
			continue
		}
		bottom, top := rowOf(w.Model, w.Request)
		drawWait(c, x(w.From), x(w.To), (bottom+top)/2)
	}
	for _, f := range s.Finishes {
		if !bad(f.At) {
			bottom, top := rowOf(f.Model, f.Request)
			c.drawMark(diamond, at(x(f.At), (bottom+top)/2), endRadius, black, filled)
		}
	}
}

// drawLaunch draws the box of a launch with a cell for each of its requests.
func (d SchedulesData) drawLaunch(c *canvas, l Launch, lane vg.Rectangle, x func(float64) vg.Length,
	rowOf func(model, request int) (bottom, top vg.Length)) {
	box := rectangle(x(l.Start), lane.Min.Y, x(l.End), lane.Max.Y)
	c.fillRect(box, boxGrey)
	for _, request := range l.Requests {
		bottom, top := rowOf(l.Model, request)
		c.fillRect(rectangle(box.Min.X, bottom, box.Max.X, top), requestColour(request))
		name := d.Requests[request]
		if plain().width(name)+2 <= box.Size().X {
			style := plain()
			style.colour = black
			c.text(style, at((box.Min.X+box.Max.X)/2, (bottom+top)/2), name, atMid, atMid)
		}
	}
	c.strokeRect(box, ink, 0.6)
}

// drawWait draws a thin line from a ring at the arrival to the start.
func drawWait(c *canvas, from, to, y vg.Length) {
	c.segment(pen{colour: noteGrey, width: 0.8}, at(from+2, y), at(to, y))
	c.stroke(pen{colour: noteGrey, width: 0.8}, circle.outline(at(from+2, y), 1.3))
}

func (d SchedulesData) entries() []entry {
	var entries []entry
	seen := make(map[string]bool)
	for i, name := range d.Requests {
		if seen[name] || i >= 8 {
			continue
		}
		seen[name] = true
		key := swatch(func(c *canvas, r vg.Rectangle) {
			box := rectangle(r.Min.X+4, r.Min.Y+0.5, r.Max.X, r.Max.Y-0.5)
			c.fillRect(box, requestColour(i))
			c.strokeRect(box, ink, 0.6)
		})
		entries = append(entries, entry{name: name, swatch: &key})
	}
	wait := swatch(func(c *canvas, r vg.Rectangle) { drawWait(c, r.Min.X+3, r.Max.X, (r.Min.Y+r.Max.Y)/2) })
	end := swatch(func(c *canvas, r vg.Rectangle) {
		c.drawMark(diamond, at(r.Max.X-4, (r.Min.Y+r.Max.Y)/2), endRadius, black, filled)
	})
	return append(entries, entry{name: "waits", swatch: &wait}, entry{name: "finished", swatch: &end})
}

func cleanAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = clean(text)
	}
	return out
}
