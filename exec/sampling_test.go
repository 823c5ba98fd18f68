package exec_test

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec"
)

func TestSamplingValidate(t *testing.T) {
	for _, test := range []struct {
		name     string
		sampling exec.Sampling
		want     string // "": none
	}{
		{"zero", exec.Sampling{}, ""},
		{"all", exec.Sampling{Temperature: 0.7, TopK: 40, TopP: 0.9, MinP: 0.05, PresencePenalty: -2,
			FrequencyPenalty: 2, Bias: []exec.TokenBias{{Token: 0, Bias: -100}}, Top: 20}, ""},
		{"temperature", exec.Sampling{Temperature: -1}, "temperature = -1, want 0 to 100"},
		{"temperature NaN", exec.Sampling{Temperature: math.NaN()}, "temperature = NaN, want 0 to 100"},
		{"temperature below", exec.Sampling{Temperature: 1e-9}, "temperature = 1e-09, want 0 or at least 1e-06"},
		{"top_k", exec.Sampling{TopK: -1}, "top_k = -1, want 0 to 1.073741824e+09"},
		{"top_p", exec.Sampling{TopP: 1.01}, "top_p = 1.01, want 0 to 1"},
		{"min_p", exec.Sampling{MinP: math.Inf(1)}, "min_p = +Inf, want 0 to 1"},
		{"presence", exec.Sampling{PresencePenalty: 101}, "presence_penalty = 101, want -100 to 100"},
		{"frequency", exec.Sampling{FrequencyPenalty: -101}, "frequency_penalty = -101, want -100 to 100"},
		{"bias", exec.Sampling{Bias: []exec.TokenBias{{Token: 5, Bias: math.NaN()}}}, "bias of token 5 = NaN"},
		{"bias token", exec.Sampling{Bias: []exec.TokenBias{{Token: -5}}}, "bias of token -5 = 0"},
		{"biases", exec.Sampling{Bias: make([]exec.TokenBias, 1025)}, "number of biases = 1025, want 0 to 1024"},
		{"top", exec.Sampling{Top: 21}, "top = 21, want 0 to 20"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.sampling.Validate()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// detailed is a client that is told details too.
type detailed struct {
	*client
	details []exec.Detail
	at      []int // tokens told before
}

// Detail implements exec.Detailer.
func (d *detailed) Detail(detail *exec.Detail) {
	d.details, d.at = append(d.details, *detail), append(d.at, len(d.tokens))
}

// TestDetailsAndContexts: on one node and on two, devices see the request's Sampling, the length of its
// prompt and all its tokens, and what they say of a token comes to the sink right before it, with the score
// of the draft that was dropped for it.
func TestDetailsAndContexts(t *testing.T) {
	for _, nodes := range [][]int{{0, 0}, {0, 1}} {
		synctest.Test(t, func(t *testing.T) {
			sampling := &exec.Sampling{Top: 2}
			device := func(m int) exec.Device {
				return deviceFunc(func(p *exec.Pass) error {
					for i, row := range p.Launch.Rows {
						c, known := p.Contexts[i], int(row.Start+row.Fresh)
						if c.Sampling != sampling || c.Prompt != 2 || len(c.IDs) != known || c.IDs[1] != 8 {
							t.Errorf("model %d, row %+v: context %+v", m, row, c)
						}
						id := row.Start + row.Fresh
						// The small model is unsure of every third token, and has a score of its own for each.
						unsure := float64(id) / 16 * float64(1-m)
						if id%3 == 0 {
							unsure += float64(1 - m)
						}
						p.Results[i] = core.Result{Token: id, Score: unsure, Entropy: 0.5, TopProb: 0.25}
						p.Top[i] = []exec.Candidate{{Token: id, LogProb: -1}, {Token: int32(m), LogProb: -2}}
					}
					return nil
				})
			}
			s := start(t, config(nodes...), time.Millisecond, []exec.Device{device(0), device(1)}, nil)
			sink := &detailed{}
			sink.client = s.submit(1, []int32{7, 8}, 4, func(r *exec.Request) {
				sink.client = r.Sink.(*client)
				r.Sampling, r.Sink = sampling, sink
			})
			s.settle(time.Second)
			s.stop()
			sink.ended(core.Finished, core.TokensMax, 2, 3, 4, 5)
			var want []exec.Detail
			for i, model := range []int32{0, 1, 0, 0} {
				d := exec.Detail{TopProb: 0.25, Entropy: 0.5, Score: float64(2+i) / 16,
					Top: []exec.Candidate{{Token: int32(2 + i), LogProb: -1}, {Token: model, LogProb: -2}}}
				if model == 1 {
					draft := 1 + 3./16
					d.Score, d.Draft = 0, &draft
				}
				want = append(want, d)
			}
			if diff := cmp.Diff(want, sink.details); diff != "" {
				t.Errorf("details: %s", diff)
			}
			if diff := cmp.Diff([]int{0, 1, 2, 3}, sink.at); diff != "" {
				t.Errorf("details come after so many tokens: %s", diff)
			}
		})
	}
}

// TestTimings: a pass is due when its model's last one ended, or when the event came that made it; what a
// device does around the work counts as bookkeeping, and so does the way there.
func TestTimings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := func(ms, around int) exec.Device {
			return deviceFunc(func(p *exec.Pass) error {
				p.DeviceNs = core.Time(time.Duration(ms) * time.Millisecond)
				time.Sleep(time.Duration(ms+around) * time.Millisecond)
				return nil
			})
		}
		// The small model's tokens are never routed: the large one is idle.
		s := start(t, config(), 0, []exec.Device{work(8, 1), work(1, 1)}, func(c *exec.Config) {
			c.Gather = 500 * time.Microsecond // each turn comes so much after its first event
		})
		s.submit(1, []int32{7, 8}, 4)
		s.settle(time.Second)
		s.stop()
		got := s.loops[0].Timings()
		want := exec.Timing{
			Passes: 4, DueNs: 4 * ms / 2, StepNs: 4 * 9 * ms, DeviceNs: 4 * 8 * ms,
		}
		if diff := cmp.Diff([]exec.Timing{want, {}}, got); diff != "" {
			t.Error(diff)
		}
		// 1 ms around the work and half a one on the way, of 9.5.
		if share := got[0].Bookkeeping(); share != 1.5/9.5 || got[1].Bookkeeping() != 0 {
			t.Errorf("bookkeeping %v, want %v and 0 for a model without passes", share, 1.5/9.5)
		}
	})
}
