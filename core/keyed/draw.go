package keyed

import (
	"fmt"
	"math"
	"math/bits"
)

// floatBits is how many bits of a hash a float draw uses: the precision of a float64.
const floatBits = 53

// Float turns a hash into a uniform value in [0, 1), a multiple of 2^-53.
func Float(h uint64) float64 { return float64(h>>(64-floatBits)) * 0x1p-53 }

// OpenFloat turns a hash into a uniform value in (0, 1), never 0 and never 1, for logarithms.
func OpenFloat(h uint64) float64 { return (float64(h>>12) + 0.5) * 0x1p-52 }

// Below turns a hash into a uniform whole number in [0, n). The bias is at most n / 2^64. It
// panics when n is 0.
func Below(h, n uint64) uint64 {
	if n == 0 {
		panic("keyed: Below with n = 0, want at least 1")
	}
	hi, _ := bits.Mul64(h, n)
	return hi
}

// Chance is a probability made ready for a comparison of integers.
type Chance uint64

// NewChance prepares a probability p in [0, 1], rounded to a multiple of 2^-53. It panics on any
// other value, NaN included: probabilities are checked where they enter the program.
func NewChance(p float64) Chance {
	if !(p >= 0 && p <= 1) {
		panic(fmt.Sprintf("keyed: probability %v, want 0 to 1", p))
	}
	return Chance(math.Round(p * (1 << floatBits)))
}

// Hit reports whether the event of this chance happens under hash h. A chance of 0 never hits and a
// chance of 1 always does. For p < q, whatever hits p hits q.
func (c Chance) Hit(h uint64) bool { return h>>(64-floatBits) < uint64(c) }

// Exponential turns a hash into an exponentially distributed value of the given mean, at most
// about 36.7 means.
func Exponential(h uint64, mean float64) float64 { return -mean * math.Log(OpenFloat(h)) }

// Normal turns a hash into a standard normal value, by inversion.
func Normal(h uint64) float64 { return math.Sqrt2 * math.Erfinv(2*OpenFloat(h)-1) }

// Lognormal turns a hash into exp(mu + sigma * Z) with Z standard normal. The median is exp(mu), the
// mean exp(mu + sigma^2 / 2).
func Lognormal(h uint64, mu, sigma float64) float64 { return math.Exp(mu + sigma*Normal(h)) }

// Geometric turns a hash into the number of trials up to and including the first success of chance
// p: 1, 2, ... with mean 1/p. It panics unless 0 < p <= 1 and saturates at math.MaxInt64.
func Geometric(h uint64, p float64) int64 {
	if !(p > 0 && p <= 1) {
		panic(fmt.Sprintf("keyed: geometric chance %v, want above 0 and at most 1", p))
	}
	if p == 1 {
		return 1
	}
	failures := math.Floor(math.Log(OpenFloat(h)) / math.Log1p(-p))
	if failures >= 1<<62 {
		return math.MaxInt64
	}
	return 1 + int64(failures)
}

// Gamma draws from the gamma law of the given shape and scale (mean shape*scale), using as many
// draws of the stream as it needs. It panics unless both are finite and positive. Method: Marsaglia
// and Tsang, ACM TOMS 26(3), 2000; for a shape below 1 a draw of shape+1 is multiplied by
// U^(1/shape).
func Gamma(stream *Stream, shape, scale float64) float64 {
	if !(shape > 0 && shape <= math.MaxFloat64 && scale > 0 && scale <= math.MaxFloat64) {
		panic(fmt.Sprintf("keyed: gamma shape %v and scale %v, want both finite and above 0", shape, scale))
	}
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(OpenFloat(stream.Uint64()), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := Normal(stream.Uint64())
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		u := OpenFloat(stream.Uint64())
		if math.Log(u) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return scale * boost * d * v
		}
	}
}

// Categorical draws one of several outcomes with given weights.
type Categorical struct {
	below []uint64 // below[i]: outcomes 0..i take hashes whose upper 53 bits are less than this
}

// NewCategorical prepares weights, which need not sum to 1. It returns an error when there is none,
// when one is negative, NaN or infinite, or when their sum is not above 0.
func NewCategorical(weights []float64) (Categorical, error) {
	total, last := 0.0, -1
	for i, weight := range weights {
		if !(weight >= 0 && weight <= math.MaxFloat64) {
			return Categorical{}, fmt.Errorf("keyed: weight[%d] = %v, want a finite value of at least 0", i, weight)
		}
		if weight > 0 {
			last = i
		}
		total += weight
	}
	if !(total > 0 && total <= math.MaxFloat64) {
		return Categorical{}, fmt.Errorf("keyed: %d weights with sum %v, want a finite sum above 0",
			len(weights), total)
	}
	below := make([]uint64, len(weights))
	running := 0.0
	for i, weight := range weights {
		running += weight
		below[i] = uint64(math.Round(min(running/total, 1) * (1 << floatBits)))
		if i >= last {
			below[i] = 1 << floatBits // an outcome of weight 0 is never drawn, whatever the rounding
		}
	}
	return Categorical{below: below}, nil
}

// Pick returns the index of the outcome that hash h selects. The zero Categorical panics.
func (c Categorical) Pick(h uint64) int {
	x := h >> (64 - floatBits)
	for i, bound := range c.below {
		if x < bound {
			return i
		}
	}
	panic("keyed: Pick on a Categorical that NewCategorical did not make")
}
