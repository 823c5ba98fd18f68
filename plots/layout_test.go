package plots

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"strings"
	"sync"
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

func (w *textWatcher) Push() {
	w.turned = append(w.turned, w.turned[len(w.turned)-1])
}

func (w *textWatcher) Pop()                 { w.turned = w.turned[:len(w.turned)-1] }
func (w *textWatcher) Rotate(angle float64) { w.turned[len(w.turned)-1] = math.Abs(angle) > 1 }
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
	names := []string{long, wide, "a\x00b\nc", "<&\"'>", "\xff\xfe", "漢字", "_{", "^{}", "x^{2} y_{1}", ""}
	for _, name := range names {
		s := Series{Name: name, X: counting(3), Y: counting(3)}
		sweep, err := Sweep(SweepData{Title: name, X: Axis{Label: name}, Y: Axis{Label: name},
			Series: []Series{s, {Name: name + "2"}, {Name: name + "3"}}})
		if err != nil {
			t.Fatal(err)
		}
		panels := []ThresholdPanel{{3, s, s, s}, {4, s, s, s}}
		threshold, err := Threshold(ThresholdData{Title: name, Panels: panels})
		if err != nil {
			t.Fatal(err)
		}
		schedules, err := Schedules(SchedulesData{Title: name, TimeLabel: name, Models: []string{name, name},
			Requests:  []string{name},
			Schedules: []Schedule{{Policy: name, Launches: []Launch{{0, 0, 1, []int{0}}}}}})
		if err != nil {
			t.Fatal(err)
		}
		line := ParetoLine{Routing: name, Policy: name, Throughput: counting(3), Accuracy: counting(3)}
		alone := line
		alone.Alone = true
		pareto, err := Pareto(ParetoData{Title: name, X: Axis{Label: name}, Note: name,
			Panels: []ParetoPanel{{4, []ParetoLine{line, alone}}, {8, []ParetoLine{alone}}}})
		if err != nil {
			t.Fatal(err)
		}
		bars, err := Bars(BarsData{Title: name, X: name, Y: Axis{Label: name}, Published: name,
			Groups: []string{name, name + "2"},
			Series: []BarSeries{{Name: name, Values: counting(2), Published: counting(2)},
				{Values: counting(2)}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []*Figure{sweep, threshold, schedules, pareto, bars} {
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

// TestConcurrencyLabels: the ends of each policy's curve are labelled, N = 1, where all meet, once.
func TestConcurrencyLabels(t *testing.T) {
	count := make(map[string]int)
	for _, w := range watch(samples(t)["speed"]).words {
		count[w.text]++
	}
	if count["16"] != 4 || count["1"] != 1 {
		t.Errorf("16 is written %d times and 1 %d times, want 4 and 1", count["16"], count["1"])
	}
}

// TestRoom: labels keep off points, lines and each other, and are left away where there is no room.
func TestRoom(t *testing.T) {
	frame := rectangle(0, 0, 100, 100)
	for _, test := range []struct {
		name string
		room room
		want bool
	}{
		{"free", room{frame: frame}, true},
		{"all taken", room{frame: frame, taken: []vg.Rectangle{frame}}, false},
		{"frame too small", room{frame: rectangle(45, 45, 55, 55)}, false},
		{"lines all around", room{frame: frame, lines: [][2]vg.Point{
			{at(0, 50), at(100, 50)}, {at(50, 0), at(50, 100)},
			{at(0, 0), at(100, 100)}, {at(0, 100), at(100, 0)}}}, false},
		{"one line", room{frame: frame, lines: [][2]vg.Point{{at(0, 0), at(100, 100)}}}, true},
	} {
		corner, ok := test.room.find(plain(), at(50, 50), "16")
		if ok != test.want {
			t.Errorf("%s: found %v, want %v", test.name, ok, test.want)
		}
		box := plain().box(corner, "16", atStart, atStart)
		for _, l := range test.room.lines {
			if ok && crosses(box, l[0], l[1]) {
				t.Errorf("%s: label %v lies on line %v", test.name, box, l)
			}
		}
	}
}

func TestCrosses(t *testing.T) {
	r := rectangle(10, 10, 20, 20)
	for _, test := range []struct {
		name string
		a, b vg.Point
		want bool
	}{
		{"inside", at(12, 12), at(13, 13), true},
		{"through", at(0, 15), at(30, 15), true},
		{"upright through", at(15, 0), at(15, 30), true},
		{"across a corner", at(5, 14), at(14, 5), false},
		{"over a corner", at(5, 16), at(16, 5), true},
		{"left of it", at(5, 0), at(5, 30), false},
		{"ends before it", at(0, 15), at(9, 15), false},
	} {
		if got := crosses(r, test.a, test.b); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestThresholdOfAllSizes draws 1 to 16 panels of 1 to 16 thresholds.
func TestThresholdOfAllSizes(t *testing.T) {
	var d ThresholdData
	for n := 1; n <= 16; n++ {
		s := Series{X: counting(n), Y: make([]float64, n)}
		for i := range s.Y {
			s.Y[i] = float64(n) * (1e5 - float64((2*i-n)*(2*i-n))*100)
		}
		d.Panels = append(d.Panels, ThresholdPanel{Concurrency: n, Predicted: s, Simulated: s})
		f, err := Threshold(d)
		if err != nil {
			t.Fatal(err)
		}
		checkText(t, f)
	}
}

// TestBestThreshold: prediction, simulation and measurement have their best at the thresholds of figure 10 of
// TokenRouter, arXiv 2610.12242: 2, 2 and 3 for N = 2, 3 and 4; 5 for N = 8 by the exact chain.
func TestBestThreshold(t *testing.T) {
	want := map[int]float64{2: 2, 3: 2, 4: 3, 8: 5}
	d, err := load[ThresholdData]("threshold.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range d.Panels {
		p, err := q.panel(d.Real)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range p.layers {
			best, ok := l.best()
			if threshold, known := want[q.Concurrency]; known && (!ok || best.x != threshold) {
				t.Errorf("N = %d: %s is best at %v, want %v", q.Concurrency, l.name, best.x, threshold)
			}
		}
	}
}

// TestMeanLatencies: the figure states the four published means (TokenRouter, arXiv 2610.12242, figure 4),
// and under eager batching request 3's third token waits for the large model from 2 to 4.5.
func TestMeanLatencies(t *testing.T) {
	d, err := load[SchedulesData]("schedules.json")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	f, err := Schedules(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range watch(f).words {
		if strings.HasPrefix(w.text, "mean latency") {
			got = append(got, w.text)
		}
	}
	want := "mean latency 13.33 SLM steps, mean latency 13.00 SLM steps, " +
		"mean latency 10.83 SLM steps, mean latency 8.67 SLM steps"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("figure says %q, want %q", text, want)
	}
	if w := d.Schedules[2].Waits[0]; w != (Wait{Model: 1, Request: 2, From: 2, To: 4.5}) {
		t.Errorf("first wait under eager is %+v, want request 3 at the large model from 2 to 4.5", w)
	}
}

// TestDrawnAtOnce draws from several goroutines, for the race detector.
func TestDrawnAtOnce(t *testing.T) {
	f := samples(t)["sweep"]
	want, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if got, err := f.SVG(); err != nil || !bytes.Equal(got, want) {
				t.Errorf("drawn at once with others: %d bytes, error %v; want %d", len(got), err, len(want))
			}
		})
	}
	group.Wait()
}
