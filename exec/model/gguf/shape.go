package gguf

import (
	"fmt"
	"slices"
	"strings"
)

// family is an architecture that can be converted.
type family struct {
	name    string // general.architecture
	class   string // in Hugging Face transformers
	permute bool   // rows of attn_q and attn_k are in the order of interleaved RoPE
	qkNorm  bool   // queries and keys have norms
	biases  biases
}

// biases says which attention biases a family has.
type biases int

const (
	noBiases       biases = iota + 1
	qkvBiases             // queries, keys and values
	optionalBiases        // queries, keys, values and output, or none
)

var families = []family{
	{name: "llama", class: "LlamaForCausalLM", permute: true, biases: optionalBiases},
	{name: "qwen2", class: "Qwen2ForCausalLM", biases: qkvBiases},
	{name: "qwen3", class: "Qwen3ForCausalLM", qkNorm: true, biases: noBiases},
}

// Limits of a shape; products of two stay far below the end of an int64.
const (
	layersMax = 1 << 12
	sizeMax   = 1 << 24
)

// shape is what the metadata say of a model.
type shape struct {
	family
	layers, hidden, intermediate, heads, kvHeads, headDim, positions, vocab int64
	normEpsilon, ropeBase                                                   float64
	tied, biased                                                            bool
}

// readShape reads and checks the metadata of a model of a known family. A key of the architecture that it
// does not know is refused: it may change what the model computes.
func readShape(f *File) (shape, error) {
	var s shape
	name, err := f.Text("general.architecture")
	if err != nil {
		return s, err
	}
	i := slices.IndexFunc(families, func(known family) bool { return known.name == name })
	if i < 0 {
		return s, fmt.Errorf("key general.architecture = %q is not supported, want llama, qwen2 or qwen3", name)
	}
	s.family = families[i]
	r := &shapeReader{f: f, prefix: name + "."}
	s.layers = r.whole("block_count", layersMax)
	s.hidden = r.whole("embedding_length", sizeMax)
	s.intermediate = r.whole("feed_forward_length", sizeMax)
	s.heads = r.whole("attention.head_count", sizeMax)
	s.kvHeads = r.wholeOr("attention.head_count_kv", sizeMax, s.heads)
	s.positions = r.whole("context_length", 1<<30)
	s.normEpsilon = r.float("attention.layer_norm_rms_epsilon")
	s.ropeBase = 10000
	if r.has("rope.freq_base") {
		s.ropeBase = r.float("rope.freq_base")
	}
	if r.err != nil {
		return s, r.err
	}
	s.headDim = r.wholeOr("attention.key_length", sizeMax, s.hidden/s.heads)
	if s.headDim%2 != 0 || s.heads%s.kvHeads != 0 || !r.has("attention.key_length") && s.hidden%s.heads != 0 {
		return s, fmt.Errorf(
			"%d heads and %d KV heads of %d (embedding_length %d), want an even size and whole groups", s.heads,
			s.kvHeads, s.headDim, s.hidden)
	}
	r.only("attention.value_length", s.headDim)
	r.only("rope.dimension_count", s.headDim)
	r.only("expert_count", 0)
	r.only("expert_used_count", 0)
	r.noScaling()
	r.vocabulary(&s)
	r.nothingElse()
	_, head := f.Lookup("output.weight")
	_, bias := f.Lookup("blk.0.attn_q.bias")
	s.tied = !head
	s.biased = s.biases == qkvBiases || s.biases == optionalBiases && bias
	return s, r.err
}

// shapeReader reads keys of the architecture. The first error stays.
type shapeReader struct {
	f      *File
	prefix string
	known  []string
	err    error
}

func (r *shapeReader) has(key string) bool {
	r.known = append(r.known, r.prefix+key)
	return r.f.Has(r.prefix + key)
}

func (r *shapeReader) whole(key string, most int64) int64 {
	r.has(key)
	n, err := r.f.Uint(r.prefix + key)
	if err == nil && (n < 1 || n > uint64(most)) {
		err = fmt.Errorf("key %s%s = %d, want 1 to %d", r.prefix, key, n, most)
	}
	r.keep(err)
	if r.err != nil {
		return 1
	}
	return int64(n)
}

func (r *shapeReader) wholeOr(key string, most, otherwise int64) int64 {
	if !r.has(key) {
		return otherwise
	}
	return r.whole(key, most)
}

func (r *shapeReader) float(key string) float64 {
	r.has(key)
	x, err := r.f.Float(r.prefix + key)
	if err == nil && x <= 0 {
		err = fmt.Errorf("key %s%s = %g, want a number above 0", r.prefix, key, x)
	}
	r.keep(err)
	return x
}

// only refuses a key with any value but want.
func (r *shapeReader) only(key string, want int64) {
	if !r.has(key) {
		return
	}
	n, err := r.f.Uint(r.prefix + key)
	if err == nil && n != uint64(want) {
		err = fmt.Errorf("key %s%s = %d, want %d", r.prefix, key, n, want)
	}
	r.keep(err)
}

func (r *shapeReader) noScaling() {
	if !r.has("rope.scaling.type") {
		return
	}
	kind, err := r.f.Text(r.prefix + "rope.scaling.type")
	if err == nil && kind != "none" {
		err = fmt.Errorf("key %srope.scaling.type = %q is not supported, want none", r.prefix, kind)
	}
	r.keep(err)
}

// vocabulary takes the number of tokens from the embedding.
func (r *shapeReader) vocabulary(s *shape) {
	embedding, ok := r.f.Lookup("token_embd.weight")
	if !ok {
		r.keep(fmt.Errorf("no tensor token_embd.weight"))
		return
	}
	s.vocab = embedding.Rows()
	r.only("vocab_size", s.vocab)
}

// nothingElse refuses keys of the architecture that were not asked for.
func (r *shapeReader) nothingElse() {
	for _, key := range r.f.Keys() {
		if strings.HasPrefix(key, r.prefix) && !slices.Contains(r.known, key) {
			r.keep(fmt.Errorf("key %s is not supported", key))
		}
	}
}

func (r *shapeReader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}
