package latency

import "fmt"

// Host is the host work of an engine's loop, which lengthens its steps. A call is what the engine has between
// one dispatch of a request and its answer: with standard serving every token is one, and then matching,
// locking and updating the prefix cache take time in proportion to the context.
type Host struct {
	StepNs           int64   // a step, 0 to MaxStepNs
	RowNs            int64   // a row, 0 to MaxStepNs: what the loop does for each result
	CallNs           int64   // a row that begins a call, 0 to MaxStepNs
	CallPerContextNs float64 // a token of the context of such a row: in KV or fed now; 0 to MaxStepNs
}

func (h Host) check() error {
	for _, term := range []struct {
		ns   int64
		what string
	}{{h.StepNs, "a step"}, {h.RowNs, "a row"}, {h.CallNs, "a call"}} {
		if term.ns < 0 || term.ns > MaxStepNs {
			return fmt.Errorf("latency: host overhead of %d ns %s, want 0 to %d", term.ns, term.what, MaxStepNs)
		}
	}
	if !(h.CallPerContextNs >= 0 && h.CallPerContextNs <= float64(MaxStepNs)) {
		return fmt.Errorf("latency: host overhead of %v ns a token of a call, want 0 to %d", h.CallPerContextNs,
			MaxStepNs)
	}
	return nil
}

// Overhead adds host time to a model.
type Overhead struct {
	model Model
	host  Host
}

// NewOverhead wraps a model.
func NewOverhead(model Model, host Host) (*Overhead, error) {
	if model == nil {
		return nil, fmt.Errorf("latency: overhead around no model")
	}
	if err := host.check(); err != nil {
		return nil, err
	}
	return &Overhead{model: model, host: host}, nil
}

// StepNs implements Model: the wrapped time + StepNs + Rows * RowNs + Returns * CallNs + ReturnTokens *
// CallPerContextNs, the last rounded to the nearest.
func (o *Overhead) StepNs(s Shape) (ns int64, inRange bool) {
	ns, inRange = o.model.StepNs(s)
	if ns < 0 {
		return ns, inRange
	}
	if longer(s.Rows, o.host.RowNs) || longer(s.Returns, o.host.CallNs) {
		return Refused, false
	}
	contextNs := o.host.CallPerContextNs * float64(s.ReturnTokens)
	if !(contextNs <= float64(MaxStepNs)) {
		return Refused, false
	}
	ns += o.host.StepNs + int64(s.Rows)*o.host.RowNs + int64(s.Returns)*o.host.CallNs + int64(contextNs+0.5)
	if ns > MaxStepNs {
		return Refused, false
	}
	return ns, inRange
}

// longer reports whether so many times ns are longer than a step may be.
func longer(count int, ns int64) bool { return ns > 0 && int64(count) > MaxStepNs/ns }

// Unwrap returns the wrapped model.
func (o *Overhead) Unwrap() Model { return o.model }

// hosts returns the host times that count rows which begin a call, over all wrappers of a model.
func hosts(m Model) (calls bool, perContext bool) {
	for m != nil {
		if o, ok := m.(*Overhead); ok {
			calls = calls || o.host.CallNs > 0 || o.host.CallPerContextNs > 0
			perContext = perContext || o.host.CallPerContextNs > 0
		}
		inner, ok := m.(interface{ Unwrap() Model })
		if !ok {
			break
		}
		m = inner.Unwrap()
	}
	return calls, perContext
}

// CountsReturns reports whether a step time depends on Shape.Returns or Shape.ReturnTokens.
func CountsReturns(m Model) bool {
	calls, _ := hosts(m)
	return calls
}

// CountsReturnTokens reports whether a step time depends on Shape.ReturnTokens: a loop that drives other
// models need not add them up.
func CountsReturnTokens(m Model) bool {
	_, perContext := hosts(m)
	return perContext
}
