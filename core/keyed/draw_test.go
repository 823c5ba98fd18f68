package keyed

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

var _ rand.Source = (*Stream)(nil)

func TestFloatEnds(t *testing.T) {
	if got := Float(0); got != 0 {
		t.Errorf("Float(0) = %v, want 0", got)
	}
	if got := Float(math.MaxUint64); got != 1-0x1p-53 {
		t.Errorf("Float(max) = %v, want 1 - 2^-53", got)
	}
	if got := OpenFloat(0); got != 0x1p-53 {
		t.Errorf("OpenFloat(0) = %v, want 2^-53", got)
	}
	if got := OpenFloat(math.MaxUint64); got != 1-0x1p-53 {
		t.Errorf("OpenFloat(max) = %v, want 1 - 2^-53", got)
	}
}

func TestChance(t *testing.T) {
	key := NewKey(11, 0)
	const n = 200_000
	for _, p := range []float64{0, 1e-3, 0.35, 0.5, 0.9, 1} {
		chance, hits := NewChance(p), 0
		for i := range n {
			if chance.Hit(key.At(uint32(i), 0, Route)) {
				hits++
			}
		}
		// Five deviations of the binomial law; none at all for 0 and 1.
		if tolerance := 5 * math.Sqrt(p*(1-p)/n); math.Abs(float64(hits)/n-p) > tolerance {
			t.Errorf("chance %v hit %d of %d times, want %v +- %v", p, hits, n, p, tolerance)
		}
	}
	if NewChance(1).Hit(math.MaxUint64) != true || NewChance(0).Hit(0) != false {
		t.Error("a chance of 1 must hit the largest hash and a chance of 0 must miss the least")
	}
}

func TestMisusePanics(t *testing.T) {
	stream := NewKey(0, 0).Stream(0, 0, Custom)
	tests := []struct {
		name, want string
		call       func()
	}{
		{"chance NaN", "probability NaN", func() { NewChance(math.NaN()) }},
		{"chance 1.5", "probability 1.5", func() { NewChance(1.5) }},
		{"chance -0.1", "probability -0.1", func() { NewChance(-0.1) }},
		{"below 0", "n = 0", func() { Below(1, 0) }},
		{"geometric 0", "geometric chance 0", func() { Geometric(1, 0) }},
		{"gamma NaN", "gamma shape NaN", func() { Gamma(&stream, math.NaN(), 1) }},
		{"gamma scale 0", "scale 0", func() { Gamma(&stream, 1, 0) }},
		{"zero label", "zero Label", func() { Derive(0, Label{}) }},
		{"zero categorical", "NewCategorical", func() { Categorical{}.Pick(0) }},
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

// TestMoments compares the mean and variance of 200,000 draws with the law. The tolerance is five standard
// errors of the mean, and 3 % of the variance (6 % for heavy tails).
func TestMoments(t *testing.T) {
	const n = 200_000
	logMean := math.Exp(0.25 / 2)
	hash := func(i uint64) uint64 { return Hash(1, i, 0, 0, Route) }
	tests := []struct {
		name             string
		draw             func(i uint64) float64
		mean, variance   float64
		varianceRelative float64
	}{
		{"uniform", func(i uint64) float64 { return Float(hash(i)) }, 0.5, 1.0 / 12, 0.03},
		{"below 10", func(i uint64) float64 { return float64(Below(hash(i), 10)) }, 4.5, 8.25, 0.03},
		{"exponential", func(i uint64) float64 { return Exponential(hash(i), 3) }, 3, 9, 0.03},
		{"normal", func(i uint64) float64 { return Normal(hash(i)) }, 0, 1, 0.03},
		{"lognormal", func(i uint64) float64 { return Lognormal(hash(i), 0, 0.5) },
			logMean, logMean * logMean * (math.Exp(0.25) - 1), 0.06},
		{"geometric", func(i uint64) float64 { return float64(Geometric(hash(i), 0.2)) }, 5, 20, 0.03},
		{"gamma, bursty", func(i uint64) float64 {
			stream := NewKey(1, i).Stream(0, 0, Arrival)
			return Gamma(&stream, 0.25, 8)
		}, 2, 16, 0.06},
		{"gamma, regular", func(i uint64) float64 {
			stream := NewKey(1, i).Stream(0, 0, Arrival)
			return Gamma(&stream, 16, 0.5)
		}, 8, 4, 0.03},
		{"gonum's gamma", func(i uint64) float64 {
			stream := NewKey(1, i).Stream(0, 0, Arrival)
			return distuv.Gamma{Alpha: 2, Beta: 1, Src: &stream}.Rand()
		}, 2, 2, 0.03},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sum, squares := 0.0, 0.0
			for i := range uint64(n) {
				x := test.draw(i)
				sum += x
				squares += x * x
			}
			mean := sum / n
			variance := squares/n - mean*mean
			if tolerance := 5 * math.Sqrt(test.variance/n); math.Abs(mean-test.mean) > tolerance {
				t.Errorf("mean %v, want %v +- %v", mean, test.mean, tolerance)
			}
			if math.Abs(variance/test.variance-1) > test.varianceRelative {
				t.Errorf("variance %v, want %v +- %v %%", variance, test.variance, 100*test.varianceRelative)
			}
		})
	}
}

func TestDrawsAreFiniteAtTheEnds(t *testing.T) {
	for _, h := range []uint64{0, 1, math.MaxUint64 - 1, math.MaxUint64} {
		for name, x := range map[string]float64{
			"exponential": Exponential(h, 1), "normal": Normal(h), "lognormal": Lognormal(h, 0, 2),
			"geometric": float64(Geometric(h, 1e-12)),
		} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s of %#x = %v, want a finite value", name, h, x)
			}
		}
	}
	if got := Geometric(0, 1e-18); got != math.MaxInt64 { // 36.7 means of 1e18 exceed int64
		t.Errorf("Geometric beyond int64 = %d, want it saturated", got)
	}
	if got := Geometric(math.MaxUint64, 0.5); got != 1 {
		t.Errorf("Geometric of the largest hash = %d, want 1", got)
	}
}

func TestCategorical(t *testing.T) {
	c, err := NewCategorical([]float64{5, 3, 2, 0})
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	var counts [4]int
	for i := range uint64(n) {
		counts[c.Pick(Hash(1, i, 0, 0, Entry))]++
	}
	for i, p := range []float64{0.5, 0.3, 0.2, 0} {
		if tolerance := 5 * math.Sqrt(p*(1-p)/n); math.Abs(float64(counts[i])/n-p) > tolerance {
			t.Errorf("outcome %d drawn %d times of %d, want %v +- %v", i, counts[i], n, p, tolerance)
		}
	}
	if got := c.Pick(math.MaxUint64); got != 2 {
		t.Errorf("Pick of the largest hash = %d, want 2, the last of weight above 0", got)
	}
	for name, weights := range map[string][]float64{
		"none": nil, "zeros": {0, 0}, "negative": {1, -1}, "NaN": {math.NaN()}, "infinite": {math.Inf(1)},
		"overflow": {math.MaxFloat64, math.MaxFloat64},
	} {
		if _, err := NewCategorical(weights); err == nil {
			t.Errorf("%s weights %v were accepted", name, weights)
		}
	}
}
