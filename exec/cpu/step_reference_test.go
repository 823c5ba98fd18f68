package cpu

import (
	"encoding/binary"
	"math"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/native"
)

// plain is a model in double, as simple as can be: every token looks at all before it. It rounds to bf16 what
// the device does: inputs of products, keys and values.
type plain struct {
	config  model.Config
	tensors map[string][]float64
}

// newPlain reads all tensors of a source of bf16, f16 or f32 numbers.
func newPlain(t testing.TB, c model.Config, s native.Source) *plain {
	t.Helper()
	p := &plain{config: c, tensors: map[string][]float64{}}
	for _, e := range c.Expected() {
		raw, kind, err := s.Tensor(e)
		if err != nil {
			t.Fatal(err)
		}
		p.tensors[e.Name] = numbers(t, raw, kind)
	}
	return p
}

func numbers(t testing.TB, raw []byte, kind model.DType) []float64 {
	t.Helper()
	out := make([]float64, int64(len(raw))/kind.Bytes())
	for i := range out {
		switch kind {
		case model.BF16:
			out[i] = float64(fromBF16(binary.LittleEndian.Uint16(raw[2*i:])))
		case model.F32:
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		default:
			t.Fatalf("a reference of %v", kind)
		}
	}
	return out
}

func rounded(x []float64) []float64 {
	for i, v := range x {
		x[i] = float64(fromBF16(toBF16(float32(v))))
	}
	return x
}

// linear is w * x + bias, w[len(out)][len(x)]; a missing bias is none.
func (p *plain) linear(name string, x []float64) []float64 {
	w, bias := p.tensors[name+".weight"], p.tensors[name+".bias"]
	out := make([]float64, len(w)/len(x))
	for n := range out {
		for k, v := range x {
			out[n] += w[n*len(x)+k] * v
		}
		if bias != nil {
			out[n] += bias[n]
		}
	}
	return out
}

func (p *plain) norm(name string, x []float64) []float64 {
	squares := 0.0
	for _, v := range x {
		squares += v * v
	}
	scale := 1 / math.Sqrt(squares/float64(len(x))+p.config.NormEpsilon)
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v * scale * p.tensors[name+".weight"][i]
	}
	return out
}

// heads cuts x into heads, norms them if the model does, and turns them by their position.
func (p *plain) heads(x []float64, norm string, position int) [][]float64 {
	dim := p.config.HeadDim
	frequencies := p.config.Rope.InverseFrequencies(dim)
	var heads [][]float64
	for ; len(x) > 0; x = x[dim:] {
		head := x[:dim:dim]
		if p.config.QKNorm {
			head = p.norm(norm, head)
		}
		turned := make([]float64, dim)
		for i, f := range frequencies {
			sin, cos := math.Sincos(float64(position) * f)
			sin, cos = sin*p.config.Rope.AttentionFactor, cos*p.config.Rope.AttentionFactor
			turned[i] = head[i]*cos - head[i+dim/2]*sin
			turned[i+dim/2] = head[i+dim/2]*cos + head[i]*sin
		}
		heads = append(heads, turned)
	}
	return heads
}

// logits are those after each of the tokens, and hidden is what the head is given.
func (p *plain) logits(tokens []int32) (logits, hidden [][]float64) {
	c := &p.config
	x := make([][]float64, len(tokens))
	for m, token := range tokens {
		x[m] = append([]float64(nil), p.tensors["model.embed_tokens.weight"][int(token)*c.Hidden:][:c.Hidden]...)
	}
	for l := range c.Layers {
		p.attend(l, x)
		p.feedForward(l, x)
	}
	head := "lm_head"
	if c.Tied {
		head = "model.embed_tokens"
	}
	for _, row := range x {
		h := rounded(p.norm("model.norm", row))
		hidden = append(hidden, h)
		logits = append(logits, p.linear(head, h))
	}
	return logits, hidden
}

func (p *plain) attend(l int, x [][]float64) {
	c, layer := &p.config, p.layer(l)
	var keys, values [][][]float64 // [position][head]
	for m, row := range x {
		h := rounded(p.norm(layer+"input_layernorm", row))
		q := p.heads(p.linear(layer+"self_attn.q_proj", h), layer+"self_attn.q_norm", m)
		k := p.heads(p.linear(layer+"self_attn.k_proj", h), layer+"self_attn.k_norm", m)
		for _, head := range k {
			rounded(head)
		}
		keys = append(keys, k)
		v := rounded(p.linear(layer+"self_attn.v_proj", h))
		var cut [][]float64
		for ; len(v) > 0; v = v[c.HeadDim:] {
			cut = append(cut, v[:c.HeadDim])
		}
		values = append(values, cut)
		first := 0
		if window := c.WindowOf(l); window > 0 {
			first = max(0, m+1-window)
		}
		var joined []float64
		for head := range c.Heads {
			kv := head / (c.Heads / c.KVHeads)
			joined = append(joined, mixed(q[head], keys[first:], values[first:], kv)...)
		}
		addTo(row, p.linear(layer+"self_attn.o_proj", rounded(joined)))
	}
}

// mixed is softmax(q * keys / sqrt(dim)) * values of one KV head.
func mixed(q []float64, keys, values [][][]float64, kv int) []float64 {
	weights, total := make([]float64, len(keys)), 0.0
	for t, k := range keys {
		dot := 0.0
		for d, v := range q {
			dot += v * k[kv][d]
		}
		weights[t] = math.Exp(dot / math.Sqrt(float64(len(q))))
		total += weights[t]
	}
	out := make([]float64, len(q))
	for t, w := range weights {
		for d, v := range values[t][kv] {
			out[d] += w / total * v
		}
	}
	return out
}

func (p *plain) feedForward(l int, x [][]float64) {
	layer := p.layer(l)
	for _, row := range x {
		h := rounded(p.norm(layer+"post_attention_layernorm", row))
		gate, up := p.linear(layer+"mlp.gate_proj", h), p.linear(layer+"mlp.up_proj", h)
		for i, g := range gate {
			gate[i] = g / (1 + math.Exp(-g)) * up[i]
		}
		addTo(row, p.linear(layer+"mlp.down_proj", rounded(gate)))
	}
}

func (p *plain) layer(l int) string { return "model.layers." + string(rune('0'+l)) + "." }

func addTo(x, delta []float64) {
	for i, v := range delta {
		x[i] += v
	}
}
