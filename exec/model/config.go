package model

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of a configuration. Products of them stay far below the end of an int64.
const (
	sizeMax      = 1 << 20 // hidden, heads, head_dim, intermediate
	layersMax    = 1 << 12
	vocabMax     = 1 << 24
	positionsMax = 1 << 30
)

// Architecture is one of the families of decoders that can be computed.
type Architecture int

// The architectures, by the name of their class in Hugging Face transformers.
const (
	Qwen3 Architecture = iota + 1 // Qwen3ForCausalLM: norms of queries and keys
	Qwen2                         // Qwen2ForCausalLM: biases of queries, keys and values
	Llama                         // LlamaForCausalLM
)

// architectures has the class and the model_type of each.
var architectures = []struct {
	architecture Architecture
	class, kind  string
	positions    int // default of max_position_embeddings in the class's configuration
}{
	{Qwen3, "Qwen3ForCausalLM", "qwen3", 32768},
	{Qwen2, "Qwen2ForCausalLM", "qwen2", 32768},
	{Llama, "LlamaForCausalLM", "llama", 2048},
}

// String is the name of the class.
func (a Architecture) String() string {
	for _, known := range architectures {
		if known.architecture == a {
			return known.class
		}
	}
	panic(fmt.Sprintf("model: no architecture %d", int(a)))
}

// Config is all that decides what a model computes, but for the weights.
type Config struct {
	Architecture  Architecture
	Layers        int
	Hidden        int // width of the residual stream
	Heads         int // of queries; query head h reads KV head h / (Heads/KVHeads)
	KVHeads       int
	HeadDim       int // even
	Intermediate  int // width of the gated feed-forward part
	Vocab         int // rows of the embedding and of the head
	NormEpsilon   float64
	Rope          Rope
	Tied          bool   // the head is the embedding
	QKVBias       bool   // q_proj, k_proj and v_proj have biases
	OutputBias    bool   // o_proj has one
	MLPBias       bool   // gate_proj, up_proj and down_proj have them
	QKNorm        bool   // RMS norms of each head of queries and keys, before RoPE
	Window        int    // tokens that a sliding layer sees, its own included; 0: no layer slides
	SlidingLayers []bool // by layer; nil: none slides
	Positions     int    // largest context in tokens
	BOS           int    // token id, -1: none
	EOS           []int  // ids of tokens that end an answer, ascending: all that either file names
}

// WindowOf returns how many tokens a layer sees, its own included; 0 is all.
func (c *Config) WindowOf(layer int) int {
	if c.SlidingLayers == nil || !c.SlidingLayers[layer] {
		return 0
	}
	return c.Window
}

// KVBytesPerToken returns the bytes of keys and values of one token over all layers, for elements of the
// given size (2 for bf16).
func (c *Config) KVBytesPerToken(bytesPerElement int) int64 {
	return 2 * int64(c.Layers) * int64(c.KVHeads) * int64(c.HeadDim) * int64(bytesPerElement)
}

// ParseConfig reads a config.json and, unless it is nil, a generation_config.json. What is absent or null
// gets the default of the class in Hugging Face transformers, with these exceptions: sizes must be there (for
// Qwen that includes num_key_value_heads), head_dim = null means hidden_size / num_attention_heads in every
// class, and no token is an end token unless a file says so. Tied is false where tie_word_embeddings is
// absent, as in all three classes. The end tokens of both files count. What changes the computation and is
// not supported is refused by its name.
func ParseConfig(config, generation []byte) (Config, error) {
	r, err := readObject(config)
	if err != nil {
		return Config{}, fmt.Errorf("config.json: %w", err)
	}
	c := configOf(r)
	if r.err != nil {
		return Config{}, fmt.Errorf("config.json: %w", r.err)
	}
	if generation == nil {
		return c, nil
	}
	g, err := readObject(generation)
	if err != nil {
		return Config{}, fmt.Errorf("generation_config.json: %w", err)
	}
	c.EOS = append(c.EOS, g.ids("eos_token_id", c.Vocab)...)
	slices.Sort(c.EOS)
	c.EOS = slices.Compact(c.EOS)
	if g.err != nil {
		return Config{}, fmt.Errorf("generation_config.json: %w", g.err)
	}
	return c, nil
}

func configOf(r *reader) Config {
	c := Config{}
	positions := 0
	c.Architecture, positions = architectureOf(r)
	if r.err != nil {
		return c
	}
	refuseUnsupported(r)
	c.Layers = r.whole("num_hidden_layers", 1, layersMax)
	c.Hidden = r.whole("hidden_size", 1, sizeMax)
	c.Heads = r.whole("num_attention_heads", 1, sizeMax)
	c.KVHeads = c.Heads
	if c.Architecture != Llama || r.has("num_key_value_heads") {
		c.KVHeads = r.whole("num_key_value_heads", 1, sizeMax)
	}
	c.Intermediate = r.whole("intermediate_size", 1, sizeMax)
	c.Vocab = r.whole("vocab_size", 1, vocabMax)
	c.NormEpsilon = r.numberOr("rms_norm_eps", 1e-6)
	c.Positions = r.wholeOr("max_position_embeddings", 1, positionsMax, positions)
	if r.err == nil {
		c.headsOf(r)
	}
	c.Rope = ropeOf(r)
	c.Tied = r.flagOr("tie_word_embeddings", false)
	c.QKNorm = c.Architecture == Qwen3
	bias := r.flagOr("attention_bias", false)
	c.QKVBias = bias || c.Architecture == Qwen2 // which has them whatever the key says
	c.OutputBias = bias && c.Architecture != Qwen2
	c.MLPBias = r.flagOr("mlp_bias", false)
	if c.MLPBias && c.Architecture != Llama {
		r.wrong("mlp_bias", "false: only a Llama can have it")
	}
	if r.err == nil {
		c.windowsOf(r)
	}
	c.EOS = r.ids("eos_token_id", c.Vocab)
	slices.Sort(c.EOS)
	c.EOS = slices.Compact(c.EOS)
	c.BOS = r.wholeOr("bos_token_id", 0, max(c.Vocab-1, 0), -1)
	return c
}

func architectureOf(r *reader) (Architecture, int) {
	classes := r.texts("architectures")
	if r.err == nil && len(classes) != 1 {
		r.fail("architectures", "has %d names, want one", len(classes))
	}
	if r.err != nil {
		return 0, 0
	}
	var names []string
	for _, known := range architectures {
		if known.class != classes[0] {
			names = append(names, known.class)
			continue
		}
		if kind := r.text("model_type"); kind != "" && kind != known.kind {
			r.fail("model_type", "= %q, want %q for a %s", kind, known.kind, known.class)
		}
		return known.architecture, known.positions
	}
	r.fail("architectures", "= %q is not supported, want %s", classes[0], strings.Join(names, ", "))
	return 0, 0
}

// headsOf reads head_dim and checks how heads share keys and values.
func (c *Config) headsOf(r *reader) {
	if c.Heads%c.KVHeads != 0 {
		r.fail("num_attention_heads", "= %d, want a multiple of num_key_value_heads = %d", c.Heads, c.KVHeads)
	}
	_, given := r.values["head_dim"]
	switch {
	case r.has("head_dim"):
		c.HeadDim = r.whole("head_dim", 2, sizeMax)
	case !given && c.Architecture == Qwen3:
		c.HeadDim = 128
	case c.Hidden%c.Heads != 0:
		r.fail("head_dim", "is absent and hidden_size = %d is no multiple of num_attention_heads = %d",
			c.Hidden, c.Heads)
	default:
		c.HeadDim = c.Hidden / c.Heads
	}
	if r.err == nil && (c.HeadDim%2 != 0 || c.HeadDim*c.Heads > sizeMax) {
		r.fail("head_dim", "= %d for %d heads, want an even number and a product of at most %d",
			c.HeadDim, c.Heads, sizeMax)
	}
}

// windowsOf reads which layers slide: those that layer_types says, else those from max_window_layers on.
func (c *Config) windowsOf(r *reader) {
	types := r.texts("layer_types")
	sliding := make([]bool, c.Layers)
	for i, kind := range types {
		switch {
		case i >= c.Layers:
		case kind == "sliding_attention":
			sliding[i] = true
		case kind != "full_attention":
			r.fail("layer_types", "has %q, want full_attention or sliding_attention", kind)
		}
	}
	if types != nil && len(types) != c.Layers {
		r.fail("layer_types", "has %d names for %d layers", len(types), c.Layers)
	}
	used := r.flagOr("use_sliding_window", false)
	if c.Architecture == Llama && (used || r.has("sliding_window")) {
		r.fail("sliding_window", "is not supported in a Llama")
	}
	if types == nil && used {
		for i := r.wholeOr("max_window_layers", 0, layersMax, 28); i < c.Layers; i++ {
			sliding[i] = true
		}
	}
	if !slices.Contains(sliding, true) || r.err != nil {
		return
	}
	if !used {
		r.fail("layer_types", "has sliding_attention, want it only with use_sliding_window")
		return
	}
	c.Window, c.SlidingLayers = r.wholeOr("sliding_window", 1, positionsMax, 4096), sliding
	if raw, given := r.values["sliding_window"]; given && string(raw) == "null" {
		c.Window, c.SlidingLayers = 0, nil // transformers: no window, all layers are full
	}
}

// unsupported are keys of other families and tools that change what is computed. An absent key, null and the
// neutral value named here are no matter.
var unsupported = map[string]string{
	"attn_logit_softcapping": "null", "final_logit_softcapping": "null", "logit_softcapping": "null",
	"logit_scale": "1", "logits_scaling": "1", "embedding_multiplier": "1", "residual_multiplier": "1",
	"attention_multiplier": "null", "query_pre_attn_scalar": "null", "scale_emb": "1", "scale_depth": "null",
	"partial_rotary_factor": "1", "rotary_pct": "1", "rope_interleaved": "false", "rope_scaling_factor": "1",
	"original_max_position_embeddings": "null", "no_rope_layers": "null", "clip_qkv": "null",
	"num_experts": "0", "num_local_experts": "0", "n_routed_experts": "0", "quantization_config": "null",
	"compression_config": "null", "attention_chunk_size": "null", "parallel_attn": "false", "alibi": "false",
	"qkv_bias": "null", "no_bias": "null", "use_qk_norm": "null", "qk_layernorm": "false", "auto_map": "null",
	"attention_sinks": "null", "is_encoder_decoder": "false", "add_cross_attention": "false",
}

func refuseUnsupported(r *reader) {
	if act := r.text("hidden_act"); act != "" && act != "silu" {
		r.wrong("hidden_act", `"silu": others are not supported`)
	}
	for _, key := range sortedKeys(unsupported) {
		raw := strings.TrimSuffix(string(r.values[key]), ".0")
		if r.has(key) && raw != unsupported[key] {
			r.fail(key, "= %s is not supported", kindOf(r.values[key]))
		}
	}
}
