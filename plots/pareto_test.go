package plots

import (
	"slices"
	"testing"
)

func paretoSample(t *testing.T) (ParetoData, paretoPanels) {
	t.Helper()
	d, err := load[ParetoData]("pareto.json")
	if err != nil {
		t.Fatal(err)
	}
	p := newParetoPanels(d.X)
	for _, q := range d.Panels {
		if err := p.add(q); err != nil {
			t.Fatal(err)
		}
	}
	p.share()
	return d, p
}

// TestParetoLooks: a routing has one colour and mark under both policies and in all panels, that no other
// has; under eager the mark is open and the line dashed.
func TestParetoLooks(t *testing.T) {
	d, p := paretoSample(t)
	type sign struct {
		mark   mark
		colour [3]uint8
	}
	owner := make(map[sign]string)
	for i, q := range d.Panels {
		for k, line := range q.Lines {
			l := p.panels[i].layers[k]
			eager := line.Policy == "eager" && !line.Alone
			if (l.fill() == opened) != eager || (l.dashes != nil) != eager {
				t.Errorf("%s, %s: filling %d, dashes %v", line.Routing, line.Policy, l.fill(), l.dashes)
			}
			if line.Alone != (l.noLine && l.radius == aloneRadius && l.mark == star) {
				t.Errorf("%s: alone is %v, drawn as %+v", line.Routing, line.Alone, l.look)
			}
			s := sign{l.mark, [3]uint8{l.colour.R, l.colour.G, l.colour.B}}
			if other, taken := owner[s]; taken && other != line.Routing && !line.Alone {
				t.Errorf("%s and %s look the same", other, line.Routing)
			}
			owner[s] = line.Routing
		}
	}
	var many []look
	for i := range 40 {
		l := paretoLook(i)
		if slices.ContainsFunc(many, func(o look) bool { return o.colour == l.colour && o.mark == l.mark }) {
			t.Errorf("routing %d looks like one before it", i)
		}
		many = append(many, l)
	}
}

// TestParetoAxes: panels have the same axes, on which every point and the ends of every interval lie.
func TestParetoAxes(t *testing.T) {
	_, p := paretoSample(t)
	for _, q := range p.panels {
		if first := p.panels[0]; q.x.min != 0 || q.x != first.x || q.y != first.y {
			t.Errorf("%s: axes %+v and %+v, want those of %+v", q.title, q.x, q.y, first)
		}
		for _, l := range q.layers {
			for _, v := range l.points() {
				inside := v.x >= q.x.min && v.x <= q.x.max && v.low >= q.y.min && v.high <= q.y.max
				if !inside || v.low > v.y || v.high < v.y {
					t.Errorf("%s: point %+v outside the axes or its interval", q.title, v)
				}
			}
		}
	}
}

// TestParetoNames: in each panel each model alone has its name once, on nothing else; legend entries occur
// once.
func TestParetoNames(t *testing.T) {
	d, p := paretoSample(t)
	f, err := Pareto(d)
	if err != nil {
		t.Fatal(err)
	}
	w := watch(f)
	count := make(map[string]int)
	for _, word := range w.words {
		count[word.text]++
	}
	for name, want := range map[string]int{"small": 2, "mid": 2, "large": 2, "me": 1, "r2r": 1,
		"query-causal": 1, "eager": 1, "delayed": 1, "no threshold": 1,
		"N = 4": 1, "N = 8": 1, "accuracy (%)": 1} {
		if count[name] != want {
			t.Errorf("%q is written %d times, want %d", name, count[name], want)
		}
	}
	g := newStack(p.panels, paretoHeight)
	key := newLegend(p.entries(), newSheet(g.width, 0).width())
	s := newSheet(f.Width, f.Height)
	s.top -= headHeight(d.Title, key, s.width())
	s.bottom += noteHeight(d.Note, s.width())
	for i := range p.panels {
		drawn := newRoom(p.panels[i], g.cell(s, i))
		for _, word := range w.words {
			if !slices.Contains([]string{"small", "mid", "large"}, word.text) {
				continue
			}
			if overlap(word.box, drawn.frame) && !drawn.free(word.box) {
				t.Errorf("%s: name %q lies on data", p.panels[i].title, word.text)
			}
		}
	}
}

// TestParetoOfOnePolicy: without a second policy the legend has the line as drawn and says nothing of
// filling.
func TestParetoOfOnePolicy(t *testing.T) {
	line := ParetoLine{Routing: "r2r", Policy: "eager", Throughput: counting(3),
		Accuracy: []float64{0.5, 0.6, 0.7}}
	p := newParetoPanels(Axis{})
	if err := p.add(ParetoPanel{4, []ParetoLine{line}}); err != nil {
		t.Fatal(err)
	}
	entries := p.entries()
	if len(entries) != 1 || entries[0].name != "r2r" || entries[0].look.fill() != opened {
		t.Errorf("legend %+v, want r2r alone, open", entries)
	}
	if y := p.panels[0].layers[0].points()[1].y; y != 60 {
		t.Errorf("accuracy 0.6 is drawn at %v, want 60 %%", y)
	}
}

// TestParetoSurvives gives it empty and broken input.
func TestParetoSurvives(t *testing.T) {
	odd := []float64{nan, inf, -inf, 0, largest, -largest, least}
	for name, draw := range map[string]func() (*Figure, error){
		"empty": func() (*Figure, error) { return Pareto(ParetoData{}) },
		"empty lines": func() (*Figure, error) {
			return Pareto(ParetoData{Panels: []ParetoPanel{{4, make([]ParetoLine, 2)}, {8, nil}}})
		},
		"odd": func() (*Figure, error) {
			line := ParetoLine{Routing: "r2r", Throughput: odd, Accuracy: odd, Low: odd, High: odd}
			alone := ParetoLine{Routing: "large", Throughput: odd, Accuracy: odd, Alone: true}
			return Pareto(ParetoData{X: Axis{Log: true}, Panels: []ParetoPanel{{4, []ParetoLine{line, alone}}}})
		},
		"one point": func() (*Figure, error) {
			line := ParetoLine{Routing: "small", Throughput: []float64{9}, Accuracy: []float64{1}, Alone: true}
			return Pareto(ParetoData{Panels: []ParetoPanel{{1, []ParetoLine{line}}}})
		},
	} {
		t.Run(name, func(t *testing.T) { checkSurvives(t, name, draw) })
	}
}
