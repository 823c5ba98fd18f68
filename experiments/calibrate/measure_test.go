package calibrate

import (
	"math"
	"strings"
	"testing"

	"tokenrouter/exec/native"
)

// TestRowOf: 1/p steps in the mean, rounded.
func TestRowOf(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want int
	}{{0.35, 3}, {1, 1}, {0.5, 2}, {0.15, 7}, {0.001, 16}, {0, 16}, {math.NaN(), 1}, {2, 1}} {
		if got := RowOf(c.p); got != c.want {
			t.Errorf("p = %v: %d steps in a row, want %d", c.p, got, c.want)
		}
	}
}

// TestTurns: in turn with the large model the small one makes rows of steps, all of which count but one that
// is for new pages; and the large one's own steps come after such a row.
func TestTurns(t *testing.T) {
	models := pair(t).Models
	var order strings.Builder
	named := func(i int, name string) *stepper {
		s := newStepper(models[i])
		s.forward = func(*native.Batch) error { order.WriteString(name); return nil }
		return s
	}
	small, large := named(0, "s"), named(1, "L")
	for _, c := range []struct {
		name   string
		of     int
		beside bool
		steps  []*stepper // of the others
		want   string
		counts int
	}{
		{"the small one", 0, false, []*stepper{large}, "Ls" + "Lsss" + "Lsss", 6},
		{"the large one", 1, false, []*stepper{small, small, small}, "sssL" + "sssL" + "sssL", 2},
		{"the small one beside", 0, true, nil, "s" + "s" + "s", 2},
	} {
		order.Reset()
		r := round{Plan: &Plan{Steps: 2, Row: 3}, models: models, of: c.of, beside: c.beside}
		took, err := r.turns(t.Context(), []*stepper{small, large}[c.of], c.steps)
		if err != nil || order.String() != c.want || len(took) != c.counts {
			t.Errorf("%s: steps %s, %d count, %v; want %s and %d", c.name, &order, len(took), err, c.want, c.counts)
		}
	}
}

// TestMeasure: every shape is measured in every round, as often as announced, and the samples say when.
func TestMeasure(t *testing.T) {
	shapes := []Shape{{Rows: 1, Fresh: 1}, {Rows: 2, Fresh: 2}}
	announced, last := 0, 0
	samples, err := Measure(t.Context(), pair(t).Models, Plan{
		Shapes: shapes, Rounds: 2, First: 5, Steps: 2, Row: 3, Neighbour: Shape{Rows: 1, Fresh: 1},
		Done: func(steps, total int) { last, announced = steps, total },
	})
	if err != nil {
		t.Fatal(err)
	}
	type kind struct {
		model  string
		beside bool
		shape  Shape
		round  int
	}
	counts := make(map[kind]int)
	for i, s := range samples {
		counts[kind{s.Model, s.Beside, s.Shape, s.Round}]++
		if s.At.IsZero() || i > 0 && s.At.Before(samples[i-1].At) {
			t.Errorf("sample %d is of %v, want times that do not fall", i, s.At)
		}
	}
	for k, n := range counts {
		want := 2
		if k.model == "a" && !k.beside {
			want = 2 * 3
		}
		if n != want || k.round != 5 && k.round != 6 {
			t.Errorf("%+v: %d samples, want %d of rounds 5 and 6", k, n, want)
		}
	}
	if want := 2 * 2 * (6 + 2 + 2 + 2); len(samples) != want || last != want || announced != want {
		t.Errorf("%d samples, told %d of %d; want %d", len(samples), last, announced, want)
	}
}
