package remote_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

// The external dispatcher makes the tokens that the scheduler's loop makes with the same engines, each by the
// same model: only who waits for whom differs. Every call has all tokens so far.
func TestDispatcher(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var devices []*remote.Device
				var fakes []*remotetest.Engine
				for m := range 2 {
					f := &remotetest.Engine{Kind: engine, Logits: wild(m), Name: "m", Slots: 4}
					fakes = append(fakes, f)
					devices = append(devices, remote.NewDevice(open(t, f, nil), bounded))
				}
				want, failures := run(t, []exec.Device{devices[0], devices[1]}, four(), nil)
				if len(failures) > 0 {
					t.Fatal(failures)
				}
				before, _ := fakes[0].Asked()
				d := remote.Dispatcher{Devices: devices, Algorithm: route.RStitch{Threshold: threshold}}
				requests, got := four(), make([]*heard, 4)
				calls := make([]int, 4)
				var all sync.WaitGroup
				for i := range requests {
					got[i] = &heard{}
					requests[i].ID, requests[i].Sink = uint64(i), got[i]
					all.Go(func() {
						err := d.Answer(&requests[i], i, func(c remote.Call) {
							if calls[i]++; engine == remote.LlamaCPP && c.EngineNs < 1.75e6 {
								t.Errorf("%v of the engine, want 1.75 ms a call", c.EngineNs)
							}
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				for i := range want {
					if diff := cmp.Diff(want[i].Tokens, got[i].Tokens); diff != "" {
						t.Errorf("request %d: tokens (-loop +dispatcher):\n%s", i, diff)
					}
					if diff := cmp.Diff(want[i].Models, got[i].Models); diff != "" {
						t.Errorf("request %d: models (-loop +dispatcher):\n%s", i, diff)
					}
					if calls[i] < 24 {
						t.Errorf("request %d: %d calls for 24 tokens", i, calls[i])
					}
				}
				if after, _ := fakes[0].Asked(); len(after)-len(before) != len(before) {
					t.Errorf("%d calls of the small model, want %d as the loop", len(after)-len(before), len(before))
				}
			})
		})
	}
}

// ME draws its first model, an end token ends, and bare devices ask for no log-probabilities.
func TestDispatcherEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rising := func([]int32) []float64 { return []float64{0, 1, 2, 3} }
		f := &remotetest.Engine{Kind: remote.VLLM, Logits: rising, Name: "m"}
		of := remote.Execution{EOS: []int{3}, Bare: true}
		device := remote.NewDevice(open(t, f, nil), of)
		me, err := route.NewME([]float64{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		d := remote.Dispatcher{Devices: []*remote.Device{device, device}, Algorithm: me}
		h := &heard{}
		unheard := func(remote.Call) {}
		if err := d.Answer(&exec.Request{Prompt: []int32{1}, TokensMax: 5, Sink: h}, 0, unheard); err != nil {
			t.Fatal(err)
		}
		if len(h.Tokens) != 1 || h.Tokens[0] != 3 || h.Models[0] != 1 {
			t.Errorf("tokens %v of models %v, want 3 of model 1", h.Tokens, h.Models)
		}
		if asked, top := f.Asked(); len(asked) != 1 || top != 0 {
			t.Errorf("%d calls with at most %d log-probabilities, want 1 with none", len(asked), top)
		}
		f.Fault = func(w http.ResponseWriter, _ *http.Request, _ []int32) bool {
			http.Error(w, "no", http.StatusTeapot)
			return true
		}
		err = d.Answer(&exec.Request{ID: 7, Prompt: []int32{1}, TokensMax: 5, Sink: h}, 0, unheard)
		if err == nil || !strings.Contains(err.Error(), "request 7: model \"large\"") {
			t.Errorf("error %v, want one of request 7", err)
		}
	})
}
