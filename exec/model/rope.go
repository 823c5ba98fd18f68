package model

import (
	"fmt"
	"math"
)

// RopeScaling says how rotary positions are stretched to longer contexts.
type RopeScaling int

// The kinds of scaling that are supported.
const (
	RopeUnscaled RopeScaling = iota + 1
	RopeLlama3               // by wavelength, as Llama 3.1
	RopeYaRN                 // YaRN, arXiv 2309.00071
)

func (s RopeScaling) String() string {
	switch s {
	case RopeUnscaled:
		return "default"
	case RopeLlama3:
		return "llama3"
	case RopeYaRN:
		return "yarn"
	}
	panic(fmt.Sprintf("model: no RoPE scaling %d", int(s)))
}

// Rope is the rotary position embedding.
type Rope struct {
	Theta             float64 // base of the frequencies
	Scaling           RopeScaling
	Factor            float64 // how much longer contexts become; llama3 and yarn
	OriginalPositions int     // context of the pretraining; llama3 and yarn
	LowFactor         float64 // low_freq_factor; llama3
	HighFactor        float64 // high_freq_factor; llama3
	BetaFast          float64 // turns over the original context above which nothing is scaled; yarn
	BetaSlow          float64 // turns below which all is scaled; yarn
	Truncate          bool    // the range of the ramp is widened to whole pairs; yarn
	AttentionFactor   float64 // both cosine and sine are multiplied by it; 1 but for yarn
}

// ropeOf reads rope_theta and rope_scaling, or rope_parameters, which newer files have for both.
func ropeOf(c *reader) Rope {
	from, theta := c.object("rope_scaling"), c.numberOr("rope_theta", 10000)
	if parameters := c.object("rope_parameters"); parameters != nil {
		if from != nil {
			c.fail("rope_parameters", "stands beside rope_scaling, want one of them")
		}
		from = parameters
		if c.has("rope_theta") && theta != parameters.numberOr("rope_theta", theta) {
			c.fail("rope_parameters", "has another rope_theta than %v", theta)
		}
		theta = parameters.numberOr("rope_theta", theta)
		if parameters.numberOr("partial_rotary_factor", 1) != 1 {
			parameters.wrong("partial_rotary_factor", "1: others are not supported")
		}
		delete(parameters.values, "rope_theta")
		delete(parameters.values, "partial_rotary_factor")
	}
	if theta <= 1 {
		c.fail("rope_theta", "= %v, want above 1", theta)
	}
	rope := Rope{Theta: theta, Scaling: RopeUnscaled, AttentionFactor: 1}
	if from == nil {
		return rope
	}
	kind := from.text("rope_type")
	if from.has("type") {
		old := from.text("type")
		if kind != "" && kind != old {
			from.fail("type", "= %q and rope_type = %q, want one of them", old, kind)
		}
		kind = old
	}
	delete(from.values, "type")
	delete(from.values, "rope_type")
	rope.scale(from, kind)
	if c.err == nil {
		c.err = from.err
	}
	return rope
}

// scale reads the keys of one kind of scaling.
func (rope *Rope) scale(from *reader, kind string) {
	switch kind {
	case "default":
		from.only()
	case "llama3":
		rope.Scaling = RopeLlama3
		rope.Factor = from.number("factor")
		rope.OriginalPositions = from.whole("original_max_position_embeddings", 1, positionsMax)
		rope.LowFactor = from.number("low_freq_factor")
		rope.HighFactor = from.number("high_freq_factor")
		if from.err == nil && rope.LowFactor >= rope.HighFactor {
			from.wrong("low_freq_factor", fmt.Sprintf("below the high_freq_factor %v", rope.HighFactor))
		}
		from.only("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor")
	case "yarn":
		rope.Scaling = RopeYaRN
		rope.Factor = from.number("factor")
		rope.OriginalPositions = from.whole("original_max_position_embeddings", 1, positionsMax)
		rope.BetaFast, rope.BetaSlow = from.numberOr("beta_fast", 32), from.numberOr("beta_slow", 1)
		rope.Truncate = from.flagOr("truncate", true)
		rope.AttentionFactor = yarnAttention(from, rope.Factor)
		if from.err == nil && rope.BetaFast < rope.BetaSlow {
			from.fail("beta_fast", "= %v, want at least the beta_slow %v", rope.BetaFast, rope.BetaSlow)
		}
		from.only("factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "truncate",
			"attention_factor", "mscale", "mscale_all_dim")
	case "":
		from.fail("rope_type", "is missing")
	default:
		from.fail("rope_type", "= %q is not supported, want default, llama3 or yarn", kind)
	}
}

// yarnAttention is attention_factor, or what follows from factor and the two mscales if it is absent.
func yarnAttention(from *reader, factor float64) float64 {
	stretch := func(mscale float64) float64 {
		if factor <= 1 {
			return 1
		}
		return 0.1*mscale*math.Log(factor) + 1
	}
	attention := stretch(1)
	if from.has("mscale") && from.has("mscale_all_dim") {
		attention = stretch(from.number("mscale")) / stretch(from.number("mscale_all_dim"))
	}
	return from.numberOr("attention_factor", attention)
}

// InverseFrequencies returns the angle, in radians a position, by which each pair of a head of headDim
// numbers turns: headDim/2 values, the fastest first. Pair i is numbers i and i+headDim/2.
//
// The formulas are those of Hugging Face transformers 5.24, modeling_rope_utils.py: llama3 leaves wavelengths
// below OriginalPositions/HighFactor, divides those above OriginalPositions/LowFactor by Factor and blends
// between; yarn blends over the pairs whose turns in the original context lie between BetaSlow and BetaFast.
func (rope Rope) InverseFrequencies(headDim int) []float64 {
	inverse := make([]float64, headDim/2)
	for i := range inverse {
		inverse[i] = math.Pow(rope.Theta, -2*float64(i)/float64(headDim))
	}
	switch rope.Scaling {
	case RopeUnscaled:
	case RopeLlama3:
		for i, w := range inverse {
			turns := float64(rope.OriginalPositions) * w / (2 * math.Pi)
			kept := (turns - rope.LowFactor) / (rope.HighFactor - rope.LowFactor)
			inverse[i] = blend(w/rope.Factor, w, kept)
		}
	case RopeYaRN:
		low, high := rope.ramp(headDim)
		for i, w := range inverse {
			inverse[i] = blend(w, w/rope.Factor, (float64(i)-low)/(high-low))
		}
	default:
		panic(fmt.Sprintf("model: no RoPE scaling %d", int(rope.Scaling)))
	}
	return inverse
}

// ramp returns the pairs at which yarn begins to scale and from which it scales in full.
func (rope Rope) ramp(headDim int) (low, high float64) {
	pair := func(turns float64) float64 {
		return float64(headDim) * math.Log(float64(rope.OriginalPositions)/(turns*2*math.Pi)) /
			(2 * math.Log(rope.Theta))
	}
	low, high = pair(rope.BetaFast), pair(rope.BetaSlow)
	if rope.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(headDim-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

// blend goes from a at 0 to b at 1 and stays there beyond.
func blend(a, b, at float64) float64 {
	at = min(max(at, 0), 1)
	return a*(1-at) + b*at
}
