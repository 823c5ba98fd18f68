package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"tokenrouter/exec/native"
)

// Sample is one measured step.
type Sample struct {
	Model  string
	Beside bool // the other models were running steps of their own all the time; else in turn with it
	Shape  Shape
	StepNs int64
	Round  int       // from 0
	At     time.Time // of its end, UTC, to the millisecond
}

// Plan says what is measured.
type Plan struct {
	Shapes []Shape
	// Rounds is how often the grid is walked: a machine that is slow for a while then spoils a few samples of
	// every shape, not all samples of some.
	Rounds int
	// First is the number of the first round.
	First int
	// Steps of a shape in a round, after one that does not count; of the first model in turn with others, Row
	// times as many.
	Steps int
	// Row is how many steps the first model makes in a row between steps of the others, as it does in a run;
	// 0 means 1. RowOf tells it from a routing.
	Row int
	// Neighbour is what the other models run while a model is measured beside them, or in turn with it.
	Neighbour Shape
	// Done, if set, is told how many steps have been measured, of how many.
	Done func(steps, total int)
}

// RowOf is how many steps the first model makes in a row, in the mean and rounded, if a request leaves it
// with probability p after each: 1/p, at most rowMax. It is 1 where that is not known: p is not in [0, 1].
func RowOf(p float64) int {
	if !(p >= 0 && p <= 1) {
		return 1
	}
	return int(min(math.Round(1/p), rowMax))
}

// rowMax bounds RowOf: in longer rows the first step hardly counts.
const rowMax = 16

// Measure times steps of every model, each alone and, if there are others, beside them. Alone means in turn
// with a step of each other model, as it comes in a run: a model that has just read its weights finds more of
// them in a cache than it will then. So the first model, to which requests come back after every step of
// another, makes Plan.Row steps in a turn, and all of them count. It returns what it has when ctx ends, with
// its error.
func Measure(ctx context.Context, models []*native.Model, p Plan) ([]Sample, error) {
	var samples []Sample
	total := p.Rounds * p.PerRound(len(models))
	for number := range p.Rounds {
		for i := range models {
			for _, beside := range []bool{false, true}[:min(len(models), 2)] {
				r := round{Plan: &p, models: models, of: i, beside: beside, number: p.First + number}
				got, err := r.measure(ctx, func(n int) {
					if p.Done != nil {
						p.Done(len(samples)+n, total)
					}
				})
				samples = append(samples, got...)
				if err != nil {
					return samples, err
				}
			}
		}
	}
	return samples, nil
}

// PerRound is how many samples a whole round has, of so many models.
func (p *Plan) PerRound(models int) int {
	perShape := p.Steps
	if models > 1 {
		perShape *= 2*models - 1 + max(p.Row, 1)
	}
	return perShape * len(p.Shapes)
}

// round walks the grid once with one of the models, while the others run or in turn with them.
type round struct {
	*Plan
	models []*native.Model
	of     int
	beside bool
	number int
}

// inRow is how many steps a model makes in its turn.
func (r *round) inRow(model int) int {
	if model > 0 || r.beside || len(r.models) == 1 {
		return 1
	}
	return max(r.Row, 1)
}

func (r *round) measure(ctx context.Context, done func(int)) (samples []Sample, err error) {
	running, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	problems := make([]error, len(r.models))
	var turns []*stepper // of the others, each as often as it has steps in a row
	defer func() {
		stop()
		group.Wait()
		err = errors.Join(append(problems, err)...)
	}()
	for i, m := range r.models {
		if i == r.of {
			continue
		}
		s := newStepper(m)
		if err := s.prepare(r.Neighbour); err != nil {
			return nil, err
		}
		if r.beside {
			group.Go(func() { problems[i] = load(running, s) })
			continue
		}
		turns = append(turns, slices.Repeat([]*stepper{s}, r.inRow(i))...)
	}
	s := newStepper(r.models[r.of])
	for _, shape := range r.Shapes {
		if err := s.prepare(shape); err != nil {
			return samples, err
		}
		took, err := r.turns(ctx, s, turns)
		if err != nil {
			return samples, err
		}
		for _, ns := range took {
			samples = append(samples, Sample{
				Model: s.model.Name(), Beside: r.beside, Shape: shape, StepNs: ns, Round: r.number,
				At: time.Now().UTC().Truncate(time.Millisecond),
			})
		}
		done(len(samples))
	}
	return samples, nil
}

// turns runs the prepared steps of s, each row of them after the turns of others, and returns how long they
// took, ns: all but the first, which finds new pages.
func (r *round) turns(ctx context.Context, s *stepper, others []*stepper) (took []int64, err error) {
	for turn := range r.Steps + 1 {
		for _, other := range others {
			if _, err := other.step(); err != nil {
				return nil, fmt.Errorf("model %s, in turn with %s: %w", other.model.Name(), s.model.Name(), err)
			}
		}
		row := r.inRow(r.of)
		if turn == 0 {
			row = 1
		}
		for range row {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			ns, err := s.step()
			if err != nil {
				return nil, fmt.Errorf("model %s: a step of %+v: %w", s.model.Name(), s.shape, err)
			}
			if turn > 0 {
				took = append(took, ns.Nanoseconds())
			}
		}
	}
	return took, nil
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
