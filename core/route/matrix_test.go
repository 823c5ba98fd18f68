package route_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

func TestMatrixRefuses(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		p, c   [][]float64
		errHas string // nothing: accepted
	}{
		{"R2R", [][]float64{{0.65, 0.35}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, ""},
		{"one model", [][]float64{{1}}, [][]float64{{1}}, ""},
		{"p = 0", [][]float64{{1, 0}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, ""},
		{"p = 1", [][]float64{{0, 1}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, ""},
		{"tenths", [][]float64{{.1, .2, .7}, {.7, .2, .1}, {.3, .3, .4}}, [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1,
			1}}, ""},
		{"empty", nil, nil, "0 rows"},
		{"rows missing", [][]float64{{1, 0}, {1, 0}}, [][]float64{{1, 0}}, "2 rows and commit 1"},
		{"not square", [][]float64{{1, 0}, {1}}, [][]float64{{1, 0}, {1, 0}}, "row 1 of routing has 1"},
		{"sum", [][]float64{{0.6, 0.3}, {1, 0}}, [][]float64{{1, 0}, {1, 0}},
			"row 0 of routing sums to 0.8999999999999999"},
		{"negative", [][]float64{{1.5, -0.5}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, "routing[0][0] = 1.5"},
		{"not a number", [][]float64{{nan, 1}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}, "routing[0][0] = NaN"},
		{"half a token", [][]float64{{0.5, 0.5}, {1, 0}}, [][]float64{{1, 0.5}, {1, 0}}, "commit[0][1] = 0.5"},
		{"stays and drops", [][]float64{{0.5, 0.5}, {1, 0}}, [][]float64{{0, 0}, {1, 0}}, "commit[0][0] = 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := route.NewMatrix(c.p, c.c)
			if (err == nil) != (c.errHas == "") || err != nil && !strings.Contains(err.Error(), c.errHas) {
				t.Errorf("error %v, want one with %q", err, c.errHas)
			}
		})
	}
}

// TestMatrixDraw: the draw falls into the interval of its model, and commits as C says.
func TestMatrixDraw(t *testing.T) {
	p := [][]float64{{0.5, 0.3, 0.2}, {1, 0, 0}, {0, 0.25, 0.75}}
	c := [][]float64{{1, 0, 1}, {1, 1, 1}, {1, 0, 1}}
	a, err := route.NewMatrix(p, c)
	if err != nil {
		t.Fatal(err)
	}
	last := math.Nextafter(1, 0)
	for _, c := range []struct {
		from int
		draw float64
		next int
		keep bool
	}{
		{0, 0, 0, true}, {0, math.Nextafter(0.5, 0), 0, true}, {0, 0.5, 1, false}, {0, 0.79, 1, false},
		{0, 0.81, 2, true}, {0, last, 2, true}, {1, 0, 0, true}, {1, last, 0, true},
		{2, 0, 1, false}, {2, 0.25, 2, true}, {2, last, 2, true},
	} {
		v := core.Visit{Models: 0b111}
		v.Model = int32(c.from)
		r := core.Result{Draw: c.draw}
		next := a.Route(&v, &r)
		if next != c.next || next != c.from && a.Send(&v, &r, next) != c.keep {
			t.Errorf("from %d at %v: next %d, want %d, keep %v", c.from, c.draw, next, c.next, c.keep)
		}
	}
	gotP, gotC := a.Matrices()
	if !reflect.DeepEqual(gotP, p) || !reflect.DeepEqual(gotC, c) {
		t.Errorf("Matrices() = %v, %v", gotP, gotC)
	}
}

func TestMERefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		weights []float64
		errHas  string // nothing: accepted
	}{
		{"TokenRouter's", []float64{0.5, 0.3, 0.2}, ""},
		{"one model", []float64{3}, ""},
		{"a zero", []float64{1, 0}, ""},
		{"none", nil, "sum to 0"},
		{"all zero", []float64{0, 0}, "sum to 0"},
		{"negative", []float64{1, -1}, "model 1 is -1"},
		{"not a number", []float64{math.NaN()}, "model 0 is NaN"},
		{"infinite", []float64{1, math.Inf(1)}, "model 1 is +Inf"},
		{"infinite sum", []float64{math.MaxFloat64, math.MaxFloat64}, "sum to +Inf"},
	} {
		if _, err := route.NewME(c.weights); (err == nil) != (c.errHas == "") ||
			err != nil && !strings.Contains(err.Error(), c.errHas) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.errHas)
		}
	}
}

// TestMEDraw: intervals of the cumulative weights; a weight of 0 is never drawn; a request
// that may not visit all models draws among its own by their relative weights.
func TestMEDraw(t *testing.T) {
	last := math.Nextafter(1, 0)
	for _, c := range []struct {
		weights []float64
		models  uint32
		draw    float64
		want    int
	}{
		{[]float64{0.5, 0.3, 0.2}, 0b111, 0, 0}, {[]float64{0.5, 0.3, 0.2}, 0b111, math.Nextafter(0.5, 0), 0},
		{[]float64{0.5, 0.3, 0.2}, 0b111, 0.5, 1}, {[]float64{0.5, 0.3, 0.2}, 0b111, 0.81, 2},
		{[]float64{0.5, 0.3, 0.2}, 0b111, last, 2}, {[]float64{5, 3, 2}, 0b111, 0.79, 1},
		{[]float64{0, 1, 0}, 0b111, 0, 1}, {[]float64{0, 1, 0}, 0b111, last, 1},
		{[]float64{0.5, 0.3, 0.2}, 0b101, 0.71, 0}, {[]float64{0.5, 0.3, 0.2}, 0b101, 0.72, 2}, // 5/7 = 0.714
		{[]float64{0.5, 0.3, 0.2}, 0b110, 0.59, 1}, {[]float64{0.5, 0.3, 0.2}, 0b110, 0.61, 2}, // 3/5
		{[]float64{0.5, 0.3, 0.2}, 0b100, 0, 2},
	} {
		a, err := route.NewME(c.weights)
		if err != nil {
			t.Fatal(err)
		}
		v := core.Visit{Models: c.models}
		next := a.Route(&v, &core.Result{Draw: c.draw})
		if next != c.want || a.Enter(c.draw, c.models) != c.want || !a.Send(&v, &core.Result{}, next) {
			t.Errorf("weights %v, models %b, draw %v: %d, want %d", c.weights, c.models, c.draw, next, c.want)
		}
	}
}
