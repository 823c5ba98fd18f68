package latency

import (
	"fmt"
	"slices"
)

// Graphs says which steps an engine has captured, to replay them without launching their kernels one by one.
type Graphs uint8

const (
	// ExtendGraphs are of steps with any number of fresh tokens a row, over a grid of rows and fresh tokens.
	ExtendGraphs Graphs = iota + 1
	// DecodeGraphs are of steps that feed one token a row only.
	DecodeGraphs
	// NoGraphs: every step is launched eagerly.
	NoGraphs
)

// GraphNames are what specs call Graphs, from ExtendGraphs on.
var GraphNames = []string{"extend", "decode", "none"}

// String returns the name used in specs.
func (g Graphs) String() string {
	if g < ExtendGraphs || g > NoGraphs {
		return fmt.Sprintf("Graphs(%d)", uint8(g))
	}
	return GraphNames[g-ExtendGraphs]
}

// Launching says what the launch of a step costs besides the step. A step that is captured is padded to the
// grid and costs nothing more; any other runs as it is and is launched eagerly, kernel by kernel. Where there
// are graphs, an eager launch costs nothing either if the step was decided beside the one before
// (Shape.Ahead): the processor makes it while the device replays that. Without graphs all steps wait for it.
type Launching struct {
	Graphs Graphs
	// Captured rows and fresh tokens of a launch: rising, at least 1. nil: all. Decode graphs have no
	// fresh tokens of their own, and without graphs there is no grid; then these are not read.
	Rows, Fresh []int
	// An eager launch: nanoseconds, 0 to MaxStepNs each.
	EagerNs      int64
	EagerRowNs   int64   // a row
	EagerFreshNs float64 // a fresh token
}

// Launched is a model whose steps are captured, or cost an eager launch. Make one with NewLaunched.
type Launched struct {
	model Model
	how   Launching
}

// NewLaunched wraps a model.
func NewLaunched(model Model, how Launching) (*Launched, error) {
	if model == nil {
		return nil, fmt.Errorf("latency: launches of no model")
	}
	if how.Graphs < ExtendGraphs || how.Graphs > NoGraphs {
		return nil, fmt.Errorf("latency: launches with graphs %v, want extend, decode or none", how.Graphs)
	}
	for _, axis := range []struct {
		name   string
		points []int
	}{{"captured rows", how.Rows}, {"captured fresh tokens", how.Fresh}} {
		if axis.points == nil {
			continue
		}
		if err := checkAxis(axis.name, axis.points, 1); err != nil {
			return nil, err
		}
	}
	for _, ns := range []float64{float64(how.EagerNs), float64(how.EagerRowNs), how.EagerFreshNs} {
		if !(ns >= 0 && ns <= float64(MaxStepNs)) {
			return nil, fmt.Errorf("latency: eager launch of %v ns, want 0 to %d", ns, MaxStepNs)
		}
	}
	how.Rows, how.Fresh = slices.Clone(how.Rows), slices.Clone(how.Fresh)
	if how.Graphs == DecodeGraphs {
		how.Fresh = nil
	}
	return &Launched{model: model, how: how}, nil
}

// StepNs implements Model: the wrapped time of the captured shape, or that of the shape itself and an eager
// launch, unless that is hidden.
func (l *Launched) StepNs(s Shape) (ns int64, inRange bool) {
	padded, captured := l.captured(s)
	ns, inRange = l.model.StepNs(padded)
	if ns < 0 || captured || s.Ahead && l.how.Graphs != NoGraphs {
		return ns, inRange
	}
	eagerNs := float64(l.how.EagerNs) + float64(float64(l.how.EagerRowNs)*float64(s.Rows)) +
		float64(l.how.EagerFreshNs*float64(s.FreshTokens))
	if !(eagerNs <= float64(MaxStepNs-ns)) {
		return Refused, false
	}
	return ns + int64(eagerNs+0.5), inRange
}

// captured returns the shape that a step is padded to: a padding row feeds one token and has no context. ok
// is false for a step that is not captured, which runs as it is.
func (l *Launched) captured(s Shape) (padded Shape, ok bool) {
	if l.how.Graphs == NoGraphs || l.how.Graphs == DecodeGraphs && s.FreshTokens > s.Rows {
		return s, false
	}
	rows, fits := gridPoint(l.how.Rows, s.Rows)
	if !fits {
		return s, false
	}
	fresh, fits := gridPoint(l.how.Fresh, s.FreshTokens+rows-s.Rows)
	if !fits {
		return s, false
	}
	padded = s
	padded.Rows, padded.FreshTokens = rows, fresh
	return padded, true
}

// gridPoint returns the first point of an axis that is at least n; n itself if there is no axis.
func gridPoint(axis []int, n int) (point int, ok bool) {
	if axis == nil {
		return n, true
	}
	i, _ := slices.BinarySearch(axis, n)
	if i == len(axis) {
		return 0, false
	}
	return axis[i], true
}

// Unwrap returns the wrapped model.
func (l *Launched) Unwrap() Model { return l.model }

// CountsFresh reports whether the launch of a step depends on its fresh tokens beyond what the wrapped
// model makes of them.
func (l *Launched) CountsFresh() bool {
	return l.how.EagerFreshNs > 0 || l.how.Graphs == DecodeGraphs ||
		l.how.Graphs == ExtendGraphs && l.how.Fresh != nil
}
