package latency

import (
	"fmt"
	"math"
	"slices"
)

// Overhead adds host time to a model: a fixed time a step and a time for every row that came by a
// hand-off (matching, locking and cache updates, in systems that treat a return as a new request).
type Overhead struct {
	model             Model
	stepNs, handoffNs int64
}

// NewOverhead wraps a model. Both times are nanoseconds, 0 to MaxStepNs.
func NewOverhead(model Model, stepNs, handoffNs int64) (*Overhead, error) {
	if model == nil {
		return nil, fmt.Errorf("latency: overhead around no model")
	}
	if stepNs < 0 || stepNs > MaxStepNs {
		return nil, fmt.Errorf("latency: host overhead of %d ns a step, want 0 to %d", stepNs, MaxStepNs)
	}
	if handoffNs < 0 || handoffNs > MaxStepNs {
		return nil, fmt.Errorf("latency: host overhead of %d ns a hand-off, want 0 to %d", handoffNs, MaxStepNs)
	}
	return &Overhead{model: model, stepNs: stepNs, handoffNs: handoffNs}, nil
}

// StepNs implements Model: the wrapped time + stepNs + Returns * handoffNs.
func (o *Overhead) StepNs(s Shape) (ns int64, inRange bool) {
	ns, inRange = o.model.StepNs(s)
	if ns < 0 {
		return ns, inRange
	}
	if o.handoffNs > 0 && int64(s.Returns) > MaxStepNs/o.handoffNs {
		return Refused, false
	}
	ns += o.stepNs + int64(s.Returns)*o.handoffNs
	if ns > MaxStepNs {
		return Refused, false
	}
	return ns, inRange
}

// Unwrap returns the wrapped model.
func (o *Overhead) Unwrap() Model { return o.model }

// Padded rounds the rows of a launch up to captured batch sizes, as graph replay does. A padding row
// feeds one token and has no context. A launch larger than the largest size runs as it is.
type Padded struct {
	model   Model
	buckets []int
}

// NewPadded wraps a model. Buckets are row counts, at least one, rising and above 0.
func NewPadded(model Model, buckets []int) (*Padded, error) {
	if model == nil {
		return nil, fmt.Errorf("latency: padding around no model")
	}
	if err := checkAxis("padding buckets", buckets, 1); err != nil {
		return nil, err
	}
	return &Padded{model: model, buckets: slices.Clone(buckets)}, nil
}

// StepNs implements Model: the wrapped time of the padded shape.
func (p *Padded) StepNs(s Shape) (ns int64, inRange bool) { return p.model.StepNs(p.innerShape(s)) }

// Unwrap returns the wrapped model.
func (p *Padded) Unwrap() Model { return p.model }

func (p *Padded) innerShape(s Shape) Shape {
	i, _ := slices.BinarySearch(p.buckets, s.Rows)
	if i < len(p.buckets) {
		padding := p.buckets[i] - s.Rows
		s.Rows += padding
		s.FreshTokens += padding
	}
	return s
}

// Link is a path between nodes or processes: a fixed latency and a bandwidth. Make one with NewLink.
// The zero Link takes no time.
type Link struct {
	latencyNs      int64
	bytesPerSecond float64
}

// NewLink returns a link of a latency in nanoseconds, 0 to MaxStepNs, and a bandwidth in bytes a second
// above 0; math.Inf(1) means that size does not matter.
func NewLink(latencyNs int64, bytesPerSecond float64) (Link, error) {
	if latencyNs < 0 || latencyNs > MaxStepNs {
		return Link{}, fmt.Errorf("latency: link latency of %d ns, want 0 to %d", latencyNs, MaxStepNs)
	}
	if !(bytesPerSecond > 0) {
		return Link{}, fmt.Errorf("latency: link bandwidth of %v bytes/s, want above 0", bytesPerSecond)
	}
	return Link{latencyNs: latencyNs, bytesPerSecond: bytesPerSecond}, nil
}

// TransferNs returns the time of a message of some bytes: latency + bytes / bandwidth, rounded up. It
// saturates at MaxStepNs and panics when bytes is negative.
func (l Link) TransferNs(bytes int64) int64 {
	if bytes < 0 {
		panic(fmt.Sprintf("latency: transfer of %d bytes", bytes))
	}
	if bytes == 0 || l.bytesPerSecond == 0 {
		return l.latencyNs
	}
	ns := math.Ceil(float64(bytes) * 1e9 / l.bytesPerSecond)
	if !(ns < float64(MaxStepNs-l.latencyNs)) {
		return MaxStepNs
	}
	return l.latencyNs + int64(ns)
}
