package cpu

import (
	"context"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
)

// tinyShapes are models that differ in everything that a forward pass looks at.
func tinyShapes(t testing.TB) map[string]model.Config {
	t.Helper()
	parse := func(shape string) model.Config {
		c, err := model.ParseShape(shape)
		if err != nil {
			t.Fatal(err)
		}
		c.Positions = 512
		return c
	}
	shapes := map[string]model.Config{
		// Query heads 0 to 2 read KV head 0, 3 to 5 KV head 1.
		"Qwen3, 6 heads of 2": parse("layers=2,hidden=96,heads=6,kv_heads=2,head_dim=16,intermediate=160," +
			"vocab=130"),
		"Qwen2, biases": parse("architecture=qwen2,layers=2,hidden=64,heads=4,kv_heads=1,head_dim=32," +
			"intermediate=96,vocab=200,tied=false"),
		"Llama, head_dim 12": parse("architecture=llama,layers=2,hidden=36,heads=3,kv_heads=3,head_dim=12," +
			"intermediate=70,vocab=65"),
		"one layer, head_dim 8": parse("layers=1,hidden=8,heads=1,kv_heads=1,head_dim=8,intermediate=8,vocab=3"),
		"head_dim 80": parse("layers=2,hidden=160,heads=2,kv_heads=1,head_dim=80,intermediate=96," +
			"vocab=70"),
	}
	biased := shapes["Llama, head_dim 12"]
	biased.QKVBias, biased.OutputBias, biased.MLPBias = true, true, true
	shapes["Llama, all biases"] = biased
	sliding := shapes["Qwen3, 6 heads of 2"]
	sliding.Window, sliding.SlidingLayers = 5, []bool{false, true}
	shapes["Qwen3, second layer slides"] = sliding
	scaled := shapes["Qwen3, 6 heads of 2"]
	scaled.Rope.AttentionFactor = 1.25
	shapes["YaRN's factor"] = scaled
	return shapes
}

// limits for small tests: 4 slots of 256 tokens.
func testLimits(pageTokens int) native.Limits {
	return native.Limits{Slots: 4, Pages: 4*256/pageTokens + 3, PageTokens: pageTokens, ContextMax: 256,
		RowsMax: 300, RequestsMax: 4, TopMax: 3, BiasesMax: 8}
}

// engine is a loaded model and what its slots hold.
type engine struct {
	testing.TB
	model  *native.Model
	config model.Config
	limits native.Limits
	filled []int // tokens of each slot
	pages  int   // that were handed out
}

func newEngine(t testing.TB, o native.Options, c native.Config, l native.Limits, s native.Source) *engine {
	t.Helper()
	device, err := Backend().Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(device.Close)
	m, err := device.Load(context.Background(), native.Load{Name: "test", Config: c, Limits: l, Source: s})
	if err != nil {
		t.Fatal(err)
	}
	return &engine{TB: t, model: m, config: c.Model, limits: l, filled: make([]int, l.Slots)}
}

// piece is some tokens of a slot.
type piece struct {
	slot   int
	tokens []int32
	head   bool
}

// batch lays out one step; pages are handed out from the last to the first, so that none lies where its
// index says.
func (e *engine) batch(pieces ...piece) *native.Batch {
	b := &native.Batch{Results: make([]native.Result, len(pieces))}
	for _, p := range pieces {
		start := e.filled[p.slot]
		end := start + len(p.tokens)
		for i := (start + e.limits.PageTokens - 1) / e.limits.PageTokens; i*e.limits.PageTokens < end; i++ {
			e.pages++
			page := int32(e.limits.Pages - e.pages)
			b.Grants = append(b.Grants, native.Grant{Slot: int32(p.slot), Index: int32(i), Page: page})
		}
		e.filled[p.slot] = end
		r := native.Request{Slot: int32(p.slot), Start: int32(start), Rows: int32(len(p.tokens)), TopP: 1}
		if p.head {
			r.Head = 1
		}
		b.Requests = append(b.Requests, r)
		b.Tokens = append(b.Tokens, p.tokens...)
	}
	b.Top = make([]native.Candidate, len(pieces)*e.limits.TopMax)
	b.Logits = make([]float32, len(pieces)*e.config.Vocab)
	b.Hidden = make([]float32, len(pieces)*e.config.Hidden)
	return b
}

// forward runs a step and returns the logits of each piece.
func (e *engine) forward(pieces ...piece) [][]float32 {
	e.Helper()
	b := e.batch(pieces...)
	e.run(b)
	var logits [][]float32
	for i := range pieces {
		logits = append(logits, b.Logits[i*e.config.Vocab:][:e.config.Vocab])
	}
	return logits
}

func (e *engine) run(b *native.Batch) {
	e.Helper()
	if err := e.model.Forward(b); err != nil {
		e.Fatal(err)
	}
}

// prompt is n tokens that depend on the seed.
func prompt(c model.Config, seed uint64, n int) []int32 {
	r := source(seed)
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(c.Vocab))
	}
	return tokens
}

// eachShape runs f for every path and tiny model.
func eachShape(t *testing.T, f func(t *testing.T, p Path, c model.Config)) {
	onEachPath(t, func(t *testing.T, p Path) {
		for name, c := range tinyShapes(t) {
			t.Run(name, func(t *testing.T) { f(t, p, c) })
		}
	})
}

func options(p Path, threads int) native.Options {
	return native.Options{Threads: threads, Kernels: p.String()}
}

func bf16Weights(c model.Config) native.Config {
	return native.Config{Model: c, Weights: native.WeightsBF16}
}

func random(c model.Config) native.Source { return &native.Random{Config: c, Seed: 7} }
