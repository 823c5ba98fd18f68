package spec

import (
	"math"
	"slices"
	"time"

	"tokenrouter/core"
	"tokenrouter/sim/latency"
)

// engine reads what kind of engine runs a model: what a call of it is and leaves, how long it is on its way,
// and what the engine's loop and its launches cost beyond the steps.
func (l *loader) engine(m *section, model *Model) {
	model.TokenCalls = m.word("call", "visit", "visit", "token") == "token"
	model.Forgets = !m.boolean("reuse", true)
	model.DispatchNs = m.duration("dispatch", 0, 0)
	if model.DispatchNs > core.DelayMax {
		m.wrong("dispatch", "want at most %v", time.Duration(core.DelayMax))
	}
	host := latency.Host{
		StepNs: m.duration("host_step", 0, 0), RowNs: m.duration("host_row", 0, 0),
		CallNs:           m.duration("host_call", 0, 0),
		CallPerContextNs: m.number("host_call_per_context_ns", 0, 0, math.Inf(1)),
	}
	if launch := m.sub("launch"); launch != nil {
		l.launching(launch, model)
	}
	if model.Latency == nil || host == (latency.Host{}) {
		return
	}
	inner, err := latency.NewOverhead(model.Latency, host)
	if err != nil {
		m.wrong("host_call_per_context_ns", "%v", err)
		return
	}
	model.Latency = inner
}

// launching reads which steps are captured, and what others cost to launch. The grid may stand beside graphs
// that have none, so that one key turns graphs off.
func (l *loader) launching(s *section, model *Model) {
	before := len(l.problems)
	word := s.word("graphs", latency.ExtendGraphs.String(), latency.GraphNames...)
	how := latency.Launching{
		Graphs:  latency.ExtendGraphs + latency.Graphs(max(slices.Index(latency.GraphNames, word), 0)),
		EagerNs: s.duration("eager", 0, 0), EagerRowNs: s.duration("eager_per_row", 0, 0),
		EagerFreshNs: s.number("eager_per_fresh_ns", 0, 0, math.Inf(1)),
	}
	if s.has("rows") {
		how.Rows = s.axis("rows", 1)
	}
	if s.has("fresh_tokens") {
		how.Fresh = s.axis("fresh_tokens", 1)
	}
	s.done()
	whole := how.Graphs == latency.ExtendGraphs && how.Rows == nil && how.Fresh == nil
	if model.Latency == nil || len(l.problems) > before || whole {
		return
	}
	launched, err := latency.NewLaunched(model.Latency, how)
	if err != nil {
		s.wrong("graphs", "%v", err)
		return
	}
	model.Latency = launched
}
