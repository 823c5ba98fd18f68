package quantile

import (
	"math"
	"testing"
)

// The quantiles of Student's t are those of every statistics table: t(0.975) is 12.706 for 1 degree of
// freedom, 2.776 for 4, 2.262 for 9; t(0.95) is 2.132 for 4.
func TestMeanCI(t *testing.T) {
	tests := []struct {
		name      string
		values    []float64
		level     float64
		mean      float64
		halfWidth float64
		known     bool
	}{
		{"two values", []float64{1, 3}, 0.95, 2, 12.706, true},                             // s/sqrt(n) = 1
		{"five values", []float64{1, 2, 3, 4, 5}, 0.95, 3, 2.776 * math.Sqrt(2.5/5), true}, // s^2 = 2.5
		{"five values, 90 %", []float64{5, 4, 3, 2, 1}, 0.9, 3, 2.132 * math.Sqrt(0.5), true},
		{"ten values", upTo(10), 0.95, 5.5, 2.262 * math.Sqrt(55.0/6/10), true}, // s^2 = 55/6
		{"equal values", []float64{7, 7, 7}, 0.95, 7, 0, true},
		{"one value has no interval", []float64{7}, 0.95, 7, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := MeanCI(test.values, test.level)
			if err != nil {
				t.Fatal(err)
			}
			if got.Mean != test.mean || got.Known != test.known || got.Count != len(test.values) {
				t.Errorf("got %+v, want mean %v, known %t, count %d", got, test.mean, test.known, len(test.values))
			}
			if math.Abs(got.HalfWidth-test.halfWidth) > 5e-4*test.halfWidth {
				t.Errorf("half width %v, want %v (tables round to 3 digits)", got.HalfWidth, test.halfWidth)
			}
			if got.Low != got.Mean-got.HalfWidth || got.High != got.Mean+got.HalfWidth {
				t.Errorf("ends %v and %v do not lie a half width from the mean", got.Low, got.High)
			}
		})
	}
}

func TestMeanCIErrors(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		level  float64
	}{
		{"no values", nil, 0.95}, {"NaN", []float64{1, math.NaN()}, 0.95},
		{"infinite", []float64{math.Inf(-1)}, 0.95},
		{"level 0", []float64{1, 2}, 0}, {"level 1", []float64{1, 2}, 1}, {"level 95", []float64{1, 2}, 95},
		{"level NaN", []float64{1, 2}, math.NaN()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := MeanCI(test.values, test.level); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
		})
	}
}
