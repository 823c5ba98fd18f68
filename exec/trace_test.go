package exec_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// wordy is outcome.Uniform with everything that a real pass says.
type wordy struct{ outcome.Uniform }

func (w wordy) Fill(model int, rows []core.Row, requests []outcome.Request, results []core.Result) {
	w.Uniform.Fill(model, rows, requests, results)
	for i := range rows {
		if !rows[i].Head {
			continue
		}
		r, q := &results[i], &requests[rows[i].Slot]
		position := uint32(rows[i].Start + rows[i].Fresh - q.PromptTokens)
		hash := q.Key.At(position, uint32(model), keyed.Token)
		r.Token, r.LogProb, r.TopProb = int32(hash%50), -float32(hash%7), float32(hash%9)/10
		r.Entropy = keyed.Float(hash)
	}
}

// everything is all signals of a model.
const everything = trace.Token | trace.LogProb | trace.TopProb | trace.Score | trace.Entropy | trace.Draw |
	trace.EOS

// roomy is a scenario on one node in which nobody is refused and nothing is shared: what a trace can tell.
func roomy(seed uint64, policy string, algorithm core.Algorithm) *scenario {
	models := 2
	if sized, ok := algorithm.(core.Sized); ok {
		models = sized.Models()
	}
	s := randomScenario(seed, policy, []int{0, 0, 0}[:models])
	s.core.Algorithm, s.core.ContextMax, s.core.Requests = algorithm, 64, 64
	s.outcome = wordy{}
	for i := range s.core.Models {
		s.core.Models[i].Pages = 64 * s.core.LiveMax
	}
	for i := range s.requests {
		s.requests[i].PrefixTokens, s.requests[i].PrefixGroup = 0, 0
	}
	return s
}

// recorded is the scenario in the executor: its logs and its trace.
func (s *scenario) recorded(t *testing.T) (log *logs, text string) {
	t.Helper()
	h := trace.Header{}
	for _, m := range s.core.Models {
		h.Models, h.Signals = append(h.Models, m.Name), append(h.Signals, everything)
	}
	var out bytes.Buffer
	recorder := trace.NewRecorder(must(trace.NewWriter(&out, h)))
	log = newLogs(s)
	s.execute(t, func(w *world) {
		w.observe = func(node int, now core.Time, in []core.Event, out *core.Actions) {
			log.observe(node, now, in, out)
			recorder.Turn(node, now, in, out)
		}
	})
	if err := recorder.Close(); err != nil || recorder.Skipped() > 0 {
		t.Fatalf("Close: %v, %d requests skipped", err, recorder.Skipped())
	}
	return log.flush(t), out.String()
}

// played is the trace in the simulator: its logs, without what only paths know if these are played.
func (s *scenario) played(t *testing.T, text string, play outcome.Play) *logs {
	t.Helper()
	from := must(trace.NewReader("run.jsonl", strings.NewReader(text)))
	recorded := must(outcome.NewRecorded(from, play))
	l := newLogs(s)
	c := sim.Config{
		Core: s.core, Latency: s.latency, Outcome: recorded, Workload: recorded, Closed: s.closed, Seed: s.seed,
		Observe: l.observe,
	}
	if play == outcome.Paths {
		c.Core.Algorithm = route.Recorded{}
		c.Observe = func(node int, now core.Time, in []core.Event, out *core.Actions) {
			l.observe(node, now, s.asDecided(in), out)
		}
	}
	if _, err := sim.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if w := recorded.Warning(); w != "" {
		t.Errorf("warning %q, want none", w)
	}
	return l.flush(t)
}

// asDecided takes from events what a recorded path says and an algorithm does not, and gives entries back to
// the algorithm.
func (s *scenario) asDecided(in []core.Event) []core.Event {
	in = slices.Clone(in)
	for i := range in {
		e := &in[i]
		switch e.Kind {
		case core.BatchDone:
			e.Results = slices.Clone(e.Results)
			for k := range e.Results {
				e.Results[k].Next, e.Results[k].Drop = 0, false
			}
		case core.Submitted:
			submission := *e.Submission
			submission.Entry, e.Submission = 0, &submission
		}
	}
	return in
}

// TestTraceReplays: under every policy and algorithm, the trace of a run gives the same turns in the
// simulator, by its paths and by the signals that the algorithm decides on again; and the same run the same
// bytes.
func TestTraceReplays(t *testing.T) {
	algorithms := map[string]core.Algorithm{
		"r2r": route.R2R{Threshold: 0.65}, "citer": route.CITER{Threshold: 0.4},
		"collm": route.CoLLM{Threshold: 0.7}, "rstitch": route.RStitch{Threshold: 0.6},
		"me": must(route.NewME([]float64{0.5, 0.3, 0.2})), "small": must(route.NewME([]float64{1})),
		"large": must(route.NewME([]float64{0, 1})),
	}
	for policy := range policies {
		for name, algorithm := range algorithms {
			t.Run(policy+"/"+name, func(t *testing.T) {
				for seed := range uint64(4) {
					s := roomy(seed, policy, algorithm)
					log, text := s.recorded(t)
					for play, how := range map[outcome.Play]string{outcome.Paths: "paths", outcome.Signals: "signals"} {
						if d := difference(s.played(t, text, play), log); d != "" {
							t.Fatalf("seed %d, by %s: %s\n%s", seed, how, d, text)
						}
					}
					if _, again := s.recorded(t); again != text {
						t.Errorf("seed %d: recorded again\n%s\nwant\n%s", seed, again, text)
					}
				}
			})
		}
	}
}
