package exec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/turnlog"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
)

// logs are the turn logs of a run, one a node.
type logs struct {
	text    []bytes.Buffer
	writers []*turnlog.Writer
}

func newLogs(s *scenario) *logs {
	l := &logs{text: make([]bytes.Buffer, s.nodes())}
	for node := range l.text {
		config := s.core
		config.Node = node
		l.writers = append(l.writers, must(turnlog.NewWriter(&l.text[node], config)))
	}
	return l
}

func (l *logs) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	l.writers[node].Turn(node, now, in, out)
}

func (l *logs) flush(t *testing.T) *logs {
	t.Helper()
	for _, w := range l.writers {
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// difference tells the first difference between the logs of two runs; "" if there is none.
func difference(a, b *logs) string {
	for node := range a.text {
		if bytes.Equal(a.text[node].Bytes(), b.text[node].Bytes()) {
			continue
		}
		var report strings.Builder
		same, err := turnlog.Diff(&report,
			must(turnlog.NewReader("simulator", bytes.NewReader(a.text[node].Bytes()))),
			must(turnlog.NewReader("executor", bytes.NewReader(b.text[node].Bytes()))))
		return fmt.Sprintf("node %d: same turns %v, error %v\n%s", node, same, err, report.String())
	}
	return ""
}

// simulated is the scenario in the simulator.
func (s *scenario) simulated(t *testing.T) (*logs, sim.Result) {
	t.Helper()
	l := newLogs(s)
	result, err := sim.Run(t.Context(), sim.Config{
		Core: s.core, Latency: s.latency, Outcome: s.outcome, Workload: &list{s.requests},
		Closed: s.closed, Seed: s.seed, Observe: l.observe,
		Link: func(from, to int) latency.Link { return s.links[[2]int{from, to}] },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l.flush(t), result
}

// executed is the scenario in the executor.
func (s *scenario) executed(t *testing.T, changes ...func(*world)) *logs {
	t.Helper()
	l := newLogs(s)
	s.execute(t, append(changes, func(w *world) { w.observe = l.observe })...)
	return l.flush(t)
}

// TestConformance: the simulator and the executor write the same turn logs, byte for byte, for
// every policy, 2 and 3 models, on one node and on several (case 32).
func TestConformance(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	var total core.Counters
	eachScenario(t, seeds, func(t *testing.T, s *scenario) {
		want, result := s.simulated(t)
		for _, c := range result.Counters {
			total.Finished += c.Finished
			total.Rejected += c.Rejected
			total.Handoffs += c.Handoffs
			total.Arrived += c.Arrived
			total.Preempted += c.Preempted
			total.PrefixShared += c.PrefixShared
		}
		if d := difference(want, s.executed(t)); d != "" {
			t.Fatalf("seed %d: %s\nof %+v", s.seed, d, s.core)
		}
	})
	// The scenarios must show what they are there for.
	for _, count := range []uint64{
		total.Finished, total.Rejected, total.Handoffs, total.Arrived, total.Preempted, total.PrefixShared,
	} {
		if count == 0 {
			t.Errorf("nothing of a kind ever happened: %+v", total)
		}
	}
}
