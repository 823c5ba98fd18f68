package plots

import "gonum.org/v1/plot/vg"

// A grid arranges panels in rows of equal cells with one label for each axis of all.
type grid struct {
	panels        []panel
	columns, rows int
	width         vg.Length // of the figure
	cellHeight    vg.Length // with title and tick labels
	left, right   vg.Length // of each cell: room for its tick labels
}

const (
	cellLow     = 104.0 // height of a cell of several
	cellTop     = 13.0
	cellBottom  = tickGap + tickSize*capHeight + 4
	cellRight   = 5.0
	gridLabel   = labelSize + 5 // room for an axis label
	bigGap      = 10.0          // between a panel and a legend beside it
	columnsMost = 4
)

func newGrid(panels []panel) grid {
	n := len(panels)
	g := grid{panels: panels, columns: n, width: TextWidth, cellHeight: cellLow}
	if n > columnsMost {
		rows := (n + columnsMost - 1) / columnsMost
		g.columns = (n + rows - 1) / rows
	}
	g.rows = (n + g.columns - 1) / g.columns
	if n <= 2 {
		g.width = ColumnWidth
	}
	if n == 1 {
		g.cellHeight *= 1.5
	}
	return g.measured()
}

// newStack puts panels of that height, one or more, above each other at column width.
func newStack(panels []panel, cellHeight vg.Length) grid {
	g := grid{panels: panels, columns: 1, rows: len(panels), width: ColumnWidth, cellHeight: cellHeight}
	return g.measured()
}

// measured adds the room for tick labels.
func (g grid) measured() grid {
	for i := range g.panels {
		p := &g.panels[i]
		p.x.whole, p.y.whole = true, true
		marks, _ := p.yTicks(g.cellHeight - cellTop - cellBottom)
		g.left = max(g.left, tickWidth(marks)+tickGap+5)
		across, _ := p.x.ticks(9)
		g.right = max(g.right, cellRight, tickWidth(across)/2)
	}
	return g
}

func (g grid) free() int { return g.columns*g.rows - len(g.panels) }

// freeWidth is the width of a free cell: that of a frame and most of the room for its tick labels.
func (g grid) freeWidth(inner vg.Length) vg.Length {
	return (inner-gridLabel)/vg.Length(g.columns) - g.right - bigGap
}

func (g grid) height() vg.Length {
	return vg.Length(g.rows)*g.cellHeight + gridLabel + 2*edge
}

// cell is the frame of the panel of that number, counted along the rows.
func (g grid) cell(s sheet, i int) vg.Rectangle {
	width := (s.right - s.left - gridLabel) / vg.Length(g.columns)
	height := (s.top - s.bottom - gridLabel) / vg.Length(g.rows)
	x := s.left + gridLabel + width*vg.Length(i%g.columns)
	y := s.top - height*vg.Length(i/g.columns)
	return rectangle(x+g.left, y-height+cellBottom, x+width-g.right, y-cellTop)
}

// drawAxes draws all frames and the common labels, and returns the frames.
func (g grid) drawAxes(c *canvas, s sheet) []vg.Rectangle {
	frames := make([]vg.Rectangle, len(g.panels))
	for i, p := range g.panels {
		frames[i] = g.cell(s, i)
		p.drawFrame(c, frames[i])
	}
	label := axisText()
	first, last := g.cell(s, 0), g.cell(s, g.columns*g.rows-1)
	s.drawXLabel(c, g.panels[0].x.Label, (first.Min.X+last.Max.X)/2)
	label.turned = true
	y := label.fit(g.panels[0].y.Label, s.top-s.bottom)
	c.text(label, at(s.left+labelSize*capHeight, (first.Max.Y+last.Min.Y)/2), y, atMid, atStart)
	return frames
}
