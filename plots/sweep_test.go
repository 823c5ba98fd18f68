package plots

import "testing"

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
