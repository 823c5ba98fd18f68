package calibrate

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"tokenrouter/exec/native"
)

// Probe tells how fast the machine is right now, by steps of a fixed shape: of the models in turn, and of all
// at the same time. Each takes about probeNs, or as long as probeSteps of every model.
type Probe struct {
	steppers []*stepper
	shape    Shape
}

const (
	probeNs    = 60 * time.Millisecond
	probeSteps = 3
)

// Speed is how long the steps of a probe take, in the mean of each model: alone, and while the others run.
type Speed struct {
	AloneNs  []float64 `json:"alone_ns"`
	BesideNs []float64 `json:"beside_ns"` // empty if there are no others
}

// NewProbe makes a probe whose steps have the shape. The models must not be in use while one runs, nor is
// anything left of what their KV held.
func NewProbe(models []*native.Model, shape Shape) *Probe {
	p := &Probe{shape: shape}
	for _, m := range models {
		p.steppers = append(p.steppers, newStepper(m))
	}
	return p
}

// Run probes the machine. It ends early with the error of ctx.
func (p *Probe) Run(ctx context.Context) (Speed, error) {
	for _, s := range p.steppers {
		if err := s.prepare(p.shape); err != nil { // whoever used the model had other pages
			return Speed{}, err
		}
	}
	alone, err := meanNs(ctx, p.steppers)
	if err != nil || len(p.steppers) == 1 {
		return Speed{AloneNs: alone}, err
	}
	beside := make([]float64, len(p.steppers))
	problems := make([]error, len(p.steppers))
	var group sync.WaitGroup
	for i, s := range p.steppers {
		group.Go(func() {
			var mean []float64
			if mean, problems[i] = meanNs(ctx, []*stepper{s}); problems[i] == nil {
				beside[i] = mean[0]
			}
		})
	}
	group.Wait()
	return Speed{alone, beside}, errors.Join(problems...)
}

// meanNs runs prepared steps in turn for probeNs, at least probeSteps times each, after one that does not
// count.
func meanNs(ctx context.Context, steppers []*stepper) ([]float64, error) {
	sums, all := make([]time.Duration, len(steppers)), time.Duration(0)
	for n := 0; ; n++ {
		for i, s := range steppers {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took, err := s.step()
			if err != nil {
				return nil, err
			}
			if n > 0 {
				sums[i] += took
				all += took
			}
		}
		if n >= probeSteps && all >= probeNs {
			means := make([]float64, len(steppers))
			for i := range sums {
				means[i] = float64(sums[i].Nanoseconds()) / float64(n)
			}
			return means, nil
		}
	}
}

// Ratio is how much longer the steps of s take than those of a reference with the same models: of the model
// for which that is farthest from 1, the geometric mean of alone and beside.
func (s Speed) Ratio(reference Speed) float64 {
	farthest := 0.0 // logarithm
	for i, ns := range s.AloneNs {
		far := math.Log(ns / reference.AloneNs[i])
		if s.BesideNs != nil {
			far = (far + math.Log(s.BesideNs[i]/reference.BesideNs[i])) / 2
		}
		if math.Abs(far) > math.Abs(farthest) {
			farthest = far
		}
	}
	return math.Exp(farthest)
}

// MeanSpeed is the mean of some speeds of the same models, at least one.
func MeanSpeed(speeds []Speed) Speed {
	mean := func(of func(Speed) []float64) []float64 {
		out := make([]float64, len(of(speeds[0])))
		for _, s := range speeds {
			for i, ns := range of(s) {
				out[i] += ns / float64(len(speeds))
			}
		}
		return out
	}
	return Speed{
		AloneNs:  mean(func(s Speed) []float64 { return s.AloneNs }),
		BesideNs: mean(func(s Speed) []float64 { return s.BesideNs }),
	}
}
