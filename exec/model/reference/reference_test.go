package reference

import (
	"math"
	"slices"
	"testing"

	"tokenrouter/exec/model"
)

// of makes a model of weights in memory; every norm's weight that is not given is 1.
func of(c model.Config, weights map[string][]float32) *Model {
	if c.Rope.Theta == 0 {
		c.Rope = model.Rope{Theta: 10000, Scaling: model.RopeUnscaled, AttentionFactor: 1}
	}
	return &Model{Config: c, Weights: func(name string) []float32 {
		if w, ok := weights[name]; ok {
			return w
		}
		return slices.Repeat([]float32{1}, c.Hidden)
	}}
}

// near reports whether all numbers are equal but for the rounding of float64.
func near(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12 })
}

// identity is the matrix [n][n].
func identity(n int) []float32 {
	out := make([]float32, n*n)
	for i := range n {
		out[i*n+i] = 1
	}
	return out
}

// TestHead: a model without layers is embedding, norm and head. (3, 4) has the root mean square sqrt(12.5).
func TestHead(t *testing.T) {
	embedding := []float32{3, 4, 1, 0, 0, 1, -2, 2}
	weights := map[string][]float32{"model.embed_tokens.weight": embedding,
		"lm_head.weight": {1, 1, 0, 2, 2, 0, 0, 0}}
	x, y := 3/math.Sqrt(12.5), 4/math.Sqrt(12.5)
	for _, test := range []struct {
		name string
		tied bool
		want []float64
	}{
		{"tied: the embedding, though there is another head", true, []float64{3*x + 4*y, x, y, 2 * (y - x)}},
		{"untied", false, []float64{x + y, 2 * y, 2 * x, 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := of(model.Config{Hidden: 2, Vocab: 4, Tied: test.tied}, weights)
			logits, hidden := m.Logits([]int32{0})
			if !near(logits[0], test.want) || !near(hidden[0], []float64{x, y}) {
				t.Errorf("logits %v, hidden %v, want %v and %v", logits, hidden, test.want, []float64{x, y})
			}
		})
	}
}

// TestHeadMapping: a single token sees its own values alone, so that the output of a query head is the value
// of the KV head that it reads: by division, 0-2 read 0 and 3-5 read 1.
func TestHeadMapping(t *testing.T) {
	for _, test := range []struct {
		name           string
		heads, kvHeads int
		want           []float64
	}{
		{"6 of 2", 6, 2, []float64{10, 10, 10, 11, 11, 11}},
		{"7 of 1", 7, 1, []float64{10, 10, 10, 10, 10, 10, 10}},
		{"28 of 4", 28, 4, []float64{10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11,
			12, 12, 12, 12, 12, 12, 12, 13, 13, 13, 13, 13, 13, 13}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := model.Config{Hidden: 1, Heads: test.heads, KVHeads: test.kvHeads, HeadDim: 2}
			v := make([]float32, 2*test.kvHeads)
			for i := range v {
				v[i] = float32(10 + i/2) // both numbers of a head are the same
			}
			m := of(c, map[string][]float32{"q_proj.weight": make([]float32, 2*test.heads),
				"k_proj.weight": make([]float32, 2*test.kvHeads), "v_proj.weight": v,
				"o_proj.weight": identity(2 * test.heads)})
			out := m.attention([][]float64{{1}}, 0, "")[0]
			for h, want := range test.want {
				if out[2*h] != want || out[2*h+1] != want {
					t.Errorf("head %d gives %v, want %v twice", h, out[2*h:2*h+2], want)
				}
			}
		})
	}
}

// TestWindow: with queries of zero all positions count alike, so that attention is the mean of the values
// that a layer sees, which are the positions 0 to 7.
func TestWindow(t *testing.T) {
	all := []float64{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5}
	last4 := []float64{0, 0.5, 1, 1.5, 2.5, 3.5, 4.5, 5.5}
	const sizes = `{"architectures":["Qwen2ForCausalLM"],"num_hidden_layers":2,"hidden_size":2,
		"num_attention_heads":1,"num_key_value_heads":1,"intermediate_size":1,"vocab_size":1,"sliding_window":4,`
	for _, test := range []struct {
		name, config string
		want         [][]float64 // by layer
	}{
		{"a window that is not used", sizes + `"use_sliding_window":false}`, [][]float64{all, all}},
		{"from layer 1 on", sizes + `"use_sliding_window":true,"max_window_layers":1}`, [][]float64{all, last4}},
		{"by layer types", sizes + `"use_sliding_window":true,"layer_types":["sliding_attention",
			"full_attention"]}`, [][]float64{last4, all}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := model.ParseConfig([]byte(test.config), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.QKVBias = false
			m := of(c, map[string][]float32{"q_proj.weight": make([]float32, 4), "k_proj.weight": make([]float32, 4),
				"v_proj.weight": identity(2), "o_proj.weight": identity(2)})
			x := make([][]float64, 8)
			for i := range x {
				x[i] = []float64{float64(i), 0}
			}
			for layer, want := range test.want {
				var got []float64
				for _, row := range m.attention(x, layer, "") {
					got = append(got, row[0])
				}
				if !near(got, want) {
					t.Errorf("layer %d: %v, want %v", layer, got, want)
				}
			}
		})
	}
}

// TestRotate: pair i is numbers i and i+2 of a head of 4, and turns by position * 10000^(-i/2). Norms of
// queries come before: (2, 0, 2, 0) has the root mean square sqrt(2).
func TestRotate(t *testing.T) {
	cos, sin := math.Cos, math.Sin
	for _, test := range []struct {
		name   string
		norm   bool
		factor float64
		in     []float64
		want   []float64 // at position 3
	}{
		{"first pair", false, 1, []float64{1, 0, 0, 0}, []float64{cos(3), 0, sin(3), 0}},
		{"second pair", false, 1, []float64{0, 0, 0, 2}, []float64{0, -2 * sin(0.03), 0, 2 * cos(0.03)}},
		{"attention factor", false, 1.5, []float64{1, 0, 0, 0}, []float64{1.5 * cos(3), 0, 1.5 * sin(3), 0}},
		{"norm", true, 1, []float64{2, 0, 2, 0}, []float64{3 * math.Sqrt2 * cos(3), 0,
			3 * math.Sqrt2 * sin(3), 0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := model.Config{Hidden: 4, HeadDim: 4, QKNorm: test.norm,
				Rope: model.Rope{Theta: 10000, Scaling: model.RopeUnscaled, AttentionFactor: test.factor}}
			m := of(c, map[string][]float32{"q_norm.weight": {3, 1, 0, 1}})
			x := [][]float64{make([]float64, 4), make([]float64, 4), make([]float64, 4), slices.Clone(test.in)}
			m.rotate(x, "q_norm")
			if !near(x[3], test.want) {
				t.Errorf("%v, want %v", x[3], test.want)
			}
		})
	}
}

// TestAttend: scores 0 and ln 3 * sqrt(1), so that the second value has weight 3/4.
func TestAttend(t *testing.T) {
	out := []float64{0}
	attend([]float64{math.Log(3)}, [][]float64{{0}, {1}}, [][]float64{{8}, {16}}, 0, out)
	if !near(out, []float64{14}) {
		t.Errorf("%v, want 14", out)
	}
}

// TestGated: silu(1) = 1 / (1 + 1/e).
func TestGated(t *testing.T) {
	m := of(model.Config{Hidden: 1, MLPBias: true}, map[string][]float32{
		"gate_proj.weight": {1, 0}, "gate_proj.bias": {0, 1}, "up_proj.weight": {5, 0}, "up_proj.bias": {0, 4},
		"down_proj.weight": {1, 10}, "down_proj.bias": {100}})
	silu := 1 / (1 + 1/math.E)
	if got := m.gated([][]float64{{1}}, "")[0]; !near(got, []float64{45*silu + 100}) {
		t.Errorf("%v, want %v", got, 45*silu+100)
	}
}

// TestRound: 1 + 2^-8 lies between two bf16 numbers, 1 is the even one.
func TestRound(t *testing.T) {
	for _, test := range []struct {
		round bool
		want  float64
	}{{true, 1}, {false, 1 + 1.0/256}} {
		m := of(model.Config{Hidden: 1}, nil)
		m.Round = test.round
		row := []float64{1 + 1.0/256}
		m.round(row)
		if row[0] != test.want {
			t.Errorf("round %v: %v, want %v", test.round, row[0], test.want)
		}
	}
}

// TestGreedy: the head sends each of three tokens to the next.
func TestGreedy(t *testing.T) {
	m := of(model.Config{Hidden: 3, Vocab: 3}, map[string][]float32{"model.embed_tokens.weight": identity(3),
		"lm_head.weight": {0, 0, 1, 1, 0, 0, 0, 1, 0}})
	if got, want := m.Greedy([]int32{1}, 4), []int32{2, 0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
