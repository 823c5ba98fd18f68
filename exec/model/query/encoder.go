package query

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/blas/blas32"

	"tokenrouter/exec/model"
)

// encoder is the body of a Qwen3 model in float32: hidden states of a whole prompt at once.
type encoder struct {
	config      model.Config
	causal      bool // a token sees those before it and itself; otherwise all
	embedding   []float32
	layers      []layer
	norm        []float32
	frequencies []float64
}

type layer struct {
	inputNorm, query, key, value, queryNorm, keyNorm, output []float32
	feedNorm, gate, up, down                                 []float32
}

// newEncoder makes an encoder whose tensors weights has, by the names of Config.Expected.
func newEncoder(c model.Config, causal bool, weights func(name string) []float32) *encoder {
	e := &encoder{config: c, causal: causal, embedding: weights("model.embed_tokens.weight"),
		norm: weights("model.norm.weight"), frequencies: c.Rope.InverseFrequencies(c.HeadDim)}
	for i := range c.Layers {
		of := func(name string) []float32 {
			return weights("model.layers." + strconv.Itoa(i) + "." + name + ".weight")
		}
		e.layers = append(e.layers, layer{
			inputNorm: of("input_layernorm"), query: of("self_attn.q_proj"), key: of("self_attn.k_proj"),
			value: of("self_attn.v_proj"), queryNorm: of("self_attn.q_norm"), keyNorm: of("self_attn.k_norm"),
			output: of("self_attn.o_proj"), feedNorm: of("post_attention_layernorm"), gate: of("mlp.gate_proj"),
			up: of("mlp.up_proj"), down: of("mlp.down_proj"),
		})
	}
	return e
}

// computable refuses what encoder does not compute.
func computable(c *model.Config) error {
	if c.Architecture != model.Qwen3 || c.QKVBias || c.OutputBias || c.MLPBias || c.SlidingLayers != nil {
		return fmt.Errorf("%v, want %v without biases and sliding windows", c.Architecture, model.Qwen3)
	}
	return nil
}

// rows are numbers row by row.
type rows struct {
	width int
	data  []float32
}

func newRows(count, width int) rows { return rows{width, make([]float32, count*width)} }

func (r rows) count() int { return len(r.data) / r.width }

func (r rows) row(i int) []float32 { return r.data[i*r.width : (i+1)*r.width] }

// from are the rows from i on.
func (r rows) from(i int) rows { return rows{r.width, r.data[i*r.width:]} }

// states returns the hidden states after the last norm of the tokens from the position first on.
func (e *encoder) states(ids []int32, first int) rows { return e.normed(e.stream(ids, first), e.norm) }

// stream returns the hidden states after the last layer, before the norm, from the position first on.
func (e *encoder) stream(ids []int32, first int) rows {
	x := newRows(len(ids), e.config.Hidden)
	for i, id := range ids {
		copy(x.row(i), e.embedding[int(id)*x.width:(int(id)+1)*x.width])
	}
	for i := range e.layers {
		wanted := 0
		if i == len(e.layers)-1 {
			wanted = first // after the last layer nobody looks at the others
		}
		x = e.pass(&e.layers[i], x, wanted)
	}
	return x
}

// pass takes all tokens through a layer and returns those from the position first on.
func (e *encoder) pass(l *layer, x rows, first int) rows {
	y := e.normed(x, l.inputNorm)
	q := e.turned(product(y.from(first), l.query), l.queryNorm, first)
	k := e.turned(product(y, l.key), l.keyNorm, 0)
	seen := e.attention(q, k, product(y, l.value), first)
	x = x.from(first)
	add(x, product(seen, l.output))
	y = e.normed(x, l.feedNorm)
	gate, up := product(y, l.gate), product(y, l.up)
	for i, g := range gate.data {
		gate.data[i] = float32(float64(g) / (1 + math.Exp(-float64(g))) * float64(up.data[i]))
	}
	add(x, product(gate, l.down))
	return x
}

// normed is RMSNorm of rows, each as wide as the weight or a multiple of it, part by part.
func (e *encoder) normed(x rows, weight []float32) rows {
	y := newRows(x.count(), x.width)
	for at := 0; at < len(x.data); at += len(weight) {
		part := x.data[at : at+len(weight)]
		square := 0.0
		for _, v := range part {
			square += float64(v) * float64(v)
		}
		scale := 1 / math.Sqrt(square/float64(len(part))+e.config.NormEpsilon)
		for i, v := range part {
			y.data[at+i] = float32(float64(v) * scale * float64(weight[i]))
		}
	}
	return y
}

// turned norms heads and turns their pairs i and i + headDim/2 by position times frequency i. The first row
// is at the position first.
func (e *encoder) turned(x rows, norm []float32, first int) rows {
	x = e.normed(x, norm)
	half, factor := e.config.HeadDim/2, e.config.Rope.AttentionFactor
	for i := range x.count() {
		row := x.row(i)
		for k, frequency := range e.frequencies {
			sin, cos := math.Sincos(float64(first+i) * frequency)
			sin, cos = sin*factor, cos*factor
			for at := k; at < x.width; at += 2 * half {
				a, b := float64(row[at]), float64(row[at+half])
				row[at], row[at+half] = float32(a*cos-b*sin), float32(b*cos+a*sin)
			}
		}
	}
	return x
}

// attention has what the queries see; the first of them is at the position first. Query head h reads KV head
// h / (heads / kvHeads).
func (e *encoder) attention(q, k, v rows, first int) rows {
	size := e.config.HeadDim
	group := e.config.Heads / e.config.KVHeads
	out := newRows(q.count(), q.width)
	shares := make([]float64, k.count())
	for i := range q.count() {
		seen := k.count()
		if e.causal {
			seen = first + i + 1
		}
		for h := range e.config.Heads {
			query, own := q.row(i)[h*size:][:size], out.row(i)[h*size:][:size]
			shared := h / group * size
			for j := range seen {
				shares[j] = float64(dot32(query, k.row(j)[shared:][:size])) / math.Sqrt(float64(size))
			}
			softmax(shares[:seen])
			for j := range seen {
				share := float32(shares[j])
				for d, value := range v.row(j)[shared:][:size] {
					own[d] += share * value
				}
			}
		}
	}
	return out
}

// product is x by a matrix [out][in], which stays in the cache while all rows meet one of its own.
func product(x rows, matrix []float32) rows {
	y := newRows(x.count(), len(matrix)/x.width)
	for o := range y.width {
		weight := matrix[o*x.width : (o+1)*x.width]
		for i := range x.count() {
			y.data[i*y.width+o] = dot32(x.row(i), weight)
		}
	}
	return y
}

// dot32 is blas32.Dot without its vectors, which take as long as 200 products.
func dot32(x, y []float32) float32 { return blas32.Implementation().Sdot(len(x), x, 1, y, 1) }

func add(x, y rows) {
	for i, v := range y.data {
		x.data[i] += v
	}
}

// softmax makes shares of logits.
func softmax(x []float64) {
	most, sum := math.Inf(-1), 0.0
	for _, v := range x {
		most = math.Max(most, v)
	}
	for i, v := range x {
		x[i] = math.Exp(v - most)
		sum += x[i]
	}
	for i := range x {
		x[i] /= sum
	}
}

// mean is the mean of rows.
func mean(x rows) []float64 {
	sum := make([]float64, x.width)
	for i := range x.count() {
		for k, v := range x.row(i) {
			sum[k] += float64(v) / float64(x.count())
		}
	}
	return sum
}
