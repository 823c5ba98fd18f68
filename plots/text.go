package plots

import (
	"image/color"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"

	xfont "golang.org/x/image/font"
)

// fonts is never changed after the package is loaded.
var fonts = font.NewCache(liberation.Collection())

// Text sizes in points at final size. Sub- and superscripts alone are smaller than 7.
const (
	tickSize  = 7.0
	labelSize = 7.5
	titleSize = 8.5
)

// Positions of a text's box relative to the given point, as fractions of its size to the left of or below it.
const (
	atStart = 0.0
	atMid   = 0.5
	atEnd   = 1.0
)

// capHeight is the height of capitals and digits of Liberation Sans in parts of the font size.
const capHeight = 0.72

// A textStyle is how a string is drawn. Strings may hold sub- and superscripts as _{1} and ^{-6}.
type textStyle struct {
	size   float64 // points
	bold   bool
	colour color.Color
	turned bool // a quarter turn, reading upwards
}

func (s textStyle) face(scale float64) font.Face {
	weight := xfont.WeightNormal
	if s.bold {
		weight = xfont.WeightBold
	}
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}
	return fonts.Lookup(f, vg.Points(s.size*scale))
}

// A span is a piece of a string on one baseline.
type span struct {
	text  string
	shift float64 // of the baseline, in parts of the font size
	scale float64
}

// spans splits a string at _{...} and ^{...}. An opening without an end is plain text.
func spans(s string) []span {
	var out []span
	for {
		at := strings.IndexAny(s, "_^")
		for at >= 0 && !strings.HasPrefix(s[at+1:], "{") {
			next := strings.IndexAny(s[at+1:], "_^")
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		end := -1
		if at >= 0 {
			end = strings.IndexByte(s[at:], '}')
		}
		if end < 0 {
			return append(out, span{s, 0, 1})
		}
		script := span{s[at+2 : at+end], -0.18, 0.74}
		if s[at] == '^' {
			script.shift = 0.36
		}
		if at > 0 {
			out = append(out, span{s[:at], 0, 1})
		}
		out = append(out, script)
		s = s[at+end+1:]
		if s == "" {
			return out
		}
	}
}

func (s textStyle) width(text string) vg.Length {
	var w vg.Length
	for _, p := range spans(text) {
		face := s.face(p.scale)
		w += face.Width(p.text)
	}
	return w
}

// box is the rectangle of a text drawn at p with the alignments of [canvas.text], without turning.
func (s textStyle) box(p vg.Point, text string, alignX, alignY float64) vg.Rectangle {
	w, h := s.width(text), vg.Points(s.size*capHeight)
	min := vg.Point{X: p.X - w*vg.Length(alignX), Y: p.Y - h*vg.Length(alignY)}
	return vg.Rectangle{Min: min, Max: vg.Point{X: min.X + w, Y: min.Y + h}}
}

// text draws one line. alignX and alignY are the parts of its width and of its capital height that lie before
// p in reading direction and below p.
func (c *canvas) text(s textStyle, p vg.Point, text string, alignX, alignY float64) {
	if text == "" {
		return
	}
	c.SetColor(s.colour)
	along := s.width(text) * vg.Length(alignX)
	up := vg.Points(s.size*capHeight) * vg.Length(alignY)
	at := vg.Point{X: p.X - along, Y: p.Y - up}
	if s.turned {
		c.Push()
		defer c.Pop()
		c.Rotate(math.Pi / 2)
		at = vg.Point{X: p.Y - along, Y: -p.X - up}
	}
	for _, piece := range spans(text) {
		face := s.face(piece.scale)
		// SVG drops leading blanks, so they are a step and not text.
		word := strings.TrimLeft(piece.text, " ")
		start := at.X + face.Width(piece.text[:len(piece.text)-len(word)])
		c.FillString(face, vg.Point{X: start, Y: at.Y + vg.Points(s.size*piece.shift)}, word)
		at.X += face.Width(piece.text)
	}
}

// noData says in the middle of a frame that it is empty.
func (c *canvas) noData(r vg.Rectangle) {
	c.text(noteText(), at((r.Min.X+r.Max.X)/2, (r.Min.Y+r.Max.Y)/2), "no data", atMid, atMid)
}

// fit shortens a text with an ellipsis until it is at most width wide.
func (s textStyle) fit(text string, width vg.Length) string {
	if s.width(text) <= width {
		return text
	}
	runes := []rune(text)
	for n := len(runes) - 1; n > 0; n-- {
		if short := strings.TrimRight(string(runes[:n]), " ") + "…"; s.width(short) <= width {
			return short
		}
	}
	return ""
}

// wrap breaks a text at spaces into lines of at most width; a word that is wider is shortened.
func (s textStyle) wrap(text string, width vg.Length) []string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && s.width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, s.fit(word, width))
	}
	return lines
}

// clean makes a string that came from outside safe for one line of XML text.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
