package plots

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A canvas is the whole sheet of one figure. Lengths are points, the origin is at the bottom left.
type canvas struct {
	draw.Canvas
}

func at(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }

func rectangle(x0, y0, x1, y1 vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: at(x0, y0), Max: at(x1, y1)}
}

func (c *canvas) fillRect(r vg.Rectangle, colour color.Color) {
	c.SetColor(colour)
	c.Fill(r.Path())
}

func (c *canvas) strokeRect(r vg.Rectangle, colour color.Color, width vg.Length) {
	c.stroke(pen{colour: colour, width: width}, r.Path())
}

// A pen is how a path is stroked.
type pen struct {
	colour color.Color
	width  vg.Length
	dashes []vg.Length
}

func (c *canvas) stroke(p pen, path vg.Path) {
	c.SetColor(p.colour)
	c.SetLineWidth(p.width)
	c.SetLineDash(p.dashes, 0)
	c.Stroke(path)
}

func (c *canvas) segment(p pen, from, to vg.Point) {
	var path vg.Path
	path.Move(from)
	path.Line(to)
	c.stroke(p, path)
}

func (c *canvas) polyline(p pen, points []vg.Point) {
	if len(points) < 2 {
		return
	}
	var path vg.Path
	path.Move(points[0])
	for _, next := range points[1:] {
		path.Line(next)
	}
	c.stroke(p, path)
}

// A mark is the shape that stands for one point of a series.
type mark int

const (
	noMark mark = iota + 1
	circle
	square
	diamond
	triangle
	triangleDown
	triangleLeft
	triangleRight
	pentagon
	star
	wideCross
	plusMark
	crossMark
)

// outline gives the path of a mark of about equal area whatever its shape; r is half of a square's side times
// 1.13, the radius of the circle.
func (m mark) outline(p vg.Point, r vg.Length) vg.Path {
	corners := func(xy ...vg.Length) vg.Path {
		var path vg.Path
		path.Move(at(p.X+xy[0]*r, p.Y+xy[1]*r))
		for i := 2; i < len(xy); i += 2 {
			path.Line(at(p.X+xy[i]*r, p.Y+xy[i+1]*r))
		}
		path.Close()
		return path
	}
	switch m {
	case circle:
		var path vg.Path
		path.Move(at(p.X+r, p.Y))
		path.Arc(p, r, 0, 6.283185307179586)
		path.Close()
		return path
	case square:
		return corners(-0.88, -0.88, 0.88, -0.88, 0.88, 0.88, -0.88, 0.88)
	case diamond:
		return corners(0, -1.28, 1.28, 0, 0, 1.28, -1.28, 0)
	case triangle:
		return corners(-1.2, -0.85, 1.2, -0.85, 0, 1.25)
	case triangleDown:
		return corners(-1.2, 0.85, 1.2, 0.85, 0, -1.25)
	case triangleLeft:
		return corners(0.85, -1.2, 0.85, 1.2, -1.25, 0)
	case triangleRight:
		return corners(-0.85, -1.2, -0.85, 1.2, 1.25, 0)
	case pentagon:
		return corners(0, 1.15, 1.09, 0.36, 0.68, -0.93, -0.68, -0.93, -1.09, 0.36)
	case star:
		return corners(0, 1.5, 0.35, 0.49, 1.43, 0.46, 0.57, -0.19, 0.88, -1.21, 0, -0.6, -0.88, -1.21,
			-0.57, -0.19, -1.43, 0.46, -0.35, 0.49)
	case wideCross:
		return corners(-0.45, 1.25, 0.45, 1.25, 0.45, 0.45, 1.25, 0.45, 1.25, -0.45, 0.45, -0.45,
			0.45, -1.25, -0.45, -1.25, -0.45, -0.45, -1.25, -0.45, -1.25, 0.45, -0.45, 0.45)
	default:
		return nil
	}
}

// A filling is what is inside the outline of a mark.
type filling int

const (
	filled filling = iota + 1 // the colour of the outline
	opened                    // white, so that lines do not run through
	hollow                    // what lies below
)

func (c *canvas) drawMark(m mark, p vg.Point, r vg.Length, colour color.Color, inside filling) {
	edge := pen{colour: colour, width: 0.9}
	switch m {
	case noMark:
		return
	case plusMark:
		c.segment(edge, at(p.X-r, p.Y), at(p.X+r, p.Y))
		c.segment(edge, at(p.X, p.Y-r), at(p.X, p.Y+r))
		return
	case crossMark:
		c.segment(edge, at(p.X-r*0.8, p.Y-r*0.8), at(p.X+r*0.8, p.Y+r*0.8))
		c.segment(edge, at(p.X-r*0.8, p.Y+r*0.8), at(p.X+r*0.8, p.Y-r*0.8))
		return
	}
	path := m.outline(p, r)
	switch inside {
	case filled:
		c.SetColor(colour)
		c.Fill(path)
	case opened:
		c.SetColor(white)
		c.Fill(path)
	}
	c.stroke(edge, path)
}
