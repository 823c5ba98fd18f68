package nativetest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/model/transformers"
	"tokenrouter/exec/native"
)

// RoundedTolerance bounds how far logits and hidden states may be from those of package reference with
// rounding, in spreads. What is left are roundings that fall the other way because sums are taken in float32,
// one unit in the last place of a large hidden number (1/32), and what a device rounds besides: the tiles of
// AMX take queries and softmax weights in bf16. Over all cases the CPU's plain kernels were up to 0.031 off,
// those for AMX 0.039.
const RoundedTolerance = 0.05

// SignalTolerance bounds the error of what a step says about its logits, against the same in float64 from
// the logits that it gives.
const SignalTolerance = 1e-5

// published: every case of package transformers, against its numbers and package reference.
func (s Suite) published(t *testing.T) {
	for _, c := range transformers.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			if err := c.Make(t.Context(), dir); err != nil {
				t.Fatal(err)
			}
			folder, err := model.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			r := s.rig(t, native.Config{Model: folder.Config}, native.Files{Folder: folder}, limits())
			for _, a := range c.Answers {
				r.release(0)
				r.continues(a, reference.Of(folder))
			}
		})
	}
}

// continues gives slot 0 a prompt, then one token at a time what it has answered, and compares each answer.
func (r *rig) continues(a transformers.Answer, m *reference.Model) {
	r.t.Helper()
	m.Round = true
	rounded, roundedHidden := m.Logits(append(slices.Clone(a.Prompt), a.Greedy...))
	last := len(a.Prompt) - 1
	next, start := a.Prompt, 0
	for i, want := range a.Greedy {
		got := r.step(part{slot: 0, start: start, tokens: next})[0]
		what := fmt.Sprintf("%d tokens, token %d after them", len(a.Prompt), i)
		if i == 0 {
			r.near(what+": logits", got.logits, a.Float32.Logits, transformers.BF16Tolerance)
			r.near(what+": hidden", got.hidden, a.Float32.Hidden, transformers.BF16Tolerance)
		}
		r.near(what+": logits with rounding", got.logits, rounded[last+i], RoundedTolerance)
		r.near(what+": hidden with rounding", got.hidden, roundedHidden[last+i], RoundedTolerance)
		if got.Finite != 1 || got.Token != want {
			r.t.Errorf("%s: %+v, want %d", what, got.Result, want)
		}
		start, next = start+len(next), []int32{want}
	}
}

func (r *rig) near(what string, got, want []float64, tolerance float64) {
	r.t.Helper()
	if off := transformers.Distance(got, want); !(off <= tolerance) {
		r.t.Errorf("%s: %.3g spreads off, want at most %v", what, off, tolerance)
	}
}

// headMapping: shapes in which another way to share KV heads, or another width, stays in bounds.
func (s Suite) headMapping(t *testing.T) {
	for _, shape := range []string{
		"layers=2,hidden=96,heads=28,kv_heads=4,head_dim=16,intermediate=64,vocab=128",
		"layers=2,hidden=64,heads=6,kv_heads=3,head_dim=32,intermediate=64,vocab=128",
		"layers=1,hidden=64,heads=16,kv_heads=1,head_dim=64,intermediate=64,vocab=128,tied=false",
		"layers=1,hidden=80,heads=5,kv_heads=5,head_dim=128,intermediate=48,vocab=100",
		"architecture=llama,layers=2,hidden=64,heads=9,kv_heads=3,head_dim=64,intermediate=96,vocab=128",
	} {
		t.Run(shape, func(t *testing.T) {
			c, err := model.ParseShape(shape)
			if err != nil {
				t.Fatal(err)
			}
			prompt := tokens(20, 37, c.Vocab)
			want, hidden := referenceOf(c, &native.Random{Config: c, Seed: 3}).Logits(prompt)
			got := s.random(t, c).alone(prompt)
			s.nearLast(t, got, want, hidden)
		})
	}
}

func (s Suite) nearLast(t *testing.T, got answer, logits, hidden [][]float64) {
	t.Helper()
	last := len(logits) - 1
	if off := transformers.Distance(got.logits, logits[last]); !(off <= RoundedTolerance) {
		t.Errorf("logits %.3g spreads off, want at most %v", off, RoundedTolerance)
	}
	if off := transformers.Distance(got.hidden, hidden[last]); !(off <= RoundedTolerance) {
		t.Errorf("hidden state %.3g spreads off, want at most %v", off, RoundedTolerance)
	}
}

// types: weights in float32 and float16 that are bf16 numbers give what the bf16 ones give.
func (s Suite) types(t *testing.T) {
	c := caseOf("qwen2-bias")
	prompt := tokens(21, 20, c.Vocab)
	want := s.random(t, c).alone(prompt)
	for _, kind := range []model.DType{model.F32, model.F16} {
		t.Run(string(kind), func(t *testing.T) {
			r := s.rig(t, native.Config{Model: c}, converted{&native.Random{Config: c, Seed: 3}, kind}, limits())
			got := r.alone(prompt)
			if kind == model.F32 {
				r.want("weights in float32", got, want)
			}
			// binary16 has smaller weights with fewer bits.
			r.near("logits", got.logits, want.logits, RoundedTolerance)
		})
	}
}

// converted gives bf16 weights in another type.
type converted struct {
	native.Source
	kind model.DType
}

// Tensor implements native.Source.
func (c converted) Tensor(e model.Expected) ([]byte, model.DType, error) {
	raw, kind, err := c.Source.Tensor(e)
	if err != nil {
		return nil, kind, err
	}
	values := make([]float32, int64(len(raw))/kind.Bytes())
	model.ToFloat32(values, raw, kind)
	if c.kind == model.F32 {
		return bytesOf(values), c.kind, nil
	}
	out := make([]byte, 0, 2*len(values))
	for _, v := range values {
		bits := model.ToF16(v)
		out = append(out, byte(bits), byte(bits>>8))
	}
	return out, c.kind, nil
}

// smollm: a real model, where `make smollm` has been run.
func (s Suite) smollm(t *testing.T) {
	dir := transformers.SmolLMFolder()
	if dir == "" {
		t.Log("no SmolLM2 here: `make smollm` gets it")
		return
	}
	folder, err := model.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	r := s.rig(t, native.Config{Model: folder.Config}, native.Files{Folder: folder}, limits())
	for _, a := range transformers.SmolLM() {
		r.release(0)
		next, start := a.Prompt, 0
		for i, want := range a.Greedy {
			got := r.step(part{slot: 0, start: start, tokens: next})[0]
			if off := a.Distance(got.logits); i == 0 && !(off <= transformers.SmolLMTolerance) {
				t.Errorf("%q: logits %.3g spreads off, want at most %v", a.Text, off, transformers.SmolLMTolerance)
			}
			if got.Token != want {
				t.Errorf("%q: token %d is %d, want %d", a.Text, i, got.Token, want)
			}
			start, next = start+len(next), []int32{want}
		}
	}
}
