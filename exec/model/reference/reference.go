package reference

import (
	"fmt"
	"math"
	"strconv"

	"tokenrouter/exec/model"
)

// Model is a model to be computed.
type Model struct {
	Config model.Config

	// Weights returns a tensor of Config.Expected by its name, row by row. Each call may return the same
	// memory again.
	Weights func(name string) []float32

	// Round rounds to bf16 where a device for bf16 weights does: what goes into a matrix product (rows after
	// a norm, attention's output, the gated product), keys and values. All else stays float64.
	Round bool
}

// Of returns the model in a folder, which must stay open. Its weights are converted from the files each time
// that they are used.
func Of(folder *model.Folder) *Model {
	var buffer []float32
	return &Model{Config: folder.Config, Weights: func(name string) []float32 {
		t, ok := folder.Lookup(name)
		if !ok {
			panic(fmt.Sprintf("reference: %s has no tensor %s", folder.Dir, name))
		}
		elements := int(t.Size / t.DType.Bytes())
		if cap(buffer) < elements {
			buffer = make([]float32, elements)
		}
		model.ToFloat32(buffer[:elements], folder.Bytes(t), t.DType)
		return buffer[:elements]
	}}
}

// Logits computes a sequence that begins at position 0. It returns a row of logits for each token, and the
// hidden state of each after the last norm. It panics for a token that is not in the vocabulary.
func (m *Model) Logits(tokens []int32) (logits, hidden [][]float64) {
	x := m.embedded(tokens)
	for layer := range m.Config.Layers {
		prefix := "model.layers." + strconv.Itoa(layer) + "."
		add(x, m.attention(m.norm(x, prefix+"input_layernorm"), layer, prefix+"self_attn."))
		add(x, m.gated(m.norm(x, prefix+"post_attention_layernorm"), prefix+"mlp."))
	}
	hidden = m.norm(x, "model.norm")
	head := "lm_head"
	if m.Config.Tied {
		head = "model.embed_tokens"
	}
	return m.linear(hidden, head, false), hidden
}

// Greedy returns the n tokens that follow a prompt when the most likely one is taken each time (the first of
// equals), whatever ends an answer.
func (m *Model) Greedy(prompt []int32, n int) []int32 {
	tokens := append([]int32(nil), prompt...)
	for range n {
		logits, _ := m.Logits(tokens)
		tokens = append(tokens, Best(logits[len(logits)-1]))
	}
	return tokens[len(prompt):]
}

// Best returns the place of the largest logit, the first of equals.
func Best(logits []float64) int32 {
	best := 0
	for i, z := range logits {
		if z > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// LogSumExp is the logarithm of the sum of e^z.
func LogSumExp(logits []float64) float64 {
	most, sum := math.Inf(-1), 0.0
	for _, z := range logits {
		most = math.Max(most, z)
	}
	for _, z := range logits {
		sum += math.Exp(z - most)
	}
	return most + math.Log(sum)
}

func (m *Model) embedded(tokens []int32) [][]float64 {
	c := &m.Config
	table := m.Weights("model.embed_tokens.weight")
	x := make([][]float64, len(tokens))
	for i, token := range tokens {
		if token < 0 || int(token) >= c.Vocab {
			panic(fmt.Sprintf("reference: token %d at position %d, want 0 to %d", token, i, c.Vocab-1))
		}
		x[i] = widened(table[int(token)*c.Hidden : (int(token)+1)*c.Hidden])
	}
	return x
}

// norm is RMSNorm (arXiv 1910.07467) of each row.
func (m *Model) norm(x [][]float64, name string) [][]float64 {
	weight := m.Weights(name + ".weight")
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = append([]float64(nil), row...)
		m.normHead(out[i], weight)
		m.round(out[i])
	}
	return out
}

func (m *Model) normHead(x []float64, weight []float32) {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	scale := 1 / math.Sqrt(square/float64(len(x))+m.Config.NormEpsilon)
	for i := range x {
		x[i] *= scale * float64(weight[i])
	}
}

// linear multiplies each row by a matrix [out][in] and adds the bias if there is one.
func (m *Model) linear(x [][]float64, name string, bias bool) [][]float64 {
	weight := m.Weights(name + ".weight")
	in := len(x[0])
	out := make([][]float64, len(x))
	for i, row := range x {
		out[i] = make([]float64, len(weight)/in)
		for o := range out[i] {
			sum := 0.0
			for k, w := range weight[o*in : (o+1)*in] {
				sum += row[k] * float64(w)
			}
			out[i][o] = sum
		}
	}
	if bias {
		values := widened(m.Weights(name + ".bias"))
		for _, row := range out {
			for o, b := range values {
				row[o] += b
			}
		}
	}
	return out
}

// attention is causal attention with grouped heads: query head h reads KV head h / (heads / kvHeads).
func (m *Model) attention(x [][]float64, layer int, prefix string) [][]float64 {
	c := &m.Config
	q := m.linear(x, prefix+"q_proj", c.QKVBias)
	k := m.linear(x, prefix+"k_proj", c.QKVBias)
	v := m.linear(x, prefix+"v_proj", c.QKVBias)
	m.rotate(q, prefix+"q_norm")
	m.rotate(k, prefix+"k_norm")
	for i := range x {
		m.round(k[i])
		m.round(v[i])
	}
	out := make([][]float64, len(x))
	for i := range x {
		first := 0
		if window := c.WindowOf(layer); window > 0 {
			first = max(0, i+1-window)
		}
		out[i] = make([]float64, c.Heads*c.HeadDim)
		for h := range c.Heads {
			shared := h / (c.Heads / c.KVHeads)
			attend(head(q[i], h, c.HeadDim), k[first:i+1], v[first:i+1], shared, head(out[i], h, c.HeadDim))
		}
		m.round(out[i])
	}
	return m.linear(out, prefix+"o_proj", c.OutputBias)
}

// attend adds to out the values of one KV head, weighted by the softmax of q * k / sqrt(headDim).
func attend(q []float64, k, v [][]float64, shared int, out []float64) {
	scores := make([]float64, len(k))
	for j := range k {
		for d, key := range head(k[j], shared, len(q)) {
			scores[j] += q[d] * key
		}
		scores[j] /= math.Sqrt(float64(len(q)))
	}
	for j, weight := range softmax(scores) {
		for d, value := range head(v[j], shared, len(q)) {
			out[d] += weight * value
		}
	}
}

// rotate norms each head if the architecture does, and turns pairs i and i + headDim/2 by position times
// frequency i.
func (m *Model) rotate(x [][]float64, normName string) {
	c := &m.Config
	frequencies := c.Rope.InverseFrequencies(c.HeadDim)
	var weight []float32
	if c.QKNorm {
		weight = m.Weights(normName + ".weight")
	}
	for position, row := range x {
		for h := range len(row) / c.HeadDim {
			one := head(row, h, c.HeadDim)
			if weight != nil {
				m.normHead(one, weight)
			}
			for i, frequency := range frequencies {
				sin, cos := math.Sincos(float64(position) * frequency)
				sin, cos = sin*c.Rope.AttentionFactor, cos*c.Rope.AttentionFactor
				a, b := one[i], one[i+c.HeadDim/2]
				one[i], one[i+c.HeadDim/2] = a*cos-b*sin, b*cos+a*sin
			}
		}
	}
}

// gated is the feed-forward part: down(silu(gate) * up).
func (m *Model) gated(x [][]float64, prefix string) [][]float64 {
	bias := m.Config.MLPBias
	gate, up := m.linear(x, prefix+"gate_proj", bias), m.linear(x, prefix+"up_proj", bias)
	for i, row := range gate {
		for j, g := range row {
			row[j] = g / (1 + math.Exp(-g)) * up[i][j]
		}
		m.round(row)
	}
	return m.linear(gate, prefix+"down_proj", bias)
}

// round rounds a row to bf16 if the model is to be rounded.
func (m *Model) round(x []float64) {
	if !m.Round {
		return
	}
	for i, v := range x {
		x[i] = float64(model.FromBF16(model.ToBF16(float32(v))))
	}
}

// head is the part of a row that belongs to one head.
func head(row []float64, h, dim int) []float64 { return row[h*dim : (h+1)*dim] }

func softmax(scores []float64) []float64 {
	sum := LogSumExp(scores)
	out := make([]float64, len(scores))
	for i, s := range scores {
		out[i] = math.Exp(s - sum)
	}
	return out
}

func add(x, delta [][]float64) {
	for i := range x {
		for j, d := range delta[i] {
			x[i][j] += d
		}
	}
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}
