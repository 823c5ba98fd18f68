package core_test

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// strings makes world.result follow one string a request: the model (S or L) that makes each
// token, all of which are committed.
func (w *world) strings(of map[uint64]string) {
	w.config.Algorithm = route.Recorded{}
	w.result = func(id uint64, _, position, _ int) core.Result {
		s := of[id]
		r := core.Result{Token: int32(position), EOS: position == len(s)-1}
		if position+1 < len(s) && s[position+1] == 'L' {
			r.Next = 1
		}
		return r
	}
}

func fixed(t testing.TB, liveMax int, b ...int) core.Thresholds {
	t.Helper()
	thresholds, err := core.FixedThresholds(b, liveMax)
	if err != nil {
		t.Fatal(err)
	}
	return thresholds
}

// TestFourSchedules is the schedule figure (TokenRouter, arXiv 2610.12242, section 3): SLM
// step 1, LLM step 3.5, three requests at time 0, every token committed. Its four means are
// 13.333, 13.0, 10.833 and 8.667 SLM steps: sums 40, 39, 32.5 and 26.
func TestFourSchedules(t *testing.T) {
	const halfStep = ms // the quantum: half an SLM step
	for _, c := range []struct {
		name   string
		policy core.Policy
		sum    core.Time // of latencies, in half steps
		starts core.Time // of the LLM's pass for request 3's third token
	}{
		{"step-sync", core.StepSync{}, 80, 0},
		{"model-sync", core.ModelSync{}, 78, 0},
		{"eager-async", core.Eager{}, 65, 9},
		{"delayed", core.Delayed{Thresholds: fixed(t, 3, 1, 2)}, 52, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, core.Config{
				Models: models(2), Policy: c.policy, Algorithm: route.Recorded{}, LiveMax: 3,
			}, 2*halfStep, 7*halfStep)
			w.strings(map[uint64]string{1: "SSS", 2: "SLSLSS", 3: "SSLSLS"})
			var reached, started core.Time
			w.observe = func(_ *node, _ []core.Event, out *core.Actions) {
				for _, tok := range out.Tokens {
					if tok.ID == 3 && tok.Position == 1 {
						reached = w.now // its second token: the third is the LLM's
					}
				}
				for _, l := range out.Launches {
					for _, row := range l.Rows {
						if l.Model == 1 && row.ID == 3 && started == 0 {
							started = w.now
						}
					}
				}
			}
			for id := range uint64(3) {
				w.submit(0, core.Submission{ID: id + 1, PromptTokens: 1, TokensMax: 9})
			}
			w.run().settled()
			sum := core.Time(0)
			for _, at := range w.leftAt {
				sum += at
			}
			if sum != c.sum*halfStep {
				t.Errorf("latencies sum to %v half steps, want %v: %v", sum/halfStep, c.sum, w.leftAt)
			}
			// Eager: request 3's third token reaches the LLM at 2 and can start only at 4.5, for the
			// LLM has begun with request 2 alone. Delayed: it has waited for request 3.
			if c.starts != 0 && (reached != 4*halfStep || started != c.starts*halfStep) {
				t.Errorf("request 3 reached the LLM at %v and started at %v half steps, want 4 and %v",
					reached/halfStep, started/halfStep, c.starts)
			}
		})
	}
}
