package twin

import (
	"fmt"
	"math"

	"tokenrouter/core"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome/trace"
)

// Law is the step time of one model as a run showed it.
type Law struct {
	latency.Fit         // of steps alone, in the time of the scheduler: bookkeeping included
	Beside      float64 // how much longer steps take while another model has a pass in flight, at least 1
}

// Laws fits a law to the steps of each model. Steps of one shape differ: laws are of means, for means are
// what adds up to the time of a run. A model that had no step has a law of 1 ns, which nobody asks for.
func Laws(steps []trace.Step, models int) ([]Law, error) {
	laws := make([]Law, models)
	for m := range laws {
		var own []trace.Step
		for _, s := range steps {
			if s.Model == m {
				own = append(own, s)
			}
		}
		var err error
		if laws[m], err = law(own); err != nil {
			return nil, fmt.Errorf("steps of model %d: %w", m, err)
		}
	}
	return laws, nil
}

// law tries factors: for each, what a step would have taken alone follows, and a law of that; the factor with
// the least squares of relative errors counts.
func law(steps []trace.Step) (best Law, err error) {
	if len(steps) == 0 {
		return Law{Fit: latency.Fit{Coefficients: latency.Coefficients{BaseNs: 1}}, Beside: 1}, nil
	}
	const most, finest = 3.0, 0.005
	low, high := 1.0, most
	least := math.Inf(1)
	for stride := (high - low) / 16; stride >= finest; stride /= 4 {
		for beside := low; beside <= high+stride/2; beside += stride {
			l, squares, err := lawBeside(steps, beside)
			if err != nil {
				return best, err
			}
			if squares < least {
				best, least = l, squares
			}
		}
		low, high = max(best.Beside-stride, 1), best.Beside+stride
	}
	return best, nil
}

// lawBeside fits the law of steps alone if others make them longer by the factor.
func lawBeside(steps []trace.Step, beside float64) (l Law, squares float64, err error) {
	points := cells(steps, beside)
	l.Beside = beside
	if len(points) == 1 {
		l.Fit = latency.Fit{Coefficients: latency.Coefficients{BaseNs: float64(points[0].Ns)}}
	} else if l.Fit, err = latency.FitRelative(points, latency.NonNegative); err != nil {
		return l, 0, err
	}
	law, err := latency.NewAffine(l.Coefficients)
	if err != nil {
		return l, 0, err
	}
	measured, fitted := 0.0, 0.0
	for i := range steps {
		ns, _ := law.StepNs(shape(&steps[i]))
		took := alone(&steps[i], beside)
		measured += took
		fitted += float64(ns)
	}
	scale := measured / fitted
	l.scale(scale)
	for i := range steps {
		ns, _ := law.StepNs(shape(&steps[i]))
		miss := float64(ns)*scale/alone(&steps[i], beside) - 1
		squares += miss * miss
	}
	return l, squares, nil
}

// scale multiplies the law, so that the times of all steps add up to what was measured.
func (l *Law) scale(by float64) {
	for _, ns := range []*float64{&l.BaseNs, &l.PerRowNs, &l.PerFreshNs, &l.PerBlockNs, &l.PerContextNs} {
		*ns *= by
	}
}

// alone is what a step would have taken if no other model had been running.
func alone(s *trace.Step, beside float64) float64 {
	return float64(s.Ns-s.BesideNs) + float64(s.BesideNs)/beside
}

func shape(s *trace.Step) latency.Shape {
	return latency.Shape{Rows: s.Rows, FreshTokens: s.Fresh, ContextTokens: s.Context, Returns: s.Returns}
}

// cells are mean times of steps that are nearly alike: of the same rows and fresh tokens, and of contexts
// between two powers of 2.
func cells(steps []trace.Step, beside float64) []latency.Point {
	type cell struct{ rows, fresh, context int }
	type sum struct {
		ns, context float64
		count       int
	}
	sums := make(map[cell]*sum)
	var order []cell
	for i := range steps {
		s := &steps[i]
		c := cell{s.Rows, s.Fresh, int(math.Log2(float64(s.Context + 1)))}
		if sums[c] == nil {
			sums[c] = &sum{}
			order = append(order, c)
		}
		sums[c].ns += alone(s, beside)
		sums[c].context += float64(s.Context)
		sums[c].count++
	}
	var points []latency.Point
	for _, c := range order {
		of := sums[c]
		points = append(points, latency.Point{
			Shape: latency.Shape{
				Rows: c.rows, FreshTokens: c.fresh, ContextTokens: int(of.context/float64(of.count) + 0.5),
			},
			Ns: max(core.Time(of.ns/float64(of.count)+0.5), 1),
		})
	}
	return points
}
