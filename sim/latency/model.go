package latency

import (
	"fmt"
)

// Shape is what the time of one forward pass depends on.
type Shape struct {
	Rows          int // requests in the launch, at least 1
	FreshTokens   int // tokens fed, summed over rows; at least Rows
	ContextTokens int // tokens already in KV, summed over rows
	Returns       int // rows that begin a call: by a hand-off, or every row of an engine of one token a call
	ReturnTokens  int // tokens of those rows, fed and in KV; only if CountsReturnTokens says so
	// Ahead: the step follows at once on another, beside which it was decided, and launched where that can be.
	Ahead bool
}

// Model is a step-time model.
type Model interface {
	// StepNs returns the time of one forward pass in nanoseconds. inRange is false when the model was
	// not calibrated for the shape. Then ns is the time of the nearest calibrated shape, or Refused when
	// the model has no answer: the caller must end the run with OutOfRangeError.
	StepNs(s Shape) (ns int64, inRange bool)
}

const (
	// Refused is the time of a model that has no answer for a shape.
	Refused int64 = -1
	// MaxStepNs is the longest step, 2^53 ns or about 104 days. A model that would exceed it refuses.
	MaxStepNs int64 = 1 << 53
	// BesideMax is the most that a step may be longer beside other models than alone, as a factor.
	BesideMax = 1000
)

// Outside says what a calibrated model does outside its range.
type Outside uint8

const (
	// Refuse answers Refused.
	Refuse Outside = iota + 1
	// Clamp answers for the nearest shape inside the range.
	Clamp
)

// String returns the name used in specs.
func (o Outside) String() string {
	switch o {
	case Refuse:
		return "refuse"
	case Clamp:
		return "clamp"
	default:
		return fmt.Sprintf("Outside(%d)", uint8(o))
	}
}

// ParseOutside reads the name used in specs: "refuse" or "clamp".
func ParseOutside(name string) (Outside, error) {
	switch name {
	case "refuse":
		return Refuse, nil
	case "clamp":
		return Clamp, nil
	default:
		return 0, fmt.Errorf("latency: outside = %q, want \"refuse\" or \"clamp\"", name)
	}
}

// Constant is a step time in nanoseconds that does not depend on the shape. Make one with NewConstant,
// which checks it.
type Constant int64

// NewConstant returns a Constant of 1 to MaxStepNs nanoseconds.
func NewConstant(stepNs int64) (Constant, error) {
	if stepNs < 1 || stepNs > MaxStepNs {
		return 0, fmt.Errorf("latency: constant step of %d ns, want 1 to %d", stepNs, MaxStepNs)
	}
	return Constant(stepNs), nil
}

// StepNs returns the constant; every shape is in range. A value that NewConstant would not make is Refused.
func (c Constant) StepNs(Shape) (ns int64, inRange bool) {
	if c < 1 || int64(c) > MaxStepNs {
		return Refused, false
	}
	return int64(c), true
}

// ConstantNs returns the step time of a model that does not depend on the shape, so that a hot loop
// need not call it. ok is false for every other model, and for one that refuses.
func ConstantNs(m Model) (ns int64, ok bool) {
	switch m := m.(type) {
	case Constant:
		return m.StepNs(Shape{})
	case *Overhead:
		if _, ok := ConstantNs(m.model); ok && !CountsReturns(m) && m.host.RowNs == 0 {
			return m.StepNs(Shape{})
		}
		return 0, false
	default:
		return 0, false
	}
}

// Coefficients are the terms of an affine step time, in nanoseconds. Fractions are kept, since a
// token of context costs less than a nanosecond on large devices.
type Coefficients struct {
	BaseNs       float64 // a launch
	PerRowNs     float64 // a row
	PerFreshNs   float64 // a token fed
	PerBlockNs   float64 // every block of tokens fed after the first
	PerContextNs float64 // a token already in KV
	BlockTokens  int     // of a block; 0: the constant BlockTokens
}

// BlockTokens is how many fresh tokens make a block, if nothing else is said: what matrix units take at a
// time, as a rule. A step that is bound by reading weights costs the same for any part of a block.
const BlockTokens = 32

// blocks counts the blocks of fresh tokens after the first.
func (s Shape) blocks(tokens int) float64 {
	if tokens == 0 {
		tokens = BlockTokens
	}
	return float64(max(s.FreshTokens-1, 0) / tokens)
}

// at returns the affine value. The conversions keep compilers from fusing multiply and add, so that
// every architecture rounds alike.
func (c Coefficients) at(s Shape) float64 {
	return c.BaseNs + float64(c.PerRowNs*float64(s.Rows)) + float64(c.PerFreshNs*float64(s.FreshTokens)) +
		float64(c.PerBlockNs*s.blocks(c.BlockTokens)) + float64(c.PerContextNs*float64(s.ContextTokens))
}

func (c Coefficients) check() error {
	terms := [...]struct {
		name string
		ns   float64
	}{
		{"base", c.BaseNs}, {"per row", c.PerRowNs}, {"per fresh token", c.PerFreshNs},
		{"per block", c.PerBlockNs}, {"per context token", c.PerContextNs},
	}
	sum := 0.0
	for _, term := range terms {
		if !(term.ns >= 0 && term.ns <= float64(MaxStepNs)) {
			return fmt.Errorf("latency: affine %s = %v ns, want 0 to %d", term.name, term.ns, MaxStepNs)
		}
		sum += term.ns
	}
	if c.BlockTokens < 0 {
		return fmt.Errorf("latency: affine with blocks of %d tokens, want at least 1, or 0 for %d", c.BlockTokens,
			BlockTokens)
	}
	if sum == 0 {
		return fmt.Errorf("latency: affine with all terms 0, want at least one above 0")
	}
	return nil
}

// Affine is base + perRow*rows + perFresh*fresh + perBlock*blocks + perContext*context, rounded to whole
// nanoseconds and at least 1. Make one with NewAffine.
type Affine struct {
	coefficients Coefficients
	valid        Range
	outside      Outside
	bounded      bool
}

// NewAffine returns an affine model that is valid everywhere. Every term must be finite and at least 0
// and one must be above 0: a negative term gives negative times somewhere.
func NewAffine(c Coefficients) (*Affine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &Affine{coefficients: c, outside: Clamp}, nil
}

// NewAffineWithin returns an affine model that is valid in a range, for coefficients that come from a
// calibration.
func NewAffineWithin(c Coefficients, valid Range, outside Outside) (*Affine, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := valid.check(); err != nil {
		return nil, err
	}
	if outside != Refuse && outside != Clamp {
		return nil, fmt.Errorf("latency: affine with outside = %v, want refuse or clamp", outside)
	}
	return &Affine{coefficients: c, valid: valid, outside: outside, bounded: true}, nil
}

// Coefficients returns the terms of the model.
func (a *Affine) Coefficients() Coefficients { return a.coefficients }

// ValidRange returns the calibrated range, or ok = false when the model is valid everywhere.
func (a *Affine) ValidRange() (valid Range, ok bool) { return a.valid, a.bounded }

// StepNs implements Model. A time above MaxStepNs is Refused.
func (a *Affine) StepNs(s Shape) (ns int64, inRange bool) {
	inRange = true
	if a.bounded && !a.valid.holds(&s) {
		if a.outside == Refuse {
			return Refused, false
		}
		s, inRange = a.valid.nearest(s), false
	}
	return wholeNs(a.coefficients.at(s), inRange)
}

// wholeNs rounds a positive time to whole nanoseconds, at least 1, and refuses what is too long.
func wholeNs(ns float64, inRange bool) (int64, bool) {
	if !(ns <= float64(MaxStepNs)) {
		return Refused, false
	}
	return max(int64(ns+0.5), 1), inRange
}
