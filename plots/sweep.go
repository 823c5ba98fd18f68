package plots

import "gonum.org/v1/plot/vg"

// SweepData is any metric against any sweep axis.
type SweepData struct {
	Title  string
	X, Y   Axis
	Series []Series // one a group; a policy's name gives its look, see PolicyNames
	// Published names what the Published series are, in the remark below the axes.
	Published string
}

// Sweep draws a line with marks for each series, at column width. Series of the same name share colour and
// legend entry. Of a name that has a Predicted series, that is the line and the others are marks, so that
// what was measured is seen to lie on the line or beside it. A Published series is white diamonds edged in
// the colour of its name. It fails if the slices of a series differ in length.
func Sweep(d SweepData) (*Figure, error) {
	series := make([]Series, len(d.Series))
	names := make([]string, len(d.Series))
	for i, s := range d.Series {
		if err := s.check("sweep"); err != nil {
			return nil, err
		}
		s.Name = clean(s.Name)
		series[i], names[i] = s, s.Name
	}
	looks, remark := sweepLooks(series, names)
	for _, s := range series {
		if s.Published && d.Published != "" {
			if remark == "" {
				remark = "White diamonds: " + clean(d.Published)
			} else {
				remark += "; white diamonds: " + clean(d.Published)
			}
			break
		}
	}
	d.X.Label, d.Y.Label = clean(d.X.Label), clean(d.Y.Label)
	p := newPanel("", d.X, d.Y, series, looks)
	return single(clean(d.Title), p, remark, nil), nil
}

// sweepLooks is the look of each series, and the remark that tells predictions from the rest.
func sweepLooks(series []Series, names []string) (looks []look, remark string) {
	predicted := make(map[string]bool)
	for i, s := range series {
		predicted[names[i]] = predicted[names[i]] || s.Predicted
	}
	byName := looksFor(names)
	for i, s := range series {
		l := byName[names[i]]
		switch {
		case s.Published:
			l.mark, l.inside, l.noLine = diamond, opened, true
		case s.Predicted:
			l.mark = noMark
			remark = "Lines: predicted; marks: simulated"
		case predicted[names[i]]:
			l.noLine = true
		}
		looks = append(looks, l)
	}
	return looks, remark
}

// single is a figure of one panel at column width; extra, if not nil, draws over the data. The remark stands
// below the axes, after the note about points left out.
func single(title string, p panel, remark string, extra func(c *canvas, frame vg.Rectangle)) *Figure {
	note, leftOut := omissions(p.omitted())
	if note != "" && remark != "" {
		note += "; "
	}
	note += remark
	inner := newSheet(ColumnWidth, 0).width()
	key := newLegend(legendEntries([]panel{p}), inner)
	height := 2.15*vg.Inch + headHeight(title, key, inner) + noteHeight(note, inner)
	return &Figure{Width: ColumnWidth, Height: height, LeftOut: leftOut, draw: func(c *canvas) {
		s := newSheet(ColumnWidth, height)
		s.drawHead(c, title, key)
		s.drawNote(c, note)
		frame := s.drawAxes(c, p)
		p.drawLayers(c, frame)
		if extra != nil {
			extra(c, frame)
		}
	}}
}
