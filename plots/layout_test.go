package plots

import (
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// A textWatcher is a canvas that only remembers where text is put.
type textWatcher struct {
	width, height vg.Length
	turned        []bool
	words         []word
}

type word struct {
	text string
	size vg.Length
	box  vg.Rectangle
}

func (w *textWatcher) Size() (x, y vg.Length)              { return w.width, w.height }
func (w *textWatcher) SetLineWidth(vg.Length)              {}
func (w *textWatcher) SetLineDash([]vg.Length, vg.Length)  {}
func (w *textWatcher) SetColor(color.Color)                {}
func (w *textWatcher) Translate(vg.Point)                  {}
func (w *textWatcher) Scale(float64, float64)              {}
func (w *textWatcher) Stroke(vg.Path)                      {}
func (w *textWatcher) Fill(vg.Path)                        {}
func (w *textWatcher) DrawImage(vg.Rectangle, image.Image) {}
func (w *textWatcher) Push()                               { w.turned = append(w.turned, w.turned[len(w.turned)-1]) }
func (w *textWatcher) Pop()                                { w.turned = w.turned[:len(w.turned)-1] }
func (w *textWatcher) Rotate(angle float64)                { w.turned[len(w.turned)-1] = math.Abs(angle) > 1 }
func (w *textWatcher) FillString(f font.Face, p vg.Point, text string) {
	size := f.Font.Size
	up := size * capHeight
	box := rectangle(p.X, p.Y, p.X+f.Width(text), p.Y+up)
	if w.turned[len(w.turned)-1] {
		box = rectangle(-p.Y-up, p.X, -p.Y, p.X+f.Width(text))
	}
	w.words = append(w.words, word{text, size, box})
}

func watch(f *Figure) *textWatcher {
	w := &textWatcher{width: f.Width, height: f.Height, turned: []bool{false}}
	f.drawOn(w)
	return w
}

// checkText reports text that is cut off, that lies on other text, or that is too small to read.
func checkText(t *testing.T, f *Figure) {
	t.Helper()
	w := watch(f)
	for i, a := range w.words {
		if a.box.Min.X < 0 || a.box.Min.Y < 0 || a.box.Max.X > w.width || a.box.Max.Y > w.height {
			t.Errorf("%q is cut off: %v in %v x %v", a.text, a.box, w.width, w.height)
		}
		// Sub- and superscripts are smaller by their scale.
		if a.size < tickSize && a.size < labelSize*0.7 && a.size < tickSize*0.7 {
			t.Errorf("%q is %v high, want 7 points or a script", a.text, a.size)
		}
		for _, b := range w.words[i+1:] {
			if overlap(a.box, b.box) {
				t.Errorf("%q %v lies on %q %v", a.text, a.box, b.text, b.box)
			}
		}
	}
}

func TestTextOfSamples(t *testing.T) {
	for name, f := range samples(t) {
		t.Run(name, func(t *testing.T) { checkText(t, f) })
	}
}

// TestLongNames uses names, titles and labels that are too long, and characters that XML does not allow.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("a very long name ", 12)
	wide := strings.Repeat("W", 90)
	for _, name := range []string{long, wide, "a\x00b\nc", "<&\"'>", "\xff\xfe", "漢字", "_{", "^{}", "x^{2} y_{1}", ""} {
		s := Series{Name: name, X: counting(3), Y: counting(3)}
		sweep, err := Sweep(SweepData{Title: name, X: Axis{Label: name}, Y: Axis{Label: name},
			Series: []Series{s, {Name: name + "2"}, {Name: name + "3"}}})
		if err != nil {
			t.Fatal(err)
		}
		threshold, err := Threshold(ThresholdData{Title: name, Panels: []ThresholdPanel{{3, s, s, s}, {4, s, s, s}}})
		if err != nil {
			t.Fatal(err)
		}
		schedules, err := Schedules(SchedulesData{Title: name, TimeLabel: name, Models: []string{name, name},
			Requests: []string{name}, Schedules: []Schedule{{Policy: name, Launches: []Launch{{0, 0, 1, []int{0}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []*Figure{sweep, threshold, schedules} {
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			checkSVG(t, name, svg)
			checkText(t, f)
		}
	}
}

func TestLegendHasNoDuplicates(t *testing.T) {
	a := Series{Name: "delayed", X: counting(2), Y: counting(2)}
	b := Series{Name: "eager", X: counting(2), Y: []float64{2, 1}}
	p := newPanel("", Axis{}, Axis{}, []Series{a, b, a, {X: counting(2), Y: counting(2)}}, make([]look, 4))
	got := legendEntries([]panel{p, p})
	if len(got) != 2 || got[0].name != "delayed" || got[1].name != "eager" {
		t.Errorf("legend of %v, want delayed and eager once each", got)
	}
}

// TestPolicyLooksAreStable: colour, dash and mark belong to the policy, whatever else is in the figure.
func TestPolicyLooksAreStable(t *testing.T) {
	alone := looksFor([]string{"delayed"})["delayed"]
	among := looksFor([]string{"mine", "eager", "other", "delayed", "mine"})
	if alone.colour != among["delayed"].colour || alone.mark != among["delayed"].mark {
		t.Error("delayed looks different beside other series")
	}
	if among["mine"].colour == among["other"].colour {
		t.Error("two series of one figure have the same colour")
	}
	eager, _ := policyLook("eager")
	if async, ok := policyLook("eager-async"); !ok || async.colour != eager.colour {
		t.Error("eager-async does not look like eager")
	}
	seen := make(map[color.RGBA]bool)
	marks := make(map[mark]bool)
	for _, name := range PolicyNames() {
		l, ok := policyLook(name)
		if !ok || seen[l.colour] || marks[l.mark] || l.colour == blue || l.colour == orange {
			t.Errorf("%s shares its colour or mark, or has a model's colour", name)
		}
		seen[l.colour], marks[l.mark] = true, true
	}
	if modelColour("small", 1) != blue || modelColour("large", 0) != orange {
		t.Error("small is not blue or large not orange")
	}
}

// TestConcurrencyLabels: no label lies on a point of its figure, and each policy's ends are labelled.
func TestConcurrencyLabels(t *testing.T) {
	words := watch(samples(t)["speed"]).words
	sixteen := 0
	for _, w := range words {
		if w.text == "16" {
			sixteen++
		}
	}
	if sixteen != 4 {
		t.Errorf("16 is written %d times, want once for each of 4 policies", sixteen)
	}
}
