package quantile

import (
	"fmt"
	"math"
	"slices"
)

// RuleName is how results name the percentile rule of this package.
const RuleName = "nearest rank"

// Rank returns the nearest rank of the p-quantile among n values, 1 to n. A product p*n within a few
// units in the last place of a whole number counts as that number, since 0.07*100 is not 7 in binary.
// It panics unless 0 <= p <= 1 and n >= 1.
func Rank(p float64, n int64) int64 {
	if !(p >= 0 && p <= 1) || n < 1 {
		panic(fmt.Sprintf("quantile: Rank(%v, %d), want p in 0 to 1 and n of at least 1", p, n))
	}
	return min(max(int64(ceil(p*float64(n))), 1), n)
}

// ceil rounds up, forgiving an excess that is only the rounding of a decimal fraction.
func ceil(x float64) float64 {
	nearest := math.Round(x)
	if math.Abs(x-nearest) <= x*0x1p-50 {
		return nearest
	}
	return math.Ceil(x)
}

// tailValuesMin is how many values must lie beyond a percentile for it to count as reliable.
const tailValuesMin = 10

// TailCountMin returns how many values the p-quantile needs before TailReliable holds: enough that 10
// are expected beyond it on its thinner side. 20 for p50, 100 for p90, 200 for p95, 1000 for p99. For
// p = 0 and p = 1 no number is enough and it returns math.MaxInt64. It panics unless 0 <= p <= 1.
func TailCountMin(p float64) int64 {
	if !(p >= 0 && p <= 1) {
		panic(fmt.Sprintf("quantile: TailCountMin(%v), want 0 to 1", p))
	}
	beyond := min(p, 1-p)
	if beyond < 0x1p-53 {
		return math.MaxInt64
	}
	return int64(math.Ceil(tailValuesMin / beyond * (1 - 1e-12)))
}

// TailReliable reports whether n values are enough to quote the p-quantile without a mark.
func TailReliable(p float64, n int64) bool { return n >= TailCountMin(p) }

// Summary describes a set of floats. NaN values are counted apart and enter nothing else.
type Summary struct {
	Count    int // values that are numbers
	NaNCount int // values that are not

	sorted []float64
	mean   float64
}

// Summarise copies, sorts and describes values, which may be in any order and none.
func Summarise(values []float64) Summary {
	sorted := make([]float64, 0, len(values))
	for _, value := range values {
		if !math.IsNaN(value) {
			sorted = append(sorted, value)
		}
	}
	slices.Sort(sorted)
	s := Summary{Count: len(sorted), NaNCount: len(values) - len(sorted), sorted: sorted}
	if len(sorted) > 0 {
		s.mean = mean(sorted)
	}
	return s
}

// Quantile returns the p-quantile by nearest rank, or ok = false when there is no value. It panics
// unless 0 <= p <= 1.
func (s Summary) Quantile(p float64) (value float64, ok bool) {
	if s.Count == 0 {
		return 0, false
	}
	return s.sorted[Rank(p, int64(s.Count))-1], true
}

// Mean returns the arithmetic mean, or ok = false when there is no value.
func (s Summary) Mean() (mean float64, ok bool) { return s.mean, s.Count > 0 }

// Min returns the least value, or ok = false when there is none.
func (s Summary) Min() (value float64, ok bool) { return s.Quantile(0) }

// Max returns the greatest value, or ok = false when there is none.
func (s Summary) Max() (value float64, ok bool) { return s.Quantile(1) }

// mean adds with Kahan's compensation, so that the order of magnitude of a partial sum costs nothing.
// An infinite value gives an infinite or NaN mean.
func mean(values []float64) float64 {
	var sum, lost float64
	for _, value := range values {
		y := value - lost
		next := sum + y
		lost = (next - sum) - y
		sum = next
	}
	if math.IsNaN(sum) { // compensation turns an infinity into NaN; add plainly
		sum = 0
		for _, value := range values {
			sum += value
		}
	}
	return sum / float64(len(values))
}
