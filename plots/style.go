package plots

import (
	"image/color"

	"gonum.org/v1/plot/vg"
)

// The Okabe-Ito palette, "Color universal design", 2008.
var (
	black     = color.RGBA{0x00, 0x00, 0x00, 0xFF}
	orange    = color.RGBA{0xE6, 0x9F, 0x00, 0xFF}
	skyBlue   = color.RGBA{0x56, 0xB4, 0xE9, 0xFF}
	green     = color.RGBA{0x00, 0x9E, 0x73, 0xFF}
	yellow    = color.RGBA{0xF0, 0xE4, 0x42, 0xFF}
	blue      = color.RGBA{0x00, 0x72, 0xB2, 0xFF}
	vermilion = color.RGBA{0xD5, 0x5E, 0x00, 0xFF}
	purple    = color.RGBA{0xCC, 0x79, 0xA7, 0xFF}
)

// Greys of frames, grids and notes, and the paper.
var (
	white     = color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
	ink       = color.RGBA{0x22, 0x22, 0x22, 0xFF}
	frameGrey = color.RGBA{0x80, 0x80, 0x80, 0xFF}
	gridGrey  = color.RGBA{0xE4, 0xE4, 0xE4, 0xFF}
	noteGrey  = color.RGBA{0x55, 0x55, 0x55, 0xFF}
	boxGrey   = color.RGBA{0xF2, 0xF2, 0xF2, 0xFF}
)

// A look is the appearance of a series: colour, dash and mark go together in every figure.
type look struct {
	colour color.RGBA
	dashes []vg.Length
	mark   mark
	inside filling // of the mark; 0 is filled
	noLine bool    // marks only
}

func (l look) fill() filling {
	if l.inside == 0 {
		return filled
	}
	return l.inside
}

var policyLooks = map[string]look{
	"step-sync":  {colour: black, dashes: []vg.Length{1, 1.6}, mark: square},
	"model-sync": {colour: purple, dashes: []vg.Length{5, 1.6, 1, 1.6}, mark: triangle},
	"eager":      {colour: green, dashes: []vg.Length{4, 2}, mark: diamond},
	"delayed":    {colour: vermilion, mark: circle},
}

// PolicyNames lists the policies that have a look of their own, in the order in which figures show them.
// "eager-async" is another name of eager. Any other series takes the next of the spare looks.
func PolicyNames() []string { return []string{"step-sync", "model-sync", "eager", "delayed"} }

// ModelNames lists the models that have a colour of their own: small (blue) and large (orange). "slm" and
// "llm" are other names of them.
func ModelNames() []string { return []string{"small", "large"} }

// spareLooks are for series that are not policies; a policy's colour is not among the first.
var spareLooks = []look{
	{colour: blue, mark: circle},
	{colour: orange, dashes: []vg.Length{4, 2}, mark: square},
	{colour: skyBlue, dashes: []vg.Length{5, 1.6, 1, 1.6}, mark: triangle},
	{colour: black, dashes: []vg.Length{1, 1.6}, mark: diamond},
	{colour: green, mark: triangleDown, inside: opened},
	{colour: vermilion, dashes: []vg.Length{4, 2}, mark: circle, inside: opened},
	{colour: purple, dashes: []vg.Length{1, 1.6}, mark: square, inside: opened},
}

// policyLook finds the look of a policy by its name.
func policyLook(name string) (look, bool) {
	if name == "eager-async" {
		name = "eager"
	}
	l, ok := policyLooks[name]
	return l, ok
}

// looksFor gives each distinct name its look: a policy's own, else the next spare look, whose dashes and
// fillings change after each round of the colours.
func looksFor(names []string) map[string]look {
	looks := make(map[string]look, len(names))
	spare := 0
	for _, name := range names {
		if _, seen := looks[name]; seen {
			continue
		}
		if l, ok := policyLook(name); ok {
			looks[name] = l
			continue
		}
		l := spareLooks[spare%len(spareLooks)]
		if round := spare / len(spareLooks); round > 0 {
			l.dashes = []vg.Length{vg.Length(2 + 2*round), 1.5}
			if round%2 == 1 {
				l.inside = filled + opened - l.fill()
			}
		}
		looks[name] = l
		spare++
	}
	return looks
}

// modelColour is the colour of the model of that name or, for other names, of its place.
func modelColour(name string, place int) color.RGBA {
	switch name {
	case "small", "slm", "SLM":
		return blue
	case "large", "llm", "LLM":
		return orange
	}
	colours := []color.RGBA{blue, orange, green, purple, vermilion, skyBlue}
	return colours[place%len(colours)]
}

// requestColour is the fill of a request's cells; black text can be read on all of them.
func requestColour(place int) color.RGBA {
	colours := []color.RGBA{
		skyBlue, yellow, purple, {0x8F, 0xD3, 0xB6, 0xFF}, {0xF2, 0xB8, 0x8C, 0xFF}, {0xB5, 0xB5, 0xB5, 0xFF},
		{0xA9, 0xC9, 0xF5, 0xFF}, {0xF7, 0xD0, 0x70, 0xFF},
	}
	return colours[place%len(colours)]
}

func plain() textStyle     { return textStyle{size: tickSize, colour: ink} }
func axisText() textStyle  { return textStyle{size: labelSize, colour: ink} }
func titleText() textStyle { return textStyle{size: titleSize, bold: true, colour: ink} }
func noteText() textStyle  { return textStyle{size: tickSize, colour: noteGrey} }

// darker is a colour of lines made dark enough for small text on white.
func darker(c color.RGBA) color.RGBA {
	return color.RGBA{uint8(int(c.R) * 7 / 10), uint8(int(c.G) * 7 / 10), uint8(int(c.B) * 7 / 10), c.A}
}

// lighter is a colour of lines made light enough to lie under text.
func lighter(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 2*255) / 3) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), c.A}
}
