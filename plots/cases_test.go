package plots

import (
	"math"
	"strings"
	"testing"
)

var (
	nan     = math.NaN()
	inf     = math.Inf(1)
	largest = math.MaxFloat64
	least   = math.SmallestNonzeroFloat64
)

// sweepWithGaps has everything that a sweep can go wrong with in one figure.
func sweepWithGaps() SweepData {
	return SweepData{
		Title: "Queue time when points are missing",
		X:     Axis{Label: "requests in flight, N", Integer: true},
		Y:     Axis{Label: "queue time (ms)", Log: true},
		Series: []Series{
			{Name: "eager", X: []float64{1, 2, 3, 4, 5, 6}, Y: []float64{0, 0.4, 1.1, 3, 9, 30},
				Low: []float64{0, 0.1, 0.8, 2, 7, 25}, High: []float64{0, 0.8, 1.5, 4, 12, 34}},
			{Name: "delayed", X: []float64{1, 2, 3, 4, 5, 6}, Y: []float64{2, 4, nan, 8, nan, 20}},
			{Name: "model-sync"},
		},
	}
}

func counting(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i + 1)
	}
	return out
}

// A wanted is what must come out of one series on a log axis.
type wanted struct {
	name    string
	x, y    []float64
	leftOut int
	runs    []int // lengths of the unbroken pieces
}

// The inputs that broke other plotting programs (gonum/plot #681 and #377, go-hep #749 and #788), each
// between two neighbours.
var logCases = []wanted{
	{"empty", nil, nil, 0, nil},
	{"empty but not nil", []float64{}, []float64{}, 0, nil},
	{"only NaN", counting(2), []float64{nan, nan}, 0, nil},
	{"flat two", counting(2), []float64{0.5, 0.5}, 0, []int{2}},
	{"flat", counting(3), []float64{0.5, 0.5, 0.5}, 0, []int{3}},
	{"nearly flat", counting(3), []float64{0.5, 0.5, math.Nextafter(0.5, 1)}, 0, []int{3}},
	{"single at 0", []float64{0}, []float64{1}, 0, []int{1}},
	{"single at 1", []float64{1}, []float64{1}, 0, []int{1}},
	{"single of 2", []float64{1}, []float64{2}, 0, []int{1}},
	{"negative", counting(3), []float64{-1, 10, 100}, 1, []int{2}},
	{"zero", counting(3), []float64{0, 10, 100}, 1, []int{2}},
	{"least", counting(3), []float64{least, 10, 100}, 0, []int{3}},
	{"only zero", counting(1), []float64{0}, 1, nil},
	{"zero in the middle", counting(3), []float64{1, 0, 100}, 1, []int{1, 1}},
	{"NaN first", counting(3), []float64{nan, 1, 100}, 0, []int{2}},
	{"NaN in the middle", counting(3), []float64{1, nan, 100}, 0, []int{1, 1}},
	{"NaN last", counting(3), []float64{1, 100, nan}, 0, []int{2}},
	{"NaN in X", []float64{1, nan, 3}, []float64{1, 10, 100}, 0, []int{1, 1}},
	{"minus infinity", counting(2), []float64{1, -inf}, 1, []int{1}},
	{"infinity", counting(2), []float64{1, inf}, 1, []int{1}},
	{"largest", counting(2), []float64{1, largest}, 0, []int{2}},
	{"all infinite", counting(2), []float64{inf, -inf}, 2, nil},
	{"infinite X", []float64{1, inf}, []float64{1, 2}, 1, []int{1}},
	{"one sweep point of NaN", counting(1), []float64{nan}, 0, nil},
}

func TestHardSeries(t *testing.T) {
	for _, test := range logCases {
		for _, axes := range []struct {
			name       string
			logX, logY bool
		}{{"linear", false, false}, {"log y", false, true}} {
			t.Run(test.name+"/"+axes.name, func(t *testing.T) {
				series := Series{Name: "delayed", X: test.x, Y: test.y}
				x, y := Axis{Log: axes.logX}, Axis{Log: axes.logY}
				f, err := Sweep(SweepData{X: x, Y: y, Series: []Series{series}})
				if err != nil {
					t.Fatal(err)
				}
				svg, err := f.SVG()
				if err != nil {
					t.Fatal(err)
				}
				checkSVG(t, test.name, svg)
				checkText(t, f)
				if !axes.logY {
					return
				}
				if f.LeftOut != test.leftOut {
					t.Errorf("LeftOut = %d, want %d", f.LeftOut, test.leftOut)
				}
				if got, want := strings.Contains(string(svg), "not drawn"), test.leftOut > 0; got != want {
					t.Errorf("says that points are not drawn: %v, want %v", got, want)
				}
				if got, want := strings.Contains(string(svg), ">no data<"), test.runs == nil; got != want {
					t.Errorf("says no data: %v, want %v", got, want)
				}
				if !strings.Contains(string(svg), ">delayed") {
					t.Error("the legend entry is gone")
				}
				checkRuns(t, place(series, axes.logX, axes.logY), test.runs)
			})
		}
	}
}

func checkRuns(t *testing.T, got placed, want []int) {
	t.Helper()
	if len(got.runs) != len(want) {
		t.Fatalf("line is in %d pieces, want %d", len(got.runs), len(want))
	}
	for i, run := range got.runs {
		if len(run) != want[i] {
			t.Errorf("piece %d has %d points, want %d", i, len(run), want[i])
		}
	}
}

func TestLogX(t *testing.T) {
	for _, test := range []struct {
		name    string
		x       []float64
		leftOut int
	}{
		{"negative", []float64{-1, 10, 100}, 1},
		{"zero", []float64{0, 10, 100}, 1},
		{"one", []float64{1, 10, 100}, 0},
	} {
		f, err := Sweep(SweepData{X: Axis{Log: true}, Series: []Series{{X: test.x, Y: counting(3)}}})
		if err != nil {
			t.Fatal(err)
		}
		if f.LeftOut != test.leftOut {
			t.Errorf("%s: LeftOut = %d, want %d", test.name, f.LeftOut, test.leftOut)
		}
	}
}

// TestOneOfTwoEmpty keeps the empty series in the legend, and says that it is empty.
func TestOneOfTwoEmpty(t *testing.T) {
	bare := Series{Name: "delayed"}
	full := Series{Name: "eager", X: counting(3), Y: []float64{1, 10, 100}}
	for _, test := range []struct {
		name   string
		series []Series
		want   []string
		not    string
	}{
		{"second empty", []Series{full, bare}, []string{">eager<", ">delayed (no data)<"}, ">no data<"},
		{"first empty", []Series{bare, full}, []string{">eager<", ">delayed (no data)<"}, ">no data<"},
		{"both empty", []Series{{Name: "eager"}, bare},
			[]string{">eager (no data)<", ">delayed (no data)<", ">no data<"}, "not drawn"},
		{"none empty", []Series{full, full}, []string{">eager<"}, "no data"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Sweep(SweepData{Y: Axis{Log: true}, Series: test.series})
			if err != nil {
				t.Fatal(err)
			}
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				if strings.Count(string(svg), want) != 1 {
					t.Errorf("%q is there %d times, want once", want, strings.Count(string(svg), want))
				}
			}
			if strings.Contains(string(svg), test.not) {
				t.Errorf("says %q", test.not)
			}
		})
	}
}

// TestOmissionNote words the count of points left out.
func TestOmissionNote(t *testing.T) {
	for _, test := range []struct {
		y    []float64
		want string
	}{
		{[]float64{1, 2}, ""},
		{[]float64{0, 2}, "1 point not drawn: zero or negative on a log axis"},
		{[]float64{0, -2, 1}, "2 points not drawn: zero or negative on a log axis"},
		{[]float64{inf, 1}, "1 point not drawn: infinite"},
		{[]float64{inf, 0, 1}, "2 points not drawn: 1 zero or negative on a log axis, 1 infinite"},
	} {
		note, _ := omissions([]placed{place(Series{X: counting(len(test.y)), Y: test.y}, false, true)})
		if note != test.want {
			t.Errorf("%v: note %q, want %q", test.y, note, test.want)
		}
	}
}

// TestOtherFiguresSurvive gives every function empty and broken input.
func TestOtherFiguresSurvive(t *testing.T) {
	odd := []float64{nan, inf, -inf, 0, largest, -largest, least}
	oddSeries := Series{X: counting(len(odd)), Y: odd, Low: odd, High: odd}
	small := []string{"small"}
	whole := []int{1, 2, 3, 4, 5, 6, 7}
	launch := Launch{Model: 0, Start: 1, End: 1}
	endless := Launch{Model: 0, Start: 0, End: inf, Requests: []int{0}}
	for name, draw := range map[string]func() (*Figure, error){
		"threshold empty": func() (*Figure, error) { return Threshold(ThresholdData{}) },
		"threshold empty panel": func() (*Figure, error) {
			return Threshold(ThresholdData{Panels: make([]ThresholdPanel, 5)})
		},
		"threshold odd": func() (*Figure, error) {
			return Threshold(ThresholdData{Panels: []ThresholdPanel{{2, oddSeries, oddSeries, oddSeries}}})
		},
		"threshold one point": func() (*Figure, error) {
			one := Series{X: []float64{1}, Y: []float64{63.431652}}
			return Threshold(ThresholdData{Panels: []ThresholdPanel{{1, one, one, one}}})
		},
		"bars empty":          func() (*Figure, error) { return Bars(BarsData{}) },
		"bars without series": func() (*Figure, error) { return Bars(BarsData{Groups: small}) },
		"bars of nothing": func() (*Figure, error) {
			return Bars(BarsData{Groups: small, Series: []BarSeries{{Name: "eager", Values: []float64{nan}}}})
		},
		"bars odd": func() (*Figure, error) {
			return Bars(BarsData{Groups: make([]string, len(odd)),
				Series: []BarSeries{{Values: odd, Low: odd, High: odd, Published: odd}}})
		},
		"bars odd, log": func() (*Figure, error) {
			return Bars(BarsData{Y: Axis{Log: true}, Groups: make([]string, len(odd)),
				Series: []BarSeries{{Values: odd, Low: odd, High: odd, Published: odd}}})
		},
		"speed empty": func() (*Figure, error) { return ThroughputSpeed(ThroughputSpeedData{}) },
		"speed empty curve": func() (*Figure, error) {
			return ThroughputSpeed(ThroughputSpeedData{Curves: make([]SpeedCurve, 2)})
		},
		"speed odd": func() (*Figure, error) {
			return ThroughputSpeed(ThroughputSpeedData{Curves: []SpeedCurve{
				{Policy: "eager", Concurrency: whole, Speed: odd, Throughput: odd,
					ThroughputLow: odd, ThroughputHigh: odd}}})
		},
		"schedules empty": func() (*Figure, error) { return Schedules(SchedulesData{}) },
		"schedules instant": func() (*Figure, error) {
			return Schedules(SchedulesData{Models: small, Schedules: []Schedule{{Launches: []Launch{launch}}}})
		},
		"schedules endless": func() (*Figure, error) {
			return Schedules(SchedulesData{Models: small, Requests: []string{"r1"}, Schedules: []Schedule{
				{MeanLatency: nan, Launches: []Launch{endless}, Finishes: []Finish{{0, 0, nan}}}}})
		},
		"timeline empty": func() (*Figure, error) { return Timeline(TimelineData{From: 3, To: nan}) },
		"timeline odd": func() (*Figure, error) {
			return Timeline(TimelineData{Models: small, Launches: []Launch{launch, endless}, From: -inf, To: inf})
		},
	} {
		t.Run(name, func(t *testing.T) { checkSurvives(t, name, draw) })
	}
}

// checkSurvives draws what can not be drawn; a figure of an empty case must say so.
func checkSurvives(t *testing.T, name string, draw func() (*Figure, error)) {
	t.Helper()
	f, err := draw()
	if err != nil {
		t.Fatal(err)
	}
	svg, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	checkSVG(t, name, svg)
	checkText(t, f)
	f.raster(40) // must not panic; a coarse one is enough
	if strings.HasSuffix(name, "empty") && !strings.Contains(string(svg), ">no data<") {
		t.Error("an empty figure does not say so")
	}
}
