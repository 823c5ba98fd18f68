package nativetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/reference"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/model/transformers"
	"tokenrouter/exec/native"
)

// Int8Tolerance bounds how far logits and hidden states of weights in int8 may be from those of package
// reference with the same weights, each rounded to a whole number of its group's scale, in spreads: a device
// may round activations to 8 bits too, with a scale a row and group. The CPU was up to 0.11 off.
const Int8Tolerance = 0.25

// ScoreTolerance bounds the error of a router's score, against float64 from the hidden state, the embedding
// and the logits that the step gives: a device may round activations and weights to bf16. The CPU was up to
// 0.0032 off.
const ScoreTolerance = 0.01

// format is a way to keep a model, and what judges its tokens.
type format struct {
	name    string
	weights native.Weights
	group   int
	router  router.Algorithm // 0: none
}

// formats are all that a device may be asked for besides bf16 without a router.
var formats = []format{
	{name: "int8", weights: native.WeightsInt8},
	{name: "int8 by 64", weights: native.WeightsInt8, group: 64},
	{name: "r2r", router: router.R2R},
	{name: "citer", router: router.CITER},
	{name: "collm", router: router.CoLLM},
	{name: "int8, r2r", weights: native.WeightsInt8, router: router.R2R},
}

// in is the suite for models of a format. ok is false where the device says that it has none such.
func (s Suite) in(t *testing.T, f format, c model.Config) (formatted Suite, ok bool) {
	t.Helper()
	s.weights, s.group = f.weights, f.group
	if f.router != 0 {
		s.router = routerFor(t, f.router, c)
	}
	_, err := s.Backend.Probe(s.config(native.Config{Model: c}), limits())
	if f.weights == native.WeightsInt8 && !s.Int8 {
		if !errors.Is(err, native.ErrUnsupported) {
			t.Errorf("error %v, want %v", err, native.ErrUnsupported)
		}
		return s, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, true
}

// config adds the format that the suite tests.
func (s Suite) config(c native.Config) native.Config {
	if s.weights != 0 {
		c.Weights, c.GroupInputs = s.weights, s.group
	}
	if s.router != nil {
		c.Router = s.router.Shape
	}
	return c
}

// routerFor is a router with random weights for models of a configuration.
func routerFor(t *testing.T, a router.Algorithm, c model.Config) *router.Router {
	t.Helper()
	shape := router.PublishedShape(a, c.Hidden)
	if a == router.R2R {
		shape.Top, shape.Width, shape.Blocks, shape.Expanded = 10, 48, 2, 96
	}
	dir := filepath.Join(t.TempDir(), "router")
	if err := router.Make(dir, shape, 5); err != nil {
		t.Fatal(err)
	}
	r, err := router.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// kept is the source of the weights that a model of a format has: every matrix rounded to 8 bits as native.h
// says, if it is kept so.
type kept struct {
	native.Source
	int8  bool
	group int
}

// Tensor implements native.Source.
func (k kept) Tensor(e model.Expected) ([]byte, model.DType, error) {
	raw, kind, err := k.Source.Tensor(e)
	if err != nil || !k.int8 || len(e.Shape) != 2 {
		return raw, kind, err
	}
	values := make([]float32, int64(len(raw))/kind.Bytes())
	model.ToFloat32(values, raw, kind)
	for row := range slices.Chunk(values, int(e.Shape[1])) {
		group := k.group
		if group == 0 {
			group = len(row)
		}
		for part := range slices.Chunk(row, group) {
			round(part)
		}
	}
	return bytesOf(values), model.F32, nil
}

// round makes each number the nearest whole multiple, up to 127, of the largest one's 127th part.
func round(group []float32) {
	largest := 0.0
	for _, v := range group {
		largest = max(largest, math.Abs(float64(v)))
	}
	if largest == 0 {
		return
	}
	for i, v := range group {
		group[i] = float32(math.RoundToEven(float64(v)/largest*127) * largest / 127)
	}
}

// int8 : weights of 8 bits give what their model gives, up to what activations of 8 bits cost; and a group's
// scale is its own.
func (s Suite) int8(t *testing.T) {
	for _, f := range formats[:2] {
		for _, name := range []string{"qwen3-untied", "qwen3-tied", "qwen2-bias", "llama-plain"} {
			t.Run(f.name+" "+name, func(t *testing.T) {
				c := caseOf(name)
				s, ok := s.in(t, f, c)
				if !ok {
					return
				}
				prompt := tokens(50, 30, c.Vocab)
				want, hidden := referenceOf(c, kept{&native.Random{Config: c, Seed: 3}, true, f.group}).Logits(prompt)
				got := s.random(t, c).alone(prompt)
				for _, part := range []struct {
					name      string
					got, want []float64
				}{{"logits", got.logits, want[29]}, {"hidden state", got.hidden, hidden[29]}} {
					if off := transformers.Distance(part.got, part.want); !(off <= Int8Tolerance) {
						t.Errorf("%s %.3g spreads off, want at most %v", part.name, off, Int8Tolerance)
					}
				}
			})
		}
	}
}

// int8Size: weights of 8 bits take about half the memory, and those of groups a scale more for each.
func (s Suite) int8Size(t *testing.T) {
	c, err := model.ParseShape("layers=2,hidden=512,heads=8,kv_heads=8,head_dim=64,intermediate=1024,vocab=2048")
	if err != nil {
		t.Fatal(err)
	}
	weights := c.Parameters() // but for norms all in matrices
	for _, f := range formats[:2] {
		s, ok := s.in(t, f, c)
		if !ok {
			continue
		}
		needs, err := s.Backend.Probe(s.config(native.Config{Model: c}), limits())
		if err != nil {
			t.Fatal(err)
		}
		scales := int64(0)
		if f.group > 0 {
			scales = 4 * weights / int64(f.group)
		}
		if low, high := weights*98/100+scales, weights*106/100+scales; needs.WeightBytes < low ||
			needs.WeightBytes > high {
			t.Errorf("%s: %d bytes of %d weights, want %d to %d", f.name, needs.WeightBytes, weights, low, high)
		}
	}
}

// scores: a router's score is that of the hidden state, of the token that was sampled and of the logits as
// they are, whatever temperature and biases do.
func (s Suite) scores(t *testing.T) {
	for _, f := range formats[2:] {
		t.Run(f.name, func(t *testing.T) {
			c := caseOf("qwen3-untied")
			s, ok := s.in(t, f, c)
			if !ok {
				return
			}
			source := kept{&native.Random{Config: c, Seed: 3}, f.weights == native.WeightsInt8, f.group}
			raw, kind, err := source.Tensor(c.Expected()[0])
			if err != nil {
				t.Fatal(err)
			}
			embeddings := make([]float32, c.Vocab*c.Hidden)
			model.ToFloat32(embeddings, raw, kind)
			r := s.random(t, c)
			seen := map[float64]bool{}
			for i, request := range []part{
				{tokens: tokens(60, 9, c.Vocab)},
				{tokens: tokens(61, 1, c.Vocab), Request: native.Request{Temperature: 5, Random: 1 << 63}},
				{tokens: tokens(60, 9, c.Vocab), Request: native.Request{Temperature: 2, Random: 1 << 61}},
				{tokens: tokens(60, 9, c.Vocab), biases: []native.Bias{{Token: 77, Bias: 300}}},
			} {
				r.release(0)
				got := r.step(request)[0]
				want := s.scoreOf(got, embeddings, c.Hidden)
				if !(math.Abs(got.Score-want) <= ScoreTolerance) {
					t.Errorf("request %d: score %v, want %v", i, got.Score, want)
				}
				seen[got.Score] = true
			}
			// Two prompts; to R2R alone the token that was sampled is another after the last two.
			if n := len(seen); n != 2 && f.router != router.R2R || f.router == router.R2R && n != 4 {
				t.Errorf("%d different scores of 4 requests", n)
			}
		})
	}
}

// scoreOf is the score in float64.
func (s Suite) scoreOf(a answer, embeddings []float32, hidden int) float64 {
	var top, embedding []float32
	if s.router.Shape.Algorithm == router.R2R {
		logits := narrowed(a.logits)
		slices.Sort(logits)
		slices.Reverse(logits)
		top, embedding = logits[:s.router.Shape.Top], embeddings[int(a.Token)*hidden:][:hidden]
	}
	return s.router.Score(narrowed(a.hidden), embedding, top)
}

// routerOfAnother: a router for other hidden states, and one that reads more logits than there are, is
// refused.
func (s Suite) routerOfAnother(t *testing.T) {
	c := caseOf("qwen3-untied")
	for _, change := range []func(*router.Shape){
		func(shape *router.Shape) { shape.Hidden++ }, func(shape *router.Shape) { shape.Top = c.Vocab + 1 },
	} {
		r := routerFor(t, router.R2R, c)
		change(&r.Shape)
		_, err := s.open(t).Load(context.Background(), native.Load{Name: "test", Config: native.Config{Model: c},
			Limits: limits(), Source: &native.Random{Config: c, Seed: 3}, Router: r})
		if !errors.Is(err, native.ErrInvalid) {
			t.Errorf("%v: error %v, want %v", r.Shape, err, native.ErrInvalid)
		}
	}
}

// referenceOf is the reference of a source.
func referenceOf(c model.Config, source native.Source) *reference.Model {
	byName := map[string]model.Expected{}
	for _, e := range c.Expected() {
		byName[e.Name] = e
	}
	return &reference.Model{Config: c, Round: true, Weights: func(name string) []float32 {
		raw, kind, err := source.Tensor(byName[name])
		if err != nil {
			panic(fmt.Sprint("nativetest: ", err))
		}
		out := make([]float32, int64(len(raw))/kind.Bytes())
		model.ToFloat32(out, raw, kind)
		return out
	}}
}

func narrowed(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// bytesOf are numbers as float32, little-endian.
func bytesOf(values []float32) []byte {
	out := make([]byte, 0, 4*len(values))
	for _, v := range values {
		bits := math.Float32bits(v)
		out = append(out, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	return out
}
