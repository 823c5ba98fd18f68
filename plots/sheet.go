package plots

import "gonum.org/v1/plot/vg"

// edge is the empty border of every figure in points.
const edge = 3.0

// A sheet hands out the parts of a figure from the top down and from the bottom up.
type sheet struct {
	left, right, bottom, top vg.Length
}

func newSheet(width, height vg.Length) sheet {
	return sheet{left: edge, right: width - edge, bottom: edge, top: height - edge}
}

func (s sheet) width() vg.Length { return s.right - s.left }

// headHeight is the room that title and legend of these need above the panels.
func headHeight(title string, l legend, width vg.Length) vg.Length {
	h := vg.Length(len(titleText().wrap(title, width))) * (titleSize + 2.5)
	if l.rows() > 0 {
		h += l.height() + 2
	}
	return h + 3
}

// drawHead draws the title and, below it, the legend, both centred, and takes their room from the sheet.
func (s *sheet) drawHead(c *canvas, title string, l legend) {
	middle := (s.left + s.right) / 2
	for _, line := range titleText().wrap(title, s.width()) {
		c.text(titleText(), at(middle, s.top), line, atMid, atEnd)
		s.top -= titleSize + 2.5
	}
	if l.rows() > 0 {
		l.draw(c, at(middle-l.width()/2, s.top))
		s.top -= l.height() + 2
	}
	s.top -= 3
}

// drawNote draws a remark at the bottom, and takes its room from the sheet.
func (s *sheet) drawNote(c *canvas, note string) {
	lines := noteText().wrap(note, s.width())
	for i := len(lines) - 1; i >= 0; i-- {
		c.text(noteText(), at(s.left, s.bottom+1), lines[i], atStart, atStart)
		s.bottom += tickSize + 2
	}
}

func noteHeight(note string, width vg.Length) vg.Length {
	return vg.Length(len(noteText().wrap(note, width))) * (tickSize + 2)
}

// drawXLabel writes a label at the bottom, centred at x if there is room, right of a vertical axis label.
func (s *sheet) drawXLabel(c *canvas, text string, x vg.Length) {
	label := axisText()
	left := s.left + labelSize + 4
	text = label.fit(text, s.right-left)
	half := label.width(text) / 2
	c.text(label, at(max(min(x, s.right-half), left+half), s.bottom+2), text, atMid, atStart)
}

// rightOf is the right end of a frame that begins at left, such that the last tick label is not cut off.
func (s *sheet) rightOf(x scale, left vg.Length) vg.Length {
	right := s.right - 4
	for range 3 {
		marks, _ := panel{x: x}.xTicks(right - left)
		if len(marks) == 0 {
			return right
		}
		last := marks[len(marks)-1]
		beyond := x.along(last.value, left, right) + plain().width(last.label)/2 - s.right
		if beyond <= 0 {
			return right
		}
		right -= beyond + 0.5
	}
	return right
}

// drawAxes draws one panel into the rest of the sheet, with its labels, and returns its frame.
func (s *sheet) drawAxes(c *canvas, p panel) vg.Rectangle {
	bottom := s.bottom + tickGap + tickSize*capHeight + 4 + labelSize
	top := s.top - 2
	ys, yPower := p.yTicks(top - bottom)
	left := s.left + labelSize + 4 + tickWidth(ys) + tickGap
	frame := rectangle(left, bottom, s.rightOf(p.x, left), top)
	_, xPower := p.xTicks(frame.Size().X)
	s.drawXLabel(c, withPower(p.x.Label, xPower), (frame.Min.X+frame.Max.X)/2)
	s.drawYLabel(c, withPower(p.y.Label, yPower), frame)
	p.drawFrame(c, frame)
	return frame
}

// drawYLabel writes a label at the left, centred on the frame if there is room.
func (s *sheet) drawYLabel(c *canvas, text string, frame vg.Rectangle) {
	label := axisText()
	label.turned = true
	text = label.fit(text, s.top-s.bottom)
	half := label.width(text) / 2
	up := max(min((frame.Min.Y+frame.Max.Y)/2, s.top-half), s.bottom+half)
	c.text(label, at(s.left+labelSize*capHeight, up), text, atMid, atStart)
}
