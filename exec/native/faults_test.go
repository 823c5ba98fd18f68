package native_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// TestFaults: a row without numbers ends its own request, an error of a pass those of the pass, a failed
// device all; what is told names model, step and request.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		token  int32
		reason core.Reason // of request 2, whose prompt ends with the token
		others bool        // go on
		want   error
		text   string
	}{
		{"not a number", nativetest.NaNToken, core.NotANumber, true, nil,
			"model 0 (small): step 1: request 2: the logits are not finite"},
		{"refused", nativetest.RefuseToken, core.DeviceFailed, false, native.ErrInvalid,
			"model 0 (small): step 1: fake: invalid argument: token 4 is refused"},
		{"failed", nativetest.FailToken, core.DeviceFailed, false, native.ErrFailed,
			"model 0 (small): step 1: fake: the device failed: token 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, core.Eager{})
			first := &exec.Request{ID: 1, Prompt: []int32{7, 8, 9}, TokensMax: 12}
			clients := p.run(t, first, &exec.Request{ID: 2, Prompt: []int32{7, 8, test.token}, TokensMax: 12})
			if e := clients[1].left; e.Outcome != core.Failed || e.Reason != test.reason || e.Tokens != 0 {
				t.Errorf("request 2 ends %v (%v) with %d tokens", e.Outcome, e.Reason, e.Tokens)
			}
			want := core.Failed
			if test.others {
				want = core.Finished
			}
			if e := clients[0].left; e.Outcome != want {
				t.Errorf("request 1 ends %v (%v), want %v", e.Outcome, e.Reason, want)
			}
			if len(p.failures) != 1 || p.failures[0].Error() != test.text || !errors.Is(p.failures[0], test.want) &&
				test.want != nil {
				t.Errorf("told of %v, want %s", p.failures, test.text)
			}
			// A device that was only asked the wrong thing goes on.
			again := p.run(t, &exec.Request{ID: 3, Prompt: []int32{9, 8}, TokensMax: 4})
			if e := again[0].left; (e.Outcome == core.Finished) != (test.want != native.ErrFailed) {
				t.Errorf("request 3 ends %v (%v)", e.Outcome, e.Reason)
			}
		})
	}
}

// TestSeeds: with a seed of its own a request gives the same answer and verdicts under any ID and beside any
// others; 0 is a seed; without one, requests differ.
func TestSeeds(t *testing.T) {
	request := func(id uint64, seed *uint64) *exec.Request {
		return &exec.Request{ID: id, Prompt: []int32{7, 8, 9}, TokensMax: 30,
			Sampling: &exec.Sampling{Temperature: 0.8, Seed: seed, IgnoreEOS: true}}
	}
	answer := func(c *client) []int32 {
		var ids []int32
		for _, token := range c.tokens {
			ids = append(ids, token.Token, token.Model)
		}
		return ids
	}
	single := answer(newPair(t, core.Eager{}).run(t, request(1, seed(7)))[0])
	clients := newPair(t, core.Eager{}).run(t, request(1, nil), request(2, seed(7)), request(3, seed(0)),
		request(4, seed(7)), request(5, nil))
	for i, same := range []bool{false, true, false, true, false} {
		if got := answer(clients[i]); slices.Equal(got, single) != same {
			t.Errorf("request %d: %v\nwith seed 7 alone: %v\nequal is not %v", i+1, got, single, same)
		}
	}
	if slices.Equal(answer(clients[0]), answer(clients[4])) {
		t.Error("two requests without a seed give the same")
	}
}

// TestDetails: who asks for top lists is told one right before each token, with the token's own
// log-probability in it; who does not is told nothing.
func TestDetails(t *testing.T) {
	clients := newPair(t, core.Eager{}).run(t,
		&exec.Request{ID: 1, Prompt: []int32{7, 8}, TokensMax: 20, Sampling: &exec.Sampling{
			Top: 20, IgnoreEOS: true}},
		&exec.Request{ID: 2, Prompt: []int32{7, 8}, TokensMax: 20, Sampling: &exec.Sampling{}})
	if len(clients[1].details) != 0 || len(clients[0].details) != 20 {
		t.Fatalf("%d and %d details, want 20 and none", len(clients[0].details), len(clients[1].details))
	}
	for i, d := range clients[0].details {
		token := clients[0].tokens[i]
		draw := keyed.Float(keyed.Hash(runSeed, 1, uint32(i), uint32(token.Model), keyed.Route))
		own := slices.IndexFunc(d.Top, func(c exec.Candidate) bool { return c.Token == token.Token })
		if len(d.Top) != 20 || own < 0 || d.Top[own].LogProb != token.LogProb || d.Score != draw {
			t.Errorf("token %+v has the detail %+v, want itself in it and the score %v", token, d, draw)
		}
		descending := func(a, b exec.Candidate) int { return cmp.Compare(b.LogProb, a.LogProb) }
		if !slices.IsSortedFunc(d.Top, descending) || !(d.Entropy > 0 && d.Entropy < 1) {
			t.Errorf("detail %+v", d)
		}
	}
}

// TestSubmitRefuses names what is wrong with a request that is not taken.
func TestSubmitRefuses(t *testing.T) {
	loop, err := exec.New(exec.Config{
		Core: core.Config{Models: []core.Model{{Pages: 4}}, Policy: core.Eager{}, Admission: core.Reserve,
			Requests: 1, ContextMax: 16, PageTokens: 16},
		Devices: []exec.Device{&exec.Scripted{}}, Vocab: 40,
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]*exec.Request{
		"request 3: prompt[1] = 40, want 0 to 39": {ID: 3, Prompt: []int32{1, 40}},
		"request 3: prompt[0] = -1, want 0 to 39": {ID: 3, Prompt: []int32{-1}},
		"request 3: top_p = 1.5, want 0 to 1":     {ID: 3, Sampling: &exec.Sampling{TopP: 1.5}},
	} {
		if err := loop.Submit(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// full is a pass of requests that ask for all that a Sampling can.
func full(requests int32) *exec.Pass {
	pass := &exec.Pass{Results: make([]core.Result, requests), Top: make([][]exec.Candidate, requests)}
	s := &exec.Sampling{Temperature: 0.7, TopK: 10, TopP: 0.9, MinP: 0.01, PresencePenalty: 1,
		FrequencyPenalty: 1, Bias: []exec.TokenBias{{Token: 9, Bias: 1}}, Top: 20}
	for slot := range requests {
		ids := []int32{5, 6, 7, 8, 9, 10, 11, 12 + slot}
		pass.Launch.Rows = append(pass.Launch.Rows, core.Row{ID: uint64(slot), Slot: slot, Fresh: 8, Head: true})
		pass.Launch.Fresh += 8
		pass.Tokens = append(pass.Tokens, ids)
		pass.Contexts = append(pass.Contexts, exec.Context{Sampling: s, Prompt: 2, IDs: ids})
		pass.Grants = append(pass.Grants, core.Grant{Slot: slot, Page: slot})
	}
	return pass
}

// TestStepAllocatesNothing, whatever requests ask for.
func TestStepAllocatesNothing(t *testing.T) {
	e := native.NewExecutor(newPair(t, core.Eager{}).models[0], native.Execution{Seed: 1})
	pass := full(6)
	allocs := testing.AllocsPerRun(100, func() {
		if err := e.Step(pass); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 || len(pass.Top[5]) != 20 {
		t.Errorf("%v allocations a step, want none", allocs)
	}
}

// TestFreed: pages of a slot that was freed are gone, those that the same pass grants are not.
func TestFreed(t *testing.T) {
	e := native.NewExecutor(newPair(t, core.Eager{}).models[0], native.Execution{})
	pass := full(1)
	if err := e.Step(pass); err != nil {
		t.Fatal(err)
	}
	pass.Freed = []int32{0}
	if err := e.Step(pass); err != nil {
		t.Errorf("freed and granted again: %v", err)
	}
	pass.Grants = nil
	if err := e.Step(pass); !errors.Is(err, native.ErrInvalid) || !strings.Contains(err.Error(), "has no page") {
		t.Errorf("freed: %v, want that there is no page", err)
	}
}
