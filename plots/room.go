package plots

import "gonum.org/v1/plot/vg"

// A room knows what is drawn in a frame and finds places for labels that touch none of it.
type room struct {
	frame vg.Rectangle
	taken []vg.Rectangle
	lines [][2]vg.Point
}

const (
	labelClear = 1.2 // between a label and anything else
	labelNear  = 4.2 // between a point and the nearest place of its label
)

func newRoom(p panel, frame vg.Rectangle) *room {
	out := &room{frame: frame}
	for _, l := range p.layers {
		for _, run := range l.runs {
			for i, q := range run {
				place := p.at(frame, q.x, q.y)
				m := l.radius + 0.8
				out.taken = append(out.taken, rectangle(place.X-m, place.Y-m, place.X+m, place.Y+m))
				if i > 0 {
					out.lines = append(out.lines, [2]vg.Point{p.at(frame, run[i-1].x, run[i-1].y), place})
				}
				if q.hasInterval() {
					low, high := p.at(frame, q.x, q.low), p.at(frame, q.x, q.high)
					out.taken = append(out.taken, rectangle(low.X-1.6, low.Y, low.X+1.6, high.Y))
				}
			}
		}
	}
	return out
}

// find gives the lower left corner of a free place near p for a text, and takes it.
func (m *room) find(s textStyle, p vg.Point, text string) (vg.Point, bool) {
	places := []struct{ dx, dy, alignX, alignY float64 }{
		{1, 0.6, atStart, atStart}, {-1, 0.6, atEnd, atStart},
		{1, -0.6, atStart, atEnd}, {-1, -0.6, atEnd, atEnd},
		{0, 1, atMid, atStart}, {1, 0, atStart, atMid}, {0, -1, atMid, atEnd}, {-1, 0, atEnd, atMid},
	}
	for _, far := range []vg.Length{labelNear, labelNear * 1.5} {
		for _, q := range places {
			near := at(p.X+vg.Length(q.dx)*far, p.Y+vg.Length(q.dy)*far)
			box := s.box(near, text, q.alignX, q.alignY)
			if m.free(box) {
				m.taken = append(m.taken, box)
				return box.Min, true
			}
		}
	}
	return vg.Point{}, false
}

func (m *room) free(box vg.Rectangle) bool {
	box = rectangle(box.Min.X-labelClear, box.Min.Y-labelClear, box.Max.X+labelClear, box.Max.Y+labelClear)
	if box.Min.X < m.frame.Min.X || box.Max.X > m.frame.Max.X ||
		box.Min.Y < m.frame.Min.Y || box.Max.Y > m.frame.Max.Y {
		return false
	}
	for _, t := range m.taken {
		if overlap(box, t) {
			return false
		}
	}
	for _, l := range m.lines {
		if crosses(box, l[0], l[1]) {
			return false
		}
	}
	return true
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

// crosses tells whether a segment meets a rectangle, by cutting it at each side in turn.
func crosses(r vg.Rectangle, a, b vg.Point) bool {
	from, to := vg.Length(0), vg.Length(1)
	cut := func(start, delta, low, high vg.Length) bool {
		if delta == 0 {
			return low <= start && start <= high
		}
		t0, t1 := (low-start)/delta, (high-start)/delta
		from, to = max(from, min(t0, t1)), min(to, max(t0, t1))
		return from <= to
	}
	return cut(a.X, b.X-a.X, r.Min.X, r.Max.X) && cut(a.Y, b.Y-a.Y, r.Min.Y, r.Max.Y)
}
