package workload

import (
	"fmt"
	"math"

	"tokenrouter/core/keyed"
)

// Generator is a Source of generated requests. Make one with NewClosed, NewPoisson or NewGamma.
type Generator struct {
	seed    uint64
	count   uint64
	next    uint64
	lengths Lengths
	gaps    gaps
	clockNs int64
	err     error
}

// gaps is the law of the time between arrivals. A mean of 0 means no gaps: a closed loop.
type gaps struct {
	meanNs float64
	shape  float64 // of the gamma law; 1: exponential
}

// NewClosed returns count requests that all arrive at 0. The driver admits the next whenever one ends.
func NewClosed(seed, count uint64, lengths Lengths) (*Generator, error) {
	return newGenerator(seed, count, lengths, gaps{})
}

// NewPoisson returns count requests with exponential gaps: perSecond of them a second in the mean. The
// rate must lie above 0, at most MaxPerSecond, and the mean gap must fit the clock of MaxArrivalNs.
func NewPoisson(seed, count uint64, perSecond float64, lengths Lengths) (*Generator, error) {
	return NewGamma(seed, count, perSecond, 1, lengths)
}

// NewGamma returns count requests with gamma distributed gaps of mean 1/perSecond and coefficient of
// variation (standard deviation / mean) variation: 1 is Poisson, above 1 is bursty, near 0 is regular.
// The shape of the gamma law is 1 / variation^2. The variation must be 0.01 to 100.
func NewGamma(seed, count uint64, perSecond, variation float64, lengths Lengths) (*Generator, error) {
	if !(perSecond > 0 && perSecond <= MaxPerSecond) {
		return nil, fmt.Errorf("workload: arrival rate %v/s, want above 0 and at most %v", perSecond, MaxPerSecond)
	}
	if !(variation >= 0.01 && variation <= 100) {
		return nil, fmt.Errorf("workload: coefficient of variation %v, want 0.01 to 100", variation)
	}
	meanNs := 1e9 / perSecond
	if !(meanNs <= float64(MaxArrivalNs)) {
		return nil, fmt.Errorf("workload: arrival rate %v/s: mean gap of %.3g s, want at most the clock of %.3g s",
			perSecond, meanNs/1e9, float64(MaxArrivalNs)/1e9)
	}
	return newGenerator(seed, count, lengths, gaps{meanNs: meanNs, shape: 1 / (variation * variation)})
}

func newGenerator(seed, count uint64, lengths Lengths, gaps gaps) (*Generator, error) {
	if count == 0 {
		return nil, fmt.Errorf("workload: 0 requests, want at least 1")
	}
	if err := lengths.check(); err != nil {
		return nil, err
	}
	return &Generator{seed: seed, count: count, lengths: lengths, gaps: gaps}, nil
}

// Next implements Source. It ends before its count only when a request would arrive after
// MaxArrivalNs, and then Err says so.
func (g *Generator) Next() (r Request, ok bool) {
	if g.next >= g.count || g.err != nil {
		return Request{}, false
	}
	key := keyed.NewKey(g.seed, g.next)
	if !g.advance(key) {
		return Request{}, false
	}
	r = Request{
		ID:           g.next,
		ArrivalNs:    g.clockNs,
		PromptTokens: g.lengths.Prompt.Draw(key, keyed.Prompt),
		OutputTokens: g.lengths.Output.Draw(key, keyed.Length),
		MaxTokens:    g.lengths.MaxTokens,
	}
	if g.lengths.PrefixGroups > 0 {
		group := keyed.Below(key.At(0, 0, keyed.Prefix), uint64(g.lengths.PrefixGroups))
		r.PrefixGroup = uint32(group) + 1
		r.PrefixTokens = min(g.lengths.PrefixTokens, r.PromptTokens)
	}
	g.next++
	return r, true
}

// advance moves the clock to the next arrival. It reports false when that lies beyond the clock.
func (g *Generator) advance(key keyed.Key) bool {
	if g.gaps.meanNs == 0 {
		return true
	}
	gapNs := math.Round(g.gaps.draw(key))
	if !(gapNs <= float64(MaxArrivalNs)) || int64(gapNs) > MaxArrivalNs-g.clockNs {
		g.err = fmt.Errorf("workload: request %d would arrive %.3g s after the last, past the clock of %.3g s",
			g.next, gapNs/1e9, float64(MaxArrivalNs)/1e9)
		return false
	}
	g.clockNs += int64(gapNs)
	return true
}

func (g gaps) draw(key keyed.Key) float64 {
	if g.shape == 1 {
		return keyed.Exponential(key.At(0, 0, keyed.Arrival), g.meanNs)
	}
	stream := key.Stream(0, 0, keyed.Arrival)
	return keyed.Gamma(&stream, g.shape, g.meanNs/g.shape)
}

// Err returns the error that ended the generator early, or nil.
func (g *Generator) Err() error { return g.err }
