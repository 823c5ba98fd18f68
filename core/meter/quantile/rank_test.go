package quantile

import (
	"math"
	"strings"
	"testing"
)

func upTo(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i + 1)
	}
	return values
}

// TestNearestRank is case 36: the rule on few samples.
func TestNearestRank(t *testing.T) {
	shuffled := []float64{7, 1, 10, 4, 3, 9, 2, 8, 6, 5}
	tests := []struct {
		name   string
		values []float64
		p      float64
		want   float64
	}{
		{"1..10 p50", upTo(10), 0.50, 5},
		{"1..10 p90", upTo(10), 0.90, 9},
		{"1..10 p95", upTo(10), 0.95, 10},
		{"1..10 p99", upTo(10), 0.99, 10},
		{"1..10 p0", upTo(10), 0, 1},
		{"1..10 p100", upTo(10), 1, 10},
		{"1..100 p99 is not the greatest", upTo(100), 0.99, 99},
		{"1..100 p7: 0.07*100 exceeds 7 in binary", upTo(100), 0.07, 7},
		{"1..100 p29", upTo(100), 0.29, 29},
		{"1..1000 p99.9", upTo(1000), 0.999, 999},
		{"1..8 p99, where another tool gave NaN", upTo(8), 0.99, 8},
		{"one value", []float64{3.5}, 0.99, 3.5},
		{"two values p50", []float64{2, 1}, 0.5, 1},
		{"two values above p50", []float64{2, 1}, 0.51, 2},
		{"unsorted p50", shuffled, 0.5, 5},
		{"unsorted p90", shuffled, 0.9, 9},
		{"infinite values are values", []float64{math.Inf(1), 1}, 1, math.Inf(1)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := Summarise(test.values).Quantile(test.p)
			if !ok || got != test.want {
				t.Errorf("Quantile(%v) = %v, %t, want %v", test.p, got, ok, test.want)
			}
		})
	}
	if shuffled[0] != 7 {
		t.Error("Summarise changed the order of its argument")
	}
}

func TestEveryPercentOfEveryCount(t *testing.T) {
	for n := int64(1); n <= 300; n++ {
		for percent := range int64(101) {
			want := max((percent*n+99)/100, 1) // ceil in whole numbers
			if got := Rank(float64(percent)/100, n); got != want {
				t.Fatalf("Rank(%d %%, %d) = %d, want %d", percent, n, got, want)
			}
		}
	}
}

func TestNoValuesAndNaN(t *testing.T) {
	none := Summarise(nil)
	if _, ok := none.Quantile(0.5); ok {
		t.Error("the median of no values is known, want unknown")
	}
	if _, ok := none.Mean(); ok {
		t.Error("the mean of no values is known, want unknown")
	}
	values := append(upTo(9), math.NaN())
	s := Summarise(values)
	if s.Count != 9 || s.NaNCount != 1 {
		t.Errorf("counts %d and %d NaN, want 9 and 1", s.Count, s.NaNCount)
	}
	if got, _ := s.Quantile(0.5); got != 5 {
		t.Errorf("median beside a NaN = %v, want 5", got)
	}
	if got, _ := s.Mean(); got != 5 {
		t.Errorf("mean beside a NaN = %v, want 5", got)
	}
	if s := Summarise([]float64{math.NaN()}); s.Count != 0 || s.NaNCount != 1 {
		t.Errorf("counts of one NaN: %d and %d, want 0 and 1", s.Count, s.NaNCount)
	}
}

func TestMeanDoesNotLoseSmallTerms(t *testing.T) {
	values := []float64{1e16}
	for range 1000 {
		values = append(values, 1)
	}
	if got, _ := Summarise(values).Mean(); got != (1e16+1000)/1001 {
		t.Errorf("mean %v, want %v", got, (1e16+1000)/1001)
	}
	s := Summarise([]float64{math.Inf(1), 1, math.Inf(1), 2})
	least, _ := s.Min()
	if greatest, _ := s.Max(); least != 1 || !math.IsInf(greatest, 1) {
		t.Errorf("extremes %v and %v, want 1 and +Inf", least, greatest)
	}
	if got, _ := s.Mean(); !math.IsInf(got, 1) {
		t.Errorf("mean with an infinite value %v, want +Inf", got)
	}
}

func TestTail(t *testing.T) {
	tests := []struct {
		p    float64
		want int64
	}{
		{0.5, 20}, {0.9, 100}, {0.95, 200}, {0.99, 1000}, {0.999, 10000}, {0.05, 200}, {0.01, 1000},
		{1, math.MaxInt64}, {0, math.MaxInt64},
	}
	for _, test := range tests {
		if got := TailCountMin(test.p); got != test.want {
			t.Errorf("TailCountMin(%v) = %d, want %d", test.p, got, test.want)
		}
	}
	if TailReliable(0.99, 999) || !TailReliable(0.99, 1000) {
		t.Error("p99 is reliable from 1000 values on")
	}
}

func TestMisusePanics(t *testing.T) {
	var sample Sample
	sample.Add(1)
	tests := []struct {
		name, want string
		call       func()
	}{
		{"p above 1", "Rank(95", func() { Summarise(upTo(3)).Quantile(95) }},
		{"p NaN", "Rank(NaN", func() { sample.Quantile(math.NaN()) }},
		{"p below 0", "Rank(-0.1", func() { Rank(-0.1, 5) }},
		{"rank of none", "Rank(0.5, 0)", func() { Rank(0.5, 0) }},
		{"tail of 2", "TailCountMin(2)", func() { TailCountMin(2) }},
		{"negative value", "AddN(-5, 1)", func() { sample.Add(-5) }},
		{"negative count", "AddN(5, -1)", func() { sample.AddN(5, -1) }},
		{"too many", "exceeds int64", func() { sample.AddN(5, math.MaxInt64) }},
		{"merged into itself", "into itself", func() { sample.Merge(&sample) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, test.want) {
					t.Errorf("panic %q, want one with %q", text, test.want)
				}
			}()
			test.call()
		})
	}
}
