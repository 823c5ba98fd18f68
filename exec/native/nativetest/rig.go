package nativetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/transformers"
	"tokenrouter/exec/native"
)

// caseOf returns the configuration of a published case.
func caseOf(name string) model.Config {
	for _, c := range transformers.Cases() {
		if c.Name == name {
			return parsed(c.Config)
		}
	}
	panic("nativetest: no case " + name)
}

func parsed(text json.RawMessage) model.Config {
	c, err := model.ParseConfig(text, nil)
	if err != nil {
		panic(fmt.Sprintf("nativetest: %v", err))
	}
	return c
}

// limits are enough for every test. Pages of 16 tokens are enough for all slots.
func limits() native.Limits {
	return native.Limits{Slots: 8, Pages: 128, PageTokens: 16, ContextMax: 256, RowsMax: 256, RequestsMax: 8,
		TopMax: 5, BiasesMax: 8}
}

// open opens the device for one test.
func (s Suite) open(t *testing.T) *native.Device {
	t.Helper()
	d, err := s.Backend.Open(s.Options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// rig is a loaded model. It grants pages as tokens need them, in an order without order.
type rig struct {
	t     *testing.T
	suite Suite
	model *native.Model
	free  []int32
	held  [][]int32 // pages by slot
	batch native.Batch
}

// rig loads a model of configuration c on a device of its own.
func (s Suite) rig(t *testing.T, c native.Config, source native.Source, l native.Limits) *rig {
	t.Helper()
	return s.rigOn(t, s.open(t), c, source, l)
}

func (s Suite) rigOn(t *testing.T, d *native.Device, c native.Config, source native.Source, l native.Limits,
) *rig {
	t.Helper()
	m, err := d.Load(context.Background(), native.Load{
		Name: "test", Config: s.config(c), Limits: l, Source: source, Router: s.router,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, suite: s, model: m, held: make([][]int32, l.Slots)}
	for _, page := range rand.New(rand.NewPCG(1, 2)).Perm(l.Pages) {
		r.free = append(r.free, int32(page))
	}
	return r
}

// random loads a model with random weights.
func (s Suite) random(t *testing.T, c model.Config) *rig {
	t.Helper()
	return s.rig(t, native.Config{Model: c}, &native.Random{Config: c, Seed: 3}, limits())
}

// part is a request in a step: tokens from position start on. The request's own fields say how to sample.
type part struct {
	slot, start int
	tokens      []int32
	native.Request
	biases []native.Bias
}

// answer is what a request gets back.
type answer struct {
	native.Result
	logits, hidden []float64
	top            []native.Candidate
}

// grant gives a slot the pages for its first tokens positions.
func (r *rig) grant(slot, tokens int) {
	for len(r.held[slot])*r.model.Limits().PageTokens < tokens {
		page := r.free[0]
		r.free = r.free[1:]
		r.share(slot, page)
	}
}

// share gives a slot a certain page as its next.
func (r *rig) share(slot int, page int32) {
	r.batch.Grants = append(r.batch.Grants,
		native.Grant{Slot: int32(slot), Index: int32(len(r.held[slot])), Page: page})
	r.held[slot] = append(r.held[slot], page)
}

// release takes a slot's pages away. They are the next that are granted.
func (r *rig) release(slot int) {
	r.batch.Freed = append(r.batch.Freed, int32(slot))
	r.free = append(slices.Clone(r.held[slot]), r.free...)
	r.held[slot] = nil
}

// try runs one step, with a head for every request.
func (r *rig) try(parts ...part) ([]answer, error) {
	c, l, b := r.model.Config().Model, r.model.Limits(), &r.batch
	b.Tokens, b.Requests, b.Biases = nil, nil, nil
	for _, p := range parts {
		request := p.Request
		request.Slot, request.Start, request.Rows = int32(p.slot), int32(p.start), int32(len(p.tokens))
		request.Head, request.Biases = 1, int32(len(p.biases))
		if request.TopP == 0 {
			request.TopP = 1
		}
		b.Requests = append(b.Requests, request)
		b.Tokens = append(b.Tokens, p.tokens...)
		b.Biases = append(b.Biases, p.biases...)
	}
	n := len(parts)
	b.Results, b.Top = make([]native.Result, n), make([]native.Candidate, n*l.TopMax)
	b.Hidden, b.Logits = make([]float32, n*c.Hidden), make([]float32, n*c.Vocab)
	err := r.model.Forward(b)
	b.Grants, b.Freed = nil, nil
	if err != nil {
		return nil, err
	}
	answers := make([]answer, n)
	for i := range answers {
		answers[i] = answer{Result: b.Results[i], top: b.Top[i*l.TopMax:][:b.Results[i].Top],
			logits: widened(b.Logits[i*c.Vocab:][:c.Vocab]), hidden: widened(b.Hidden[i*c.Hidden:][:c.Hidden])}
	}
	return answers, nil
}

// step runs one step that must succeed, after granting what it needs.
func (r *rig) step(parts ...part) []answer {
	r.t.Helper()
	for _, p := range parts {
		r.grant(p.slot, p.start+len(p.tokens))
	}
	answers, err := r.try(parts...)
	if err != nil {
		r.t.Fatal(err)
	}
	return answers
}

// alone is the answer of a fresh slot to a sequence given at once; the slot is free again afterwards.
func (r *rig) alone(tokens []int32) answer {
	r.t.Helper()
	slot := r.model.Limits().Slots - 1
	r.release(slot)
	got := r.step(part{slot: slot, tokens: tokens, Request: native.Request{Top: 3}})[0]
	r.release(slot)
	return got
}

// same reports whether two answers to one request are the same, as far as the device promises that.
func (s Suite) same(got, want answer) bool {
	if !s.SameBits {
		return got.Finite == want.Finite && (got.Finite == 0 ||
			transformers.Distance(got.logits, want.logits) <= transformers.BF16Tolerance)
	}
	if got.Finite == 0 && want.Finite == 0 {
		return true
	}
	if math.IsNaN(got.Score) && math.IsNaN(want.Score) {
		got.Score, want.Score = 0, 0
	}
	return got.Result == want.Result && slices.Equal(got.logits, want.logits) &&
		slices.Equal(got.hidden, want.hidden) && slices.Equal(got.top, want.top)
}

// want fails the test unless got is the same as want.
func (r *rig) want(what string, got, want answer) {
	r.t.Helper()
	if !r.suite.same(got, want) {
		r.t.Errorf("%s: %+v, want %+v; logits %.3g spreads off", what, got.Result, want.Result,
			transformers.Distance(got.logits, want.logits))
	}
}

// tokens returns n random tokens that are no other than usual, even to Fake.
func tokens(seed uint64, n, vocab int) []int32 {
	random := rand.New(rand.NewPCG(seed, 5))
	out := make([]int32, n)
	for i := range out {
		out[i] = 5 + random.Int32N(int32(vocab-5))
	}
	return out
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
