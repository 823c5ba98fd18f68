package gguf

import "math/rand/v2"

// tiny is a model of one layer, width 8, two query heads and one KV head of 4, five tokens
// and one unused. The numbers are
// multiples of 1/8, which bfloat16 has exactly.
func tiny(architecture, pre string) *written {
	w := newWritten()
	count := func(key string, n int) { w.key(architecture+"."+key, KindUint32, uint32(n)) }
	w.key("general.architecture", KindString, architecture)
	count("block_count", 1)
	count("embedding_length", 8)
	count("feed_forward_length", 6)
	count("attention.head_count", 2)
	count("attention.head_count_kv", 1)
	count("context_length", 64)
	w.key(architecture+".attention.layer_norm_rms_epsilon", KindFloat32, float32(1e-5))
	w.key(architecture+".rope.freq_base", KindFloat32, float32(100000))
	w.key("tokenizer.ggml.model", KindString, "gpt2").key("tokenizer.ggml.pre", KindString, pre)
	w.texts("tokenizer.ggml.tokens", "<|im_end|>", "a", "Ġ", "Ġa", "<b>", "[PAD5]")
	w.key("tokenizer.ggml.token_type", KindArray, uint32(KindInt32), uint64(6), []int32{3, 1, 1, 1, 4, 5})
	w.texts("tokenizer.ggml.merges", "Ġ a")
	w.key("tokenizer.ggml.bos_token_id", KindUint32, uint32(4))
	w.key("tokenizer.ggml.eos_token_id", KindUint32, uint32(0))
	w.key("tokenizer.chat_template", KindString, "{{ '<|im_end|>' }}")
	weight(w, "token_embd.weight", 6, 8)
	weight(w, "output_norm.weight", 8)
	weight(w, "blk.0.attn_norm.weight", 8)
	weight(w, "blk.0.attn_q.weight", 8, 8)
	weight(w, "blk.0.attn_k.weight", 4, 8)
	weight(w, "blk.0.attn_v.weight", 4, 8)
	weight(w, "blk.0.attn_output.weight", 8, 8)
	weight(w, "blk.0.ffn_norm.weight", 8)
	weight(w, "blk.0.ffn_gate.weight", 6, 8)
	weight(w, "blk.0.ffn_up.weight", 6, 8)
	weight(w, "blk.0.ffn_down.weight", 8, 6)
	return w
}

// weight adds a tensor of numbers that its name decides on.
func weight(w *written, name string, shape ...int64) {
	w.floats(name, numbersOf(name, shape...), shape...)
}

func numbersOf(name string, shape ...int64) []float32 {
	seed := uint64(0)
	for _, b := range []byte(name) {
		seed = seed*31 + uint64(b)
	}
	random := rand.New(rand.NewPCG(seed, 1))
	elements := int64(1)
	for _, n := range shape {
		elements *= n
	}
	numbers := make([]float32, elements)
	for i := range numbers {
		numbers[i] = float32(random.IntN(64)-32) / 8
	}
	return numbers
}

// biased adds the biases of queries, keys and values.
func biased(w *written) *written {
	weight(w, "blk.0.attn_q.bias", 8)
	weight(w, "blk.0.attn_k.bias", 4)
	weight(w, "blk.0.attn_v.bias", 4)
	return w
}

// normed adds the norms of queries and keys.
func normed(w *written) *written {
	weight(w, "blk.0.attn_q_norm.weight", 4)
	weight(w, "blk.0.attn_k_norm.weight", 4)
	return w
}
