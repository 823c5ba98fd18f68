package exec

import (
	"errors"
	"fmt"

	"tokenrouter/core"
)

// event prepares what the core must know, and keeps what only the driver must.
func (l *Loop) event(e *stamped) core.Event {
	switch e.kind {
	case core.BatchDone:
		return l.batchDone(e)
	case core.Submitted:
		return l.submission(e)
	case core.Lost:
		return core.Event{Kind: core.Lost, ID: e.id}
	case core.Cancelled:
		return core.Event{Kind: core.Cancelled, ID: e.id, Reason: e.reason}
	case core.Arrived:
		h := e.message.Handoff
		q := l.sequences[h.ID]
		if q == nil {
			q = &sequence{prompt: int(h.Prompt)}
			l.sequences[h.ID] = q
		}
		q.prompt = int(h.Prompt) // of a guest that was only announced
		q.sampling = e.message.Sampling
		q.accept(&e.message)
		q.tell()
		return core.Event{Kind: core.Arrived, Handoff: h}
	case core.NewsCame:
		if q := l.sequences[e.message.News.ID]; q != nil {
			q.accept(&e.message)
			q.tell()
		}
		return core.Event{Kind: core.NewsCame, News: e.message.News}
	default:
		panic(fmt.Sprintf("exec: event of kind %d", e.kind))
	}
}

var errNotFinite = errors.New("the logits are not finite")

// RowError says why a row of a pass has failed, which ends its request.
type RowError struct {
	Model   int
	Name    string // of the model
	Step    uint64 // of the model: Launch.Seq
	Request uint64 // its ID
	Err     error
}

// Error names model, step and request.
func (e *RowError) Error() string {
	return fmt.Sprintf("model %d (%s): step %d: request %d: %v", e.Model, e.Name, e.Step, e.Request, e.Err)
}

// Unwrap is the cause.
func (e *RowError) Unwrap() error { return e.Err }

func (l *Loop) batchDone(e *stamped) core.Event {
	r := &l.runners[e.model]
	r.busy = false
	l.timings[e.model].clock(r, e.at)
	r.due = e.at
	if e.err != nil {
		l.report(fmt.Errorf("model %d (%s): step %d: %w", e.model, l.c.Core.Models[e.model].Name,
			r.pass.Launch.Seq, e.err))
		return core.Event{Kind: core.BatchDone, Model: e.model, Failed: true}
	}
	for i := range r.pass.Results {
		if !r.pass.Results[i].Failed {
			continue
		}
		err := r.pass.Errors[i]
		if err == nil {
			err = errNotFinite
		}
		l.report(&RowError{Model: e.model, Name: l.c.Core.Models[e.model].Name, Step: r.pass.Launch.Seq,
			Request: r.pass.Launch.Rows[i].ID, Err: err})
	}
	return core.Event{Kind: core.BatchDone, Model: e.model, Results: r.pass.Results}
}

func (l *Loop) submission(e *stamped) core.Event {
	r := e.request
	l.submitted[r.ID] = newSequence(r)
	l.own.add(r)
	arrival := r.Arrival
	if arrival == 0 || arrival > e.at {
		arrival = e.at
	}
	return core.Event{Kind: core.Submitted, Submission: &core.Submission{
		ID: r.ID, Arrival: arrival, PromptTokens: int32(len(r.Prompt)), TokensMax: r.TokensMax,
		Entry: r.Entry, Models: r.Models, Draw: r.Draw, Prefix: r.Prefix,
	}}
}

func (l *Loop) report(err error) {
	if l.c.Failed != nil {
		l.c.Failed(err)
	}
}
