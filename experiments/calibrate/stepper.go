package calibrate

import (
	"fmt"
	"time"

	"tokenrouter/exec/native"
)

// stepper runs steps of any shape on one model. What KV holds before the fresh tokens is whatever is there,
// which takes the same time.
type stepper struct {
	model *native.Model
	shape Shape // that is prepared
	batch native.Batch
	// forward is the model's.
	forward func(*native.Batch) error
}

func newStepper(m *native.Model) *stepper { return &stepper{model: m, forward: m.Forward} }

// prepare makes the batch of a shape, which takes all the pages anew.
func (s *stepper) prepare(shape Shape) error {
	l := s.model.Limits()
	need := (shape.Context + shape.Fresh + l.PageTokens - 1) / l.PageTokens
	if shape.Rows*need > l.Pages || shape.Rows > min(l.Slots, l.RequestsMax) {
		return fmt.Errorf("calibrate: a step of %+v does not fit into %d pages of %d tokens and %d requests",
			shape, l.Pages, l.PageTokens, l.RequestsMax)
	}
	s.shape = shape
	b := &s.batch
	*b = native.Batch{
		Tokens: b.Tokens[:0], Requests: b.Requests[:0], Results: make([]native.Result, shape.Rows),
		Top: make([]native.Candidate, shape.Rows*l.TopMax),
	}
	for slot := range shape.Rows {
		b.Freed = append(b.Freed, int32(slot))
		for index := range need {
			b.Grants = append(b.Grants, native.Grant{
				Slot: int32(slot), Index: int32(index), Page: int32(slot*need + index),
			})
		}
		for position := range shape.Fresh {
			token := (slot*31 + position*7 + 1) % s.model.Config().Samplable
			b.Tokens = append(b.Tokens, int32(token))
		}
		b.Requests = append(b.Requests, native.Request{
			Slot: int32(slot), Start: int32(shape.Context), Rows: int32(shape.Fresh), Head: 1, TopP: 1,
		})
	}
	return nil
}

// step runs the prepared batch once and returns how long the call took.
func (s *stepper) step() (time.Duration, error) {
	begin := time.Now()
	err := s.forward(&s.batch)
	took := time.Since(begin)
	s.batch.Freed, s.batch.Grants = nil, nil // the slots have their pages now
	return took, err
}
