package plots

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
)

// TestBarsAxis: bars begin at zero, and the axis holds bars, intervals and published values.
func TestBarsAxis(t *testing.T) {
	for _, test := range []struct {
		name      string
		series    BarSeries
		low, high float64 // that the axis must hold
		zero      bool    // and begin there
	}{
		{"values", BarSeries{Values: []float64{3, 7}}, 0, 7, true},
		{"interval above", BarSeries{Values: []float64{3, 7}, Low: []float64{2, 5}, High: []float64{4, 9}},
			0, 9, true},
		{"published above", BarSeries{Values: []float64{3, 7}, Published: []float64{nan, 20}}, 0, 20, true},
		{"below zero", BarSeries{Values: []float64{-3, -7}}, -7, 0, false},
		{"both", BarSeries{Values: []float64{-3, 7}}, -3, 7, false},
	} {
		b, err := newBars(BarsData{Groups: []string{"a", "b"}, Series: []BarSeries{test.series}})
		if err != nil {
			t.Fatal(err)
		}
		y := b.panel.y
		if y.min > test.low || y.max < test.high || test.zero != (y.min == 0) || y.max > 2*math.Abs(test.high)+9 {
			t.Errorf("%s: axis from %v to %v, want %v to %v", test.name, y.min, y.max, test.low, test.high)
		}
	}
}

// TestBarsColours: series of one figure have colours of their own, and a policy its own in every figure.
func TestBarsColours(t *testing.T) {
	names := []string{"a", "delayed", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	d := BarsData{Groups: []string{"x"}}
	for _, name := range names {
		d.Series = append(d.Series, BarSeries{Name: name, Values: []float64{1}})
	}
	b, err := newBars(d)
	if err != nil {
		t.Fatal(err)
	}
	if delayed, _ := policyLook("delayed"); b.colour(1) != delayed.colour {
		t.Errorf("delayed has colour %v, want %v", b.colour(1), delayed.colour)
	}
	for i := range names {
		for k := range i {
			if b.colour(i) == b.colour(k) {
				t.Errorf("%s and %s have the same colour", names[i], names[k])
			}
		}
	}
}

// TestBarsLegend: the legend says what the marks are, if there are any.
func TestBarsLegend(t *testing.T) {
	one := BarSeries{Name: "full", Values: []float64{5}}
	published, interval := one, one
	published.Published = []float64{6}
	interval.Low, interval.High = []float64{4}, []float64{6}
	for _, test := range []struct {
		name   string
		series BarSeries
		want   []string
		not    []string
	}{
		{"bars", one, []string{">full<"}, []string{">table 6<", ">95 % interval<"}},
		{"published", published, []string{">full<", ">table 6<"}, []string{">95 % interval<"}},
		{"interval", interval, []string{">full<", ">95 % interval<"}, []string{">table 6<"}},
		{"nothing", BarSeries{Name: "full", Values: []float64{nan}},
			[]string{">full (no data)<", ">no data<"}, nil},
	} {
		f, err := Bars(BarsData{Groups: []string{"4"}, Series: []BarSeries{test.series}, Published: "table 6"})
		if err != nil {
			t.Fatal(err)
		}
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			if strings.Count(string(svg), want) != 1 {
				t.Errorf("%s: %q is there %d times, want once", test.name, want, strings.Count(string(svg), want))
			}
		}
		for _, not := range test.not {
			if strings.Contains(string(svg), not) {
				t.Errorf("%s: says %q", test.name, not)
			}
		}
	}
}

// TestBarsRefused: errors name what was given and what was wanted.
func TestBarsRefused(t *testing.T) {
	bars := func(s BarSeries) error {
		_, err := Bars(BarsData{Groups: []string{"a", "b"}, Series: []BarSeries{s}})
		return err
	}
	for _, test := range []struct {
		name, want string
		err        error
	}{
		{"bars", `bars: series "s" has 2 X and 3 Y`, bars(BarSeries{Name: "s", Values: counting(3)})},
		{"published bars", `bars: series "s" has 1 published values for 2 groups, want one each`,
			bars(BarSeries{Name: "s", Values: counting(2), Published: counting(1)})},
		{"intervals of bars", `series "s" has 2 Low and 0 High`,
			bars(BarSeries{Name: "s", Values: counting(2), Low: counting(2)})},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, test.err, test.want)
		}
	}
}

// TestGroupLabels: names of groups are broken into lines, the figure is as wide as the text where a column is
// too narrow for them, and they are turned where both are.
func TestGroupLabels(t *testing.T) {
	groups := func(n int, name string) BarsData {
		d := BarsData{Series: []BarSeries{{Name: "s"}}}
		for range n {
			d.Groups, d.Series[0].Values = append(d.Groups, name), append(d.Series[0].Values, 1)
		}
		return d
	}
	for _, test := range []struct {
		name   string
		data   BarsData
		width  vg.Length
		turned bool
	}{
		{"numbers", groups(3, "8"), ColumnWidth, false},
		{"broken", groups(3, "R2R, high effort"), ColumnWidth, false},
		{"too long for a column", groups(10, "R2R: TokenRouter"), TextWidth, false},
		{"too long for the text", groups(20, "standard serving"), TextWidth, true},
	} {
		f, err := Bars(test.data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := newBars(test.data)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.groupLabels(test.width); f.Width != test.width || got.turned != test.turned {
			t.Errorf("%s: width %v, turned %t; want %v, %t", test.name, f.Width, got.turned, test.width, test.turned)
		}
		checkText(t, f)
	}
}
