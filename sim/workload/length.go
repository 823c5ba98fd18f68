package workload

import (
	"fmt"
	"math"
	"slices"

	"tokenrouter/core/keyed"
)

// Length is a distribution of token counts. It is a value made by Fixed, Uniform, Geometric, Lognormal
// or Empirical; every draw lies in its bounds and is at least 1. The zero Length is none.
type Length struct {
	kind     lengthKind
	min, max int32
	mean     float64 // of the unbounded law: geometric
	mu       float64 // lognormal
	sigma    float64 // lognormal
	values   []int32 // empirical
}

type lengthKind uint8

const (
	lengthFixed lengthKind = iota + 1
	lengthUniform
	lengthGeometric
	lengthLognormal
	lengthEmpirical
)

// Fixed is the same length always, at least 1.
func Fixed(tokens int32) (Length, error) {
	if tokens < 1 {
		return Length{}, fmt.Errorf("workload: fixed length %d, want at least 1", tokens)
	}
	return Length{kind: lengthFixed, min: tokens, max: tokens}, nil
}

// Uniform is every length from least to greatest with equal chance.
func Uniform(least, greatest int32) (Length, error) {
	if err := checkBounds("uniform", least, greatest); err != nil {
		return Length{}, err
	}
	return Length{kind: lengthUniform, min: least, max: greatest}, nil
}

// Geometric is the length of an output that ends after each token with chance 1/mean. A draw outside
// least to greatest is moved to the nearer of them, so with narrow bounds the mean is another.
func Geometric(mean float64, least, greatest int32) (Length, error) {
	if err := checkBounds("geometric", least, greatest); err != nil {
		return Length{}, err
	}
	if !(mean >= 1 && mean <= math.MaxInt32) {
		return Length{}, fmt.Errorf("workload: geometric mean %v, want 1 to %d", mean, math.MaxInt32)
	}
	return Length{kind: lengthGeometric, mean: mean, min: least, max: greatest}, nil
}

// LognormalMedian is a lognormal length by its median and sigma, the standard deviation of the
// logarithm. A draw outside least to greatest is moved to the nearer of them.
func LognormalMedian(median, sigma float64, least, greatest int32) (Length, error) {
	if !(median >= 1 && median <= math.MaxInt32) {
		return Length{}, fmt.Errorf("workload: lognormal median %v, want 1 to %d", median, math.MaxInt32)
	}
	return lognormal(math.Log(median), sigma, least, greatest)
}

// LognormalMean is a lognormal length by its mean (before bounds) and sigma, the standard deviation of
// the logarithm. A draw outside least to greatest is moved to the nearer of them.
func LognormalMean(mean, sigma float64, least, greatest int32) (Length, error) {
	if !(mean >= 1 && mean <= math.MaxInt32) {
		return Length{}, fmt.Errorf("workload: lognormal mean %v, want 1 to %d", mean, math.MaxInt32)
	}
	return lognormal(math.Log(mean)-sigma*sigma/2, sigma, least, greatest)
}

func lognormal(mu, sigma float64, least, greatest int32) (Length, error) {
	if err := checkBounds("lognormal", least, greatest); err != nil {
		return Length{}, err
	}
	if !(sigma >= 0 && sigma <= 10) {
		return Length{}, fmt.Errorf("workload: lognormal sigma %v, want 0 to 10", sigma)
	}
	return Length{kind: lengthLognormal, mu: mu, sigma: sigma, min: least, max: greatest}, nil
}

// Empirical is one of the given lengths with equal chance each; repeat one to weigh it. The list is
// copied.
func Empirical(values []int32) (Length, error) {
	if len(values) == 0 {
		return Length{}, fmt.Errorf("workload: empirical lengths: none given, want at least 1")
	}
	for i, value := range values {
		if value < 1 {
			return Length{}, fmt.Errorf("workload: empirical length[%d] = %d, want at least 1", i, value)
		}
	}
	return Length{
		kind: lengthEmpirical, min: slices.Min(values), max: slices.Max(values), values: slices.Clone(values),
	}, nil
}

func checkBounds(name string, least, greatest int32) error {
	if least < 1 || greatest < least {
		return fmt.Errorf("workload: %s length from %d to %d, want 1 <= least <= greatest", name, least, greatest)
	}
	return nil
}

// Draw returns the length that belongs to a request, named by its key and the purpose (keyed.Prompt or
// keyed.Length). The zero Length gives 0.
func (l Length) Draw(key keyed.Key, purpose keyed.Purpose) int32 {
	if l.kind == 0 || l.kind == lengthFixed {
		return l.min
	}
	return l.of(key.At(0, 0, purpose))
}

// of is the length that belongs to uniform bits.
func (l Length) of(bits uint64) int32 {
	switch l.kind {
	case 0, lengthFixed:
		return l.min
	case lengthUniform:
		return l.min + int32(keyed.Below(bits, uint64(l.max-l.min)+1))
	case lengthGeometric:
		return l.bound(float64(keyed.Geometric(bits, 1/l.mean)))
	case lengthLognormal:
		return l.bound(math.Round(keyed.Lognormal(bits, l.mu, l.sigma)))
	case lengthEmpirical:
		return l.values[keyed.Below(bits, uint64(len(l.values)))]
	default:
		panic(fmt.Sprintf("workload: unknown length kind %d", l.kind))
	}
}

// Mean is the mean length, of lengths above limit taken as limit; 0 for the zero Length. It is that of 65,536
// evenly spread draws, and so exact but for the last thousandth of laws with a long tail.
func (l Length) Mean(limit int32) float64 {
	const draws = 1 << 16
	sum := 0.0
	for i := range uint64(draws) {
		sum += float64(min(l.of(i<<48|1<<47), limit))
	}
	return sum / draws
}

// bound moves a draw into the bounds. It compares as floats, since a draw may exceed any integer.
func (l Length) bound(tokens float64) int32 {
	return int32(min(max(tokens, float64(l.min)), float64(l.max)))
}

// Bounds returns the least and greatest length that can be drawn; 0, 0 for the zero Length.
func (l Length) Bounds() (least, greatest int32) { return l.min, l.max }
