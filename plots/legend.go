package plots

import "gonum.org/v1/plot/vg"

// An entry is one line of a legend: a name and how its series looks.
type entry struct {
	name     string
	look     look
	interval bool    // the series has error bars
	swatch   *swatch // drawn instead of the look if not nil
}

// A swatch is a legend key of its own shape, drawn into the rectangle.
type swatch func(c *canvas, r vg.Rectangle)

const (
	keyWidth     = 20.0
	keyGap       = 3.0
	entryGap     = 9.0
	legendHeight = 10.5 // of a row
)

// legendEntries makes one entry for each distinct name, in order of first appearance. A name whose series
// have nothing to show in any panel keeps its entry, marked "(no data)".
func legendEntries(panels []panel) []entry {
	var entries []entry
	where := make(map[string]int)
	shown := make(map[string]bool)
	for _, p := range panels {
		for _, l := range p.layers {
			if l.name == "" {
				continue
			}
			if at, ok := where[l.name]; !ok {
				where[l.name] = len(entries)
				entries = append(entries, entry{name: l.name, look: l.look})
			} else { // a line and marks of one name are one entry
				e := &entries[at]
				e.look.noLine = e.look.noLine && l.noLine
				if e.look.mark == noMark {
					e.look.mark = l.mark
				}
			}
			for _, q := range l.points() {
				shown[l.name] = true
				entries[where[l.name]].interval = entries[where[l.name]].interval || q.hasInterval()
			}
		}
	}
	for i, e := range entries {
		if !shown[e.name] {
			entries[i].name += " (no data)"
		}
	}
	return entries
}

// A legend is entries arranged in rows of equal columns, or in one row of natural widths if they fit.
type legend struct {
	entries []entry
	widths  []vg.Length // of the columns
}

// widestEntry is the width of the widest entry with its key.
func widestEntry(entries []entry) vg.Length {
	var w vg.Length
	for _, e := range entries {
		w = max(w, keyWidth+keyGap+plain().width(e.name))
	}
	return w
}

func newLegend(entries []entry, width vg.Length) legend {
	var total, widest vg.Length
	natural := make([]vg.Length, len(entries))
	for i := range entries {
		entries[i].name = plain().fit(entries[i].name, width-keyWidth-keyGap)
		natural[i] = keyWidth + keyGap + plain().width(entries[i].name)
		total += natural[i] + entryGap
		widest = max(widest, natural[i])
	}
	if total-entryGap <= width {
		return legend{entries, natural}
	}
	columns := max(1, int((width+entryGap)/(widest+entryGap)))
	rows := (len(entries) + columns - 1) / columns
	columns = (len(entries) + rows - 1) / rows
	widths := make([]vg.Length, columns)
	for i := range widths {
		widths[i] = widest
	}
	return legend{entries, widths}
}

func (l legend) rows() int {
	if len(l.entries) == 0 {
		return 0
	}
	return (len(l.entries) + len(l.widths) - 1) / len(l.widths)
}

func (l legend) height() vg.Length { return vg.Length(l.rows()) * legendHeight }

func (l legend) width() vg.Length {
	total := vg.Length(len(l.widths)-1) * entryGap
	for _, w := range l.widths {
		total += w
	}
	return total
}

// draw puts the legend's top left corner at p.
func (l legend) draw(c *canvas, p vg.Point) {
	x, y := p.X, p.Y-legendHeight/2
	for i, e := range l.entries {
		column := i % len(l.widths)
		if column == 0 && i > 0 {
			x, y = p.X, y-legendHeight
		}
		e.drawKey(c, rectangle(x, y-3.5, x+keyWidth, y+3.5))
		c.text(plain(), at(x+keyWidth+keyGap, y), e.name, atStart, atMid)
		x += l.widths[column] + entryGap
	}
}

func (e entry) drawKey(c *canvas, r vg.Rectangle) {
	if e.swatch != nil {
		(*e.swatch)(c, r)
		return
	}
	y, mid := (r.Min.Y+r.Max.Y)/2, (r.Min.X+r.Max.X)/2
	if e.interval {
		bar := pen{colour: e.look.colour, width: 0.7}
		c.segment(bar, at(mid, r.Min.Y), at(mid, r.Max.Y))
		c.segment(bar, at(mid-1.6, r.Min.Y), at(mid+1.6, r.Min.Y))
		c.segment(bar, at(mid-1.6, r.Max.Y), at(mid+1.6, r.Max.Y))
	}
	if !e.look.noLine {
		c.segment(pen{colour: e.look.colour, width: 1, dashes: e.look.dashes}, at(r.Min.X, y), at(r.Max.X, y))
	}
	c.drawMark(e.look.mark, at(mid, y), 2, e.look.colour, e.look.fill())
}
