package plots

import (
	"strings"
	"testing"
)

// TestPredictedSeries: a prediction and what was simulated share colour and legend entry; one is a line, the
// other marks.
func TestPredictedSeries(t *testing.T) {
	series := []Series{{Name: "B = 1"}, {Name: "B = 1", Predicted: true}, {Name: "alone"}}
	looks, remark := sweepLooks(series, []string{"B = 1", "B = 1", "alone"})
	simulated, predicted, alone := looks[0], looks[1], looks[2]
	if simulated.colour != predicted.colour || simulated.colour == alone.colour {
		t.Errorf("colours %v, %v, %v, want the first two alike", simulated.colour, predicted.colour, alone.colour)
	}
	if !simulated.noLine || simulated.mark == noMark || predicted.noLine || predicted.mark != noMark {
		t.Errorf("simulated %+v, predicted %+v, want marks and a line", simulated, predicted)
	}
	if alone.noLine || alone.mark == noMark {
		t.Errorf("without a prediction %+v, want a line with marks", alone)
	}
	if want := "Lines: predicted; marks: simulated"; remark != want {
		t.Errorf("remark %q, want %q", remark, want)
	}
	p := newPanel("", Axis{}, Axis{}, []Series{
		{Name: "B = 1", X: []float64{1, 2}, Y: []float64{1, 2}},
		{Name: "B = 1", X: []float64{1, 2}, Y: []float64{1, 2}, Predicted: true},
	}, looks[:2])
	entries := legendEntries([]panel{p})
	if len(entries) != 1 || entries[0].look.noLine || entries[0].look.mark == noMark {
		t.Errorf("legend %+v, want one entry with line and mark", entries)
	}
}

// TestPublishedSeries: published values are diamonds in the colour of their line, without a legend entry.
func TestPublishedSeries(t *testing.T) {
	series := []Series{{Name: "a"}, {Name: "a", Published: true}, {Name: "b"}}
	looks, _ := sweepLooks(series, []string{"a", "a", "b"})
	if looks[0].colour != looks[1].colour || looks[1].mark != diamond || !looks[1].noLine || looks[0].noLine {
		t.Errorf("line %+v, published %+v, want a line and diamonds of its colour", looks[0], looks[1])
	}
	f, err := Sweep(sweepPublished())
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{">full<": 1, ">official<": 1, ">White diamonds: table 6<": 1} {
		if got := strings.Count(string(svg), text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
}
