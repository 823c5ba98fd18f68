package exec

import "fmt"

// Sampling says how the tokens of a request are drawn. The zero value, like a nil *Sampling, takes the most
// likely one each time.
type Sampling struct {
	Temperature float64 // 0: the most likely token; else SamplingTemperatureMin to SamplingTemperatureMax
	TopK        int     // draws from so many most likely tokens; 0: from all
	TopP        float64 // from the fewest most likely tokens of this probability in all; 0 and 1: from all
	MinP        float64 // from tokens at least so likely, as a share of the most likely one's; 0: from all

	// Penalties are subtracted from logits of tokens that the answer has: one once, the other for each time
	// (the definitions of OpenAI's API). The prompt does not count.
	PresencePenalty, FrequencyPenalty float64
	Bias                              []TokenBias // added to logits; a token that a model lacks is passed over

	// Seed makes the draws a function of itself and the position in the answer alone, whatever runs beside.
	// nil: of the run's seed and the request's ID.
	Seed      *uint64
	IgnoreEOS bool
	// Top is how many of the most likely tokens a Detailer is told of with each token; 0: it is told nothing.
	Top int
}

// TokenBias is added to the logit of a token before one is drawn.
type TokenBias struct {
	Token int32
	Bias  float64
}

// What a Sampling may ask for.
const (
	SamplingTemperatureMin = 1e-6
	SamplingTemperatureMax = 100
	SamplingPenaltyMax     = 100 // and bias, to either side
	SamplingBiasesMax      = 1024
	SamplingTopMax         = 20 // as OpenAI's API
)

// Validate refuses what is out of bounds, naming it.
func (s *Sampling) Validate() error {
	for _, f := range []struct {
		name            string
		value, min, max float64
	}{
		{"temperature", s.Temperature, 0, SamplingTemperatureMax},
		{"top_k", float64(s.TopK), 0, 1 << 30},
		{"top_p", s.TopP, 0, 1},
		{"min_p", s.MinP, 0, 1},
		{"presence_penalty", s.PresencePenalty, -SamplingPenaltyMax, SamplingPenaltyMax},
		{"frequency_penalty", s.FrequencyPenalty, -SamplingPenaltyMax, SamplingPenaltyMax},
		{"number of biases", float64(len(s.Bias)), 0, SamplingBiasesMax},
		{"top", float64(s.Top), 0, SamplingTopMax},
	} {
		if !(f.value >= f.min && f.value <= f.max) {
			return fmt.Errorf("%s = %v, want %v to %v", f.name, f.value, f.min, f.max)
		}
	}
	if s.Temperature > 0 && s.Temperature < SamplingTemperatureMin {
		return fmt.Errorf("temperature = %v, want 0 or at least %v", s.Temperature, SamplingTemperatureMin)
	}
	for _, b := range s.Bias {
		if !(b.Bias >= -SamplingPenaltyMax && b.Bias <= SamplingPenaltyMax) || b.Token < 0 {
			return fmt.Errorf("bias of token %d = %v, want %d to %d of a token from 0", b.Token, b.Bias,
				-SamplingPenaltyMax, SamplingPenaltyMax)
		}
	}
	return nil
}

// Candidate is one of the most likely tokens at a place.
type Candidate struct {
	Token   int32
	LogProb float32 // natural log, of the distribution before temperature, penalties and biases
}

// Detail is what a device said of a token beside what core.Token has: the signals of core.Result, and the
// most likely tokens at its place, the most likely first.
type Detail struct {
	TopProb float32
	Score   float64
	Entropy float64
	Top     []Candidate
	// Draft is the Score of the draft that was dropped in favour of the token, nil if none was.
	Draft *float64
}

// Detailer is a Sink that is also told details, of requests whose Sampling.Top is not 0.
type Detailer interface {
	Sink
	// Detail is told right before the token that it is of.
	Detail(*Detail)
}
