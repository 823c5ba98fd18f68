package plots

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRange(t *testing.T) {
	for _, test := range []struct {
		name     string
		axis     Axis
		values   []float64
		min, max float64
		empty    bool
	}{
		{"empty", Axis{}, nil, 0, 1, true},
		{"empty log", Axis{Log: true}, nil, 1, 10, true},
		{"margin of 6 % at both ends", Axis{}, []float64{100, 200, 150}, 94, 206, false},
		{"zero keeps its end", Axis{Zero: true}, []float64{100, 200}, 0, 212, false},
		{"zero is in vain below it", Axis{Zero: true}, []float64{-100, 200}, -118, 218, false},
		{"flat is widened by a tenth", Axis{}, []float64{5, 5}, 4.5, 5.5, false},
		{"flat negative", Axis{}, []float64{-5}, -5.5, -4.5, false},
		{"flat zero", Axis{}, []float64{0, 0}, -1, 1, false},
		{"flat zero from zero", Axis{Zero: true}, []float64{0}, 0, 1, false},
		{"flat integer by half a unit", Axis{Integer: true}, []float64{4}, 3.5, 4.5, false},
		{"log margin of 6 % of the decades", Axis{Log: true}, []float64{1, 100}, 0.758578, 131.825674, false},
		{"flat log to half and twice", Axis{Log: true}, []float64{0.5, 0.5, 0.5}, 0.25, 1, false},
		{"log of 1 alone", Axis{Log: true}, []float64{1}, 0.5, 2, false},
		{"whole range", Axis{}, []float64{-largest, largest}, -largest, largest, false},
		{"largest alone", Axis{}, []float64{largest}, largest * 0.9, largest, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := newScale(test.axis, test.values)
			if !near(got.min, test.min) || !near(got.max, test.max) || got.empty != test.empty {
				t.Errorf("range %v to %v, empty %v; want %v to %v, %v",
					got.min, got.max, got.empty, test.min, test.max, test.empty)
			}
		})
	}
}

func near(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-6*math.Abs(b) }

// TestEveryValueIsInside: whatever the values, the axis holds them and has an extent.
func TestEveryValueIsInside(t *testing.T) {
	values := []float64{least, 1e-300, 1e-9, 0.5, 1, math.Nextafter(1, 2), 3, 1e6, 1e300, largest}
	for _, a := range values {
		for _, b := range values {
			axes := []Axis{{}, {Log: true}, {Integer: true}, {Log: true, Integer: true}, {Zero: true}}
			for _, axis := range axes {
				s := newScale(axis, []float64{a, b})
				if !(s.min < s.max) {
					t.Errorf("%v of %v, %v: range %v to %v has no extent", axis, a, b, s.min, s.max)
				}
				for _, v := range []float64{a, b} {
					if part := s.part(v); !(part >= 0 && part <= 1) {
						t.Errorf("%v: %v is at %v of %v to %v, want 0 to 1", axis, v, part, s.min, s.max)
					}
				}
				for most := 2; most < 9; most++ {
					checkTicks(t, s, most)
				}
			}
		}
	}
}

func checkTicks(t *testing.T, s scale, most int) {
	t.Helper()
	marks, _ := s.ticks(most)
	if len(marks) > most+1 {
		t.Errorf("%v to %v: %d ticks, want at most %d", s.min, s.max, len(marks), most)
	}
	for i, m := range marks {
		if len(m.label) > 24 || strings.ContainsAny(m.label, "eE+N") {
			t.Errorf("%v to %v: label %q", s.min, s.max, m.label)
		}
		if i > 0 && !(marks[i-1].value < m.value) {
			t.Errorf("%v to %v: tick %v after %v", s.min, s.max, m.value, marks[i-1].value)
		}
		if i > 0 && marks[i-1].label == m.label {
			t.Errorf("%v to %v: two ticks %q", s.min, s.max, m.label)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		name     string
		axis     Axis
		min, max float64
		most     int
		want     string
		power    int
	}{
		{"tok/s", Axis{}, 155, 212, 6, "160 170 180 190 200 210", 0},
		{"tok/s with less room", Axis{}, 155, 212, 4, "160 180 200", 0},
		{"halves", Axis{}, 0.9, 3.1, 6, "1.0 1.5 2.0 2.5 3.0", 0},
		{"quarters", Axis{}, 0, 1, 4, "0.00 0.25 0.50 0.75 1.00", 0},
		{"across zero", Axis{}, -1.2, 1.2, 5, "−1.0 −0.5 0.0 0.5 1.0", 0},
		{"thresholds", Axis{Integer: true}, 0.82, 4.18, 9, "1 2 3 4", 0},
		{"one threshold", Axis{Integer: true}, 0.5, 1.5, 9, "1", 0},
		{"two thresholds", Axis{Integer: true}, 0.94, 2.06, 9, "1 2", 0},
		{"sixteen thresholds", Axis{Integer: true}, 0.1, 16.9, 9, "2 4 6 8 10 12 14 16", 0},
		{"thousands", Axis{}, 0, 50000, 5, "0 10000 20000 30000 40000 50000", 0},
		{"millions", Axis{}, 0, 5e6, 5, "0 1 2 3 4 5", 6},
		{"millionths", Axis{}, 0, 5e-6, 5, "0 1 2 3 4 5", -6},
		{"decades", Axis{Log: true}, 0.07, 130, 6, "0.1 1 10 100", 0},
		{"a decade and more", Axis{Log: true}, 0.07, 50, 6, "0.1 0.3 1 3 10 30", 0},
		{"within a decade", Axis{Log: true}, 56, 900, 5, "100 200 500", 0},
		{"much less than a decade", Axis{Log: true}, 101, 118, 5, "105 110 115", 0},
		{"many decades", Axis{Log: true}, 1e-9, 1e9, 5, "10^{−9} 10^{−4} 10^{1} 10^{6}", 0},
		{"concurrency", Axis{Log: true, Integer: true}, 0.8, 80, 9, "1 2 4 8 16 32 64", 0},
		{"one concurrency", Axis{Log: true, Integer: true}, 1.6, 3.2, 9, "2 3", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			marks, power := scale{Axis: test.axis, min: test.min, max: test.max}.ticks(test.most)
			var labels []string
			for _, m := range marks {
				labels = append(labels, m.label)
			}
			if diff := cmp.Diff(strings.Fields(test.want), labels); diff != "" || power != test.power {
				t.Errorf("power %d, want %d; labels (-want +got):\n%s", power, test.power, diff)
			}
		})
	}
}

func TestPowerGoesToTheUnit(t *testing.T) {
	for _, test := range []struct {
		label string
		power int
		want  string
	}{
		{"throughput (tok/s)", 0, "throughput (tok/s)"},
		{"throughput (tok/s)", 6, "throughput (10^{6} tok/s)"},
		{"share", -6, "share (10^{−6})"},
	} {
		if got := withPower(test.label, test.power); got != test.want {
			t.Errorf("withPower(%q, %d) = %q, want %q", test.label, test.power, got, test.want)
		}
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]string{
		"B_{1}": "B|1", "10^{-6} s": "10|-6| s", "tok_s": "tok_s", "a_{b": "a_{b", "_{x}": "x", "": "",
		"_^{2}": "_|2",
	} {
		var pieces []string
		for _, p := range spans(text) {
			pieces = append(pieces, p.text)
		}
		if got := strings.Join(pieces, "|"); got != want {
			t.Errorf("spans(%q) = %q, want %q", text, got, want)
		}
	}
}
