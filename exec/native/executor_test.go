package native_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/exec/native"
	"tokenrouter/sim/outcome"
)

const (
	runSeed   = 11
	threshold = 0.65 // of R2R: routes with probability 0.35
	end       = 39   // the end token of the tests' models
)

// client keeps what a Sink is told, and cries when its request has left.
type client struct {
	tokens  []core.Token
	details []exec.Detail
	left    core.Leave
	gone    *sync.WaitGroup
}

// Token implements exec.Sink.
func (c *client) Token(t core.Token) { c.tokens = append(c.tokens, t) }

// Detail implements exec.Detailer.
func (c *client) Detail(d *exec.Detail) { c.details = append(c.details, *d) }

// Left implements exec.Sink.
func (c *client) Left(e core.Leave) {
	c.left = e
	c.gone.Done()
}

// pair is a system of a small and a large fake model, seeds 1 and 2, with keyed routing.
type pair struct {
	models   [2]*native.Model
	core     core.Config
	failures []error
	timings  []exec.Timing
}

func newPair(t testing.TB, policy core.Policy) *pair {
	d := opened(t, 0)
	p := &pair{core: core.Config{
		Models:    []core.Model{{Name: "small", Pages: 64}, {Name: "large", Pages: 64}},
		Algorithm: route.R2R{Threshold: threshold}, Policy: policy, Admission: core.Reserve,
		Requests: 8, ContextMax: 64, PageTokens: 16, TokenBudget: 48,
	}}
	for m := range p.models {
		c := configOf(t, shape)
		model, err := d.Load(context.Background(), native.Load{
			Name: p.core.Models[m].Name, Config: c, Limits: native.LimitsOf(p.core, m),
			Source: &native.Random{Config: c.Model, Seed: uint64(m + 1)},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.models[m] = model
	}
	return p
}

// run serves the requests, all submitted before the first turn, and returns their clients.
func (p *pair) run(t *testing.T, requests ...*exec.Request) []*client {
	t.Helper()
	execution := native.Execution{Seed: runSeed, EOS: []int{end}, Keyed: true}
	loop, err := exec.New(exec.Config{
		Core: p.core, Vocab: 40, Failed: func(err error) { p.failures = append(p.failures, err) },
		Devices: []exec.Device{native.NewExecutor(p.models[0], execution),
			native.NewExecutor(p.models[1], execution)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var gone sync.WaitGroup
	var clients []*client
	for _, r := range requests {
		c := &client{gone: &gone}
		r.Sink = c
		gone.Add(1)
		clients = append(clients, c)
		if err := loop.Submit(r); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		gone.Wait()
		stop()
	}()
	if err := loop.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	p.timings = loop.Timings()
	return clients
}

// alone computes the answer of a request by itself, token for token from the whole context, with R2R's rules
// and the simulator's verdicts.
func alone(t *testing.T, r *exec.Request) (ids []int32, origin []int) {
	t.Helper()
	d := opened(t, 0)
	models := []*native.Model{loaded(t, d, "small", 1), loaded(t, d, "large", 2)}
	m := 0
	for {
		tokens := append(slices.Clone(r.Prompt), ids...)
		token := drawn(t, models[m], m, r, ids, tokens)
		rows := []core.Row{{ID: r.ID, Fresh: int32(len(tokens)), Head: true}}
		verdict := make([]core.Result, 1)
		requests := []outcome.Request{{ID: r.ID, Key: keyOf(r), PromptTokens: int32(len(r.Prompt))}}
		outcome.Uniform{}.Fill(m, rows, requests, verdict)
		if m == 0 && verdict[0].Score >= threshold {
			m = 1
			continue
		}
		ids, origin = append(ids, token), append(origin, m)
		ignores := r.Sampling != nil && r.Sampling.IgnoreEOS
		if len(ids) == int(r.TokensMax) || token == end && !ignores {
			return ids, origin
		}
		m = 0
	}
}

func keyOf(r *exec.Request) keyed.Key {
	if r.Sampling != nil && r.Sampling.Seed != nil {
		return keyed.NewKey(*r.Sampling.Seed, 0)
	}
	return keyed.NewKey(runSeed, r.ID)
}

// drawn is what a model samples after tokens: at temperature 0 the largest of its logits with penalties and
// biases added here, otherwise what the model itself draws.
func drawn(t *testing.T, model *native.Model, m int, r *exec.Request, ids, tokens []int32) int32 {
	t.Helper()
	b := native.Batch{Logits: make([]float32, 40)}
	for i := range int32(4) {
		b.Grants = append(b.Grants, native.Grant{Index: i, Page: i})
	}
	s := exec.Sampling{}
	if r.Sampling != nil {
		s = *r.Sampling
	}
	request := native.Request{Temperature: float32(s.Temperature),
		Random: keyOf(r).At(uint32(len(ids)), uint32(m), keyed.Token)}
	added := map[int32]float64{}
	for _, bias := range s.Bias {
		added[bias.Token] += bias.Bias
	}
	for token := range int32(40) {
		n := 0.0
		for _, id := range ids {
			if id == token {
				n++
			}
		}
		added[token] -= s.PresencePenalty*min(n, 1) + s.FrequencyPenalty*n
	}
	if s.Temperature > 0 {
		for token, bias := range added {
			b.Biases = append(b.Biases, native.Bias{Token: token, Bias: float32(bias)})
		}
		request.Biases = int32(len(b.Biases))
		return forward(t, model, &b, request, tokens...).Token
	}
	forward(t, model, &b, request, tokens...)
	best, most := int32(0), math.Inf(-1)
	for token := int32(5); token < 40; token++ {
		if x := float64(b.Logits[token]) + added[token]; x > most {
			best, most = token, x
		}
	}
	return best
}

func seed(n uint64) *uint64 { return &n }

// requests are of many kinds: prompts of one token and of more than the token budget, all ways to sample.
func requests() []*exec.Request {
	var prompt []int32
	for i := range int32(50) {
		prompt = append(prompt, 5+i*7%30)
	}
	return []*exec.Request{
		{ID: 1, Prompt: prompt[:7], TokensMax: 30},
		{ID: 2, Prompt: prompt[3:4], TokensMax: 40, Sampling: &exec.Sampling{Temperature: 0.8}},
		{ID: 3, Prompt: prompt, TokensMax: 14, Sampling: &exec.Sampling{Temperature: 1.5, Seed: seed(7)}},
		{ID: 4, Prompt: prompt[:20], TokensMax: 40, Sampling: &exec.Sampling{
			PresencePenalty: 2, FrequencyPenalty: 0.5, IgnoreEOS: true}},
		{ID: 5, Prompt: prompt[:16], TokensMax: 30, Sampling: &exec.Sampling{
			Temperature: 1, FrequencyPenalty: 1, Seed: seed(0),
			Bias: []exec.TokenBias{{Token: 8, Bias: 6}, {Token: 9, Bias: -5}, {Token: 1 << 20, Bias: 1}}}},
		{ID: 6, Prompt: prompt[:2], TokensMax: 40, Sampling: &exec.Sampling{IgnoreEOS: true,
			Bias: []exec.TokenBias{{Token: end, Bias: 100}}}},
		{ID: 7, Prompt: prompt[:2], TokensMax: 40, Sampling: &exec.Sampling{
			Bias: []exec.TokenBias{{Token: end, Bias: 100}}}},
	}
}

// TestSystem: every answer and every verdict in a batch, under any policy, with chunked prompts, dropped
// drafts and returns, is what the request gives alone without any of that.
func TestSystem(t *testing.T) {
	thresholds, err := core.FixedThresholds([]int{1, 3}, 8)
	if err != nil {
		t.Fatal(err)
	}
	for name, policy := range map[string]core.Policy{
		"eager": core.Eager{}, "step-sync": core.StepSync{}, "delayed": core.Delayed{Thresholds: thresholds},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, policy)
			all := requests()
			routed := 0
			for i, c := range p.run(t, all...) {
				ids, origin := alone(t, all[i])
				var gotIDs []int32
				var gotOrigin []int
				for _, token := range c.tokens {
					gotIDs, gotOrigin = append(gotIDs, token.Token), append(gotOrigin, int(token.Model))
					routed += int(token.Model)
				}
				if !slices.Equal(gotIDs, ids) || !slices.Equal(gotOrigin, origin) || c.left.Outcome != core.Finished {
					t.Errorf("request %d: %v\nof models %v, %v; alone\n%v\nof models %v", all[i].ID, gotIDs,
						gotOrigin, c.left.Reason, ids, origin)
				}
			}
			if routed == 0 || len(p.failures) > 0 {
				t.Errorf("%d tokens of the large model, failures %v", routed, p.failures)
			}
			for m, timing := range p.timings {
				if timing.Passes == 0 || timing.DeviceNs > timing.StepNs || timing.DueNs < 0 {
					t.Errorf("model %d: %+v", m, timing)
				}
			}
		})
	}
}
