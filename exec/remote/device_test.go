package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

const (
	vocab     = 64
	threshold = 0.93
)

// wild is a model whose logits are drawn by what came before, flat at some places and steep at others: their
// entropies lie on both sides of the threshold, some near it.
func wild(model int) func(ids []int32) []float64 {
	return func(ids []int32) []float64 {
		text := fmt.Sprint(ids)
		seed := uint64(len(text))
		for _, b := range []byte(text) {
			seed = keyed.Hash(seed, uint64(b), 0, uint32(model), keyed.Token)
		}
		spread := keyed.Float(keyed.Hash(seed, 1, 0, 0, keyed.Token))
		logits := make([]float64, vocab)
		for id := range logits {
			logits[id] = 3 * spread * keyed.Float(keyed.Hash(seed, 2, uint32(id), 0, keyed.Token))
		}
		return logits
	}
}

// exact is a device that has a model's distributions whole.
type exact func(ids []int32) []float64

// Step implements exec.Device.
func (e exact) Step(p *exec.Pass) error {
	for i := range p.Launch.Rows {
		row := &p.Launch.Rows[i]
		if !row.Head {
			continue
		}
		logits := e(p.Contexts[i].IDs[:row.Start+row.Fresh])
		p.Results[i] = core.Result{Token: argmax(logits), Entropy: remotetest.Entropy(logits)}
	}
	return nil
}

func argmax(logits []float64) int32 {
	best := 0
	for id := range logits {
		if logits[id] > logits[best] {
			best = id
		}
	}
	return int32(best)
}

// heard is a request's answer.
type heard struct {
	Tokens []int32
	Models []int32
	left   core.Leave
	top    []exec.Detail
}

// Token implements exec.Sink.
func (h *heard) Token(t core.Token) {
	h.Tokens, h.Models = append(h.Tokens, t.Token), append(h.Models, t.Model)
}

// Left implements exec.Sink.
func (h *heard) Left(l core.Leave) { h.left = l }

// Detail implements exec.Detailer.
func (h *heard) Detail(d *exec.Detail) { h.top = append(h.top, *d) }

// run answers requests with two devices and returns what they heard, and the errors that were reported.
func run(t *testing.T, devices []exec.Device, requests []exec.Request, change func(*exec.Config),
) (answers []*heard, failures []string) {
	t.Helper()
	c := exec.Config{
		Devices: devices,
		Core: core.Config{
			Models:    []core.Model{{Name: "small", Pages: 100}, {Name: "large", Pages: 100}},
			Algorithm: route.RStitch{Threshold: threshold}, Policy: core.Eager{}, Admission: core.Reserve,
			Requests: 4, LiveMax: 4, ContextMax: 64, PageTokens: 8, TokenBudget: 16,
		},
		Failed: func(err error) { failures = append(failures, err.Error()) },
	}
	if change != nil {
		change(&c)
	}
	loop, err := exec.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		_ = loop.Run(ctx)
		close(done)
	}()
	for i := range requests {
		answers = append(answers, &heard{})
		requests[i].ID, requests[i].Sink = uint64(i), answers[i]
		if err := loop.Submit(&requests[i]); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Hour)
	end()
	<-done
	return answers, failures
}

func pair(t *testing.T, f [2]*remotetest.Engine, of remote.Execution) []exec.Device {
	t.Helper()
	var devices []exec.Device
	for _, f := range f {
		devices = append(devices, remote.NewDevice(open(t, f, nil), of))
	}
	return devices
}

var bounded = remote.Execution{Entropy: true, Threshold: threshold}

// four requests differ by their third token. Their prompts come in two pieces.
func four() []exec.Request {
	var requests []exec.Request
	for i := range int32(4) {
		prompt := []int32{1, 2, i, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18}
		requests = append(requests, exec.Request{Prompt: prompt, TokensMax: 24})
	}
	return requests
}

// R-Stitch by bounds of entropies makes the tokens that it makes by the entropies themselves, each by the
// same model, on every engine. Some places need more of the distribution than the first 20.
func TestSameAsExact(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := &remotetest.Engine{Kind: engine, Logits: wild(0), Name: "s", Slots: 4}
				large := &remotetest.Engine{Kind: engine, Logits: wild(1), Name: "l", Slots: 4}
				devices := pair(t, [2]*remotetest.Engine{small, large}, bounded)
				got, failures := run(t, devices, four(), nil)
				want, _ := run(t, []exec.Device{exact(wild(0)), exact(wild(1))}, four(), nil)
				if len(failures) > 0 {
					t.Fatal(failures)
				}
				for i := range want {
					if diff := cmp.Diff(want[i].Tokens, got[i].Tokens); diff != "" || len(want[i].Tokens) != 24 {
						t.Errorf("request %d: tokens (-exact +got):\n%s", i, diff)
					}
					if diff := cmp.Diff(want[i].Models, got[i].Models); diff != "" {
						t.Errorf("request %d: models (-exact +got):\n%s", i, diff)
					}
				}
				for _, f := range []*remotetest.Engine{small, large} {
					if _, top := f.Asked(); top != vocab {
						t.Errorf("%d log-probabilities at most, want %d at a place near the threshold", top, vocab)
					}
				}
			})
		})
	}
}

// A call that fails ends its own request, the others of the pass go on, and so does the device.
func TestRowFails(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				small := &remotetest.Engine{Kind: engine, Logits: wild(0), Name: "s", Slots: 4}
				large := &remotetest.Engine{Kind: engine, Logits: wild(1), Name: "l", Slots: 4}
				small.Fault = func(w http.ResponseWriter, _ *http.Request, ids []int32) bool {
					if ids[2] != 2 || len(ids) < 22 {
						return false
					}
					http.Error(w, "out of memory", http.StatusInternalServerError)
					return true
				}
				large.Fault = small.Fault
				devices := pair(t, [2]*remotetest.Engine{small, large}, bounded)
				got, failures := run(t, devices, four(), nil)
				want, _ := run(t, []exec.Device{exact(wild(0)), exact(wild(1))}, four(), nil)
				for i := range got {
					if i == 2 {
						if got[i].left.Outcome != core.Failed || len(got[i].Tokens) > 4 {
							t.Errorf("request 2 left with %v after %d tokens, want it to fail within 4", got[i].left,
								len(got[i].Tokens))
						}
						continue
					}
					if diff := cmp.Diff(want[i].Tokens, got[i].Tokens); diff != "" {
						t.Errorf("request %d: tokens (-exact +got):\n%s", i, diff)
					}
				}
				if len(failures) != 1 || !strings.Contains(failures[0], "request 2: model \"large\" at http://engine") ||
					!strings.Contains(failures[0], "status 500 Internal Server Error: out of memory") {
					t.Errorf("reported %q, want one of request 2 with model, URL and cause", failures)
				}
			})
		})
	}
}

// Requests lie in slots of the engine as long as they are live, each in its own.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &remotetest.Engine{Kind: remote.LlamaCPP, Logits: wild(0), Name: "s", Slots: 2}
		device := remote.NewDevice(open(t, f, nil), remote.Execution{})
		_, failures := run(t, []exec.Device{device}, four(), func(c *exec.Config) {
			c.Core.Models, c.Core.Algorithm, c.Core.LiveMax = c.Core.Models[:1], nil, 2
		})
		if len(failures) > 0 {
			t.Fatal(failures)
		}
		slotOf := map[int32]int{} // by the third token of the prompt, which is the request
		used := map[int]int{}
		asked, _ := f.Asked()
		for _, body := range asked {
			var b struct {
				Prompt []int32
				Slot   int `json:"id_slot"`
			}
			if err := json.Unmarshal([]byte(body), &b); err != nil {
				t.Fatal(err)
			}
			if at, ok := slotOf[b.Prompt[2]]; ok && at != b.Slot {
				t.Errorf("request %d went from slot %d to %d", b.Prompt[2], at, b.Slot)
			}
			slotOf[b.Prompt[2]] = b.Slot
			used[b.Slot]++
		}
		// 4 requests of 24 tokens, two at a time, over 2 slots: one call a token, the prompt in one piece.
		if diff := cmp.Diff(map[int]int{0: 48, 1: 48}, used); diff != "" {
			t.Errorf("calls by slot (-want +got):\n%s", diff)
		}
	})
}

// Penalties are biases of a call, for an engine knows no answer that came before it. End tokens end, and the
// most likely tokens are told.
func TestSampling(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// Always tokens 3, 2, 1, 0 in this order, 1 apart.
				rising := func([]int32) []float64 { return []float64{0, 1, 2, 3} }
				f := &remotetest.Engine{Kind: engine, Logits: rising, Name: "m"}
				device := remote.NewDevice(open(t, f, nil), remote.Execution{EOS: []int{1}})
				sampling := &exec.Sampling{PresencePenalty: 1, FrequencyPenalty: 0.25, Top: 2}
				got, failures := run(t, []exec.Device{device}, []exec.Request{
					{Prompt: []int32{3, 3, 3}, TokensMax: 9, Sampling: sampling},
					{Prompt: []int32{3}, TokensMax: 2, Sampling: &exec.Sampling{
						Bias: []exec.TokenBias{{Token: 0, Bias: 9}},
					}},
				}, func(c *exec.Config) { c.Core.Models, c.Core.Algorithm = c.Core.Models[:1], nil })
				if len(failures) > 0 {
					t.Fatal(failures)
				}
				// 3 falls to 1.75, then 2 is most likely and falls to 0.75, 3 again to 1.5, 1.25, 1, and then 1, which is
				// as likely and of the lower id, ends the answer.
				want := []int32{3, 2, 3, 3, 3, 1}
				if diff := cmp.Diff(want, got[0].Tokens); diff != "" {
					t.Errorf("tokens (-want +got):\n%s", diff)
				}
				if got[0].left.Reason != core.EndOfSequence {
					t.Errorf("left by %v, want the end token", got[0].left.Reason)
				}
				first := got[0].top[0]
				if math.Abs(float64(first.TopProb)-0.6439) > 1e-4 { // e^3 / (1 + e + e^2 + e^3)
					t.Errorf("probability %v, want 0.6439", first.TopProb)
				}
				if len(first.Top) != 2 || first.Top[0].Token != 3 || first.Top[1].Token != 2 {
					t.Errorf("most likely %v, want 3 and 2", first.Top)
				}
				if diff := cmp.Diff([]int32{0, 0}, got[1].Tokens); diff != "" {
					t.Errorf("with a bias (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// With keyed draws a device gives the verdicts of every other one: the same draws as the simulator's.
func TestKeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &remotetest.Engine{Kind: remote.VLLM, Logits: wild(0), Name: "m"}
		devices := pair(t, [2]*remotetest.Engine{f, f}, remote.Execution{Seed: 7, Keyed: true})
		got, failures := run(t, devices, four()[:1], func(c *exec.Config) {
			c.Core.Algorithm = route.R2R{Threshold: 0.6}
		})
		if len(failures) > 0 {
			t.Fatal(failures)
		}
		for position, model := range got[0].Models {
			draw := keyed.Float(keyed.Hash(7, 0, uint32(position), 0, keyed.Route))
			if (draw >= 0.6) != (model == 1) {
				t.Errorf("token %d by model %d, and the draw is %v", position, model, draw)
			}
		}
	})
}

// SGLang's log-probabilities are after temperature, biases and penalties (its layers/sampler.py and
// model_executor/model_runner.py): no entropy can be told from them.
func TestEntropiesOfSGLang(t *testing.T) {
	for name, sampling := range map[string]exec.Sampling{
		"temperature": {Temperature: 1}, "bias": {Bias: []exec.TokenBias{{Token: 1, Bias: 2}}},
		"penalty": {PresencePenalty: 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &remotetest.Engine{Kind: remote.SGLang, Logits: wild(0), Name: "m"}
				devices := pair(t, [2]*remotetest.Engine{f, f}, remote.Execution{Entropy: true, Threshold: threshold})
				requests := four()[:1]
				requests[0].Sampling = &sampling
				_, failures := run(t, devices, requests, nil)
				if len(failures) != 1 || !strings.Contains(failures[0], "want temperature 0 and none of the others") {
					t.Errorf("reported %q, want one that entropies are not to be had", failures)
				}
			})
		})
	}
}
