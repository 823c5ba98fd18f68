package quantile

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a mean with its confidence interval.
type Interval struct {
	Mean      float64
	Low, High float64 // Mean -+ HalfWidth; equal to Mean when Known is false
	HalfWidth float64
	Level     float64 // such as 0.95
	Count     int     // how many values, such as seeds
	Known     bool    // false for a single value, which says nothing of its own spread
}

// MeanCI returns the mean of independent values, one a seed, and the two-sided Student-t confidence
// interval of the given level. It returns an error when there is no value, when a value is NaN or
// infinite, or when the level does not lie between 0 and 1.
func MeanCI(values []float64, level float64) (Interval, error) {
	if !(level > 0 && level < 1) {
		return Interval{}, fmt.Errorf("quantile: confidence level %v, want above 0 and below 1", level)
	}
	if len(values) == 0 {
		return Interval{}, fmt.Errorf("quantile: confidence interval of no values, want at least 1")
	}
	for i, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return Interval{}, fmt.Errorf("quantile: value[%d] = %v, want a finite number", i, value)
		}
	}
	n := len(values)
	center := mean(values)
	interval := Interval{Mean: center, Low: center, High: center, Level: level, Count: n}
	if n == 1 {
		return interval, nil
	}
	squares := 0.0
	for _, value := range values {
		squares += (value - center) * (value - center)
	}
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}
	standardError := math.Sqrt(squares / float64(n-1) / float64(n))
	interval.HalfWidth = student.Quantile(0.5+level/2) * standardError
	interval.Low, interval.High = center-interval.HalfWidth, center+interval.HalfWidth
	interval.Known = true
	return interval, nil
}
