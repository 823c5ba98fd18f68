package calibrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tokenrouter/exec/native"
)

// Sample is one measured step.
type Sample struct {
	Model  string
	Beside bool // the other models were running steps of their own all the time; else in turn with it
	Shape  Shape
	StepNs int64
}

// Plan says what is measured.
type Plan struct {
	Shapes []Shape
	// Rounds is how often the grid is walked: a machine that is slow for a while then spoils a few samples of
	// every shape, not all samples of some.
	Rounds int
	// Steps of a shape in a round, after one that does not count.
	Steps int
	// Neighbour is what the other models run while a model is measured beside them, or in turn with it.
	Neighbour Shape
	// Done, if set, is told how many steps have been measured, of how many.
	Done func(steps, total int)
}

// Measure times steps of every model, each alone and, if there are others, beside them. Alone means in turn
// with a step of each other model, as it comes in a run: a model that has just read its weights finds more of
// them in a cache than it will then. It returns what it has when ctx ends, with its error.
func Measure(ctx context.Context, models []*native.Model, p Plan) ([]Sample, error) {
	states := []bool{false, true}
	if len(models) == 1 {
		states = states[:1]
	}
	var samples []Sample
	total := p.Rounds * len(models) * len(states) * len(p.Shapes) * p.Steps
	for range p.Rounds {
		for i := range models {
			for _, beside := range states {
				round, err := p.round(ctx, models[i], others(models, i), beside, func(n int) {
					if p.Done != nil {
						p.Done(len(samples)+n, total)
					}
				})
				for j := range round {
					round[j].Beside = beside
				}
				samples = append(samples, round...)
				if err != nil {
					return samples, err
				}
			}
		}
	}
	return samples, nil
}

func others(models []*native.Model, i int) []*native.Model {
	var rest []*native.Model
	for j, m := range models {
		if j != i {
			rest = append(rest, m)
		}
	}
	return rest
}

// round walks the grid once, while the neighbours run or in turn with them.
func (p *Plan) round(ctx context.Context, m *native.Model, neighbours []*native.Model, beside bool,
	done func(int)) (samples []Sample, err error) {
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	problems := make([]error, len(neighbours))
	var turns []*stepper
	for i, n := range neighbours {
		s := newStepper(n)
		if err := s.prepare(p.Neighbour); err != nil {
			stop()
			return nil, err
		}
		if !beside {
			turns = append(turns, s)
			continue
		}
		group.Go(func() { problems[i] = load(running, s) })
	}
	defer func() {
		stop()
		group.Wait()
		err = errors.Join(append(problems, err)...)
	}()
	s := newStepper(m)
	for _, shape := range p.Shapes {
		if err := s.prepare(shape); err != nil {
			return samples, err
		}
		for i := range p.Steps + 1 {
			if ctx.Err() != nil {
				return samples, ctx.Err()
			}
			for _, other := range turns {
				if _, err := other.step(); err != nil {
					return samples, fmt.Errorf("model %s, in turn with %s: %w", other.model.Name(), m.Name(), err)
				}
			}
			took, err := s.step()
			if err != nil {
				return samples, fmt.Errorf("model %s: a step of %+v: %w", m.Name(), shape, err)
			}
			if i > 0 {
				samples = append(samples, Sample{Model: m.Name(), Shape: shape, StepNs: took.Nanoseconds()})
			}
		}
		done(len(samples))
	}
	return samples, nil
}

// load keeps a model busy until ctx ends.
func load(ctx context.Context, s *stepper) error {
	for ctx.Err() == nil {
		if _, err := s.step(); err != nil {
			return fmt.Errorf("model %s, beside the measured one: %w", s.model.Name(), err)
		}
	}
	return nil
}
