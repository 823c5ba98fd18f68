package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
	"tokenrouter/exec/native"
)

// alignment of tensors, GGUF's default.
const alignment = 32

// ggmlNames turns the names of tensors into those of llama.cpp (gguf-py, tensor_mapping.py).
var ggmlNames = strings.NewReplacer(
	"model.embed_tokens", "token_embd", "model.layers.", "blk.", "model.norm", "output_norm",
	"lm_head", "output",
	"input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm",
	"self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v",
	"self_attn.o_proj", "attn_output", "self_attn.q_norm", "attn_q_norm", "self_attn.k_norm", "attn_k_norm",
	"mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down",
)

// writeGGUF writes a Qwen3 model with random weights to a GGUF file, version 3: matrices in bf16, vectors in
// float32. It has no tokenizer, only a vocabulary's size.
func writeGGUF(path string, c model.Config, seed uint64) (err error) {
	if c.Architecture != model.Qwen3 {
		return fmt.Errorf("peer: architecture %v, want %v", c.Architecture, model.Qwen3)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	if _, err := w.Write(padded(header(c))); err != nil {
		return err
	}
	source := native.Random{Config: c, Seed: seed}
	for _, e := range c.Expected() {
		raw, _, err := source.Tensor(e)
		if err != nil {
			return err
		}
		if len(e.Shape) == 1 {
			raw = widened(raw)
		}
		if _, err := w.Write(padded(raw)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// header is all that stands before the tensors.
func header(c model.Config) []byte {
	var keys, tensors bytes.Buffer
	count := uint64(0)
	key := func(name string, kind gguf.Kind, value any) {
		count++
		put(&keys, name, uint32(kind), value)
	}
	key("general.architecture", gguf.KindString, "qwen3")
	key("tokenizer.ggml.model", gguf.KindString, "none")
	for _, size := range []struct {
		name string
		n    int
	}{
		{"vocab_size", c.Vocab}, {"context_length", c.Positions}, {"embedding_length", c.Hidden},
		{"block_count", c.Layers}, {"feed_forward_length", c.Intermediate},
		{"attention.head_count", c.Heads}, {"attention.head_count_kv", c.KVHeads},
		{"attention.key_length", c.HeadDim}, {"attention.value_length", c.HeadDim},
	} {
		key("qwen3."+size.name, gguf.KindUint32, uint32(size.n))
	}
	key("qwen3.attention.layer_norm_rms_epsilon", gguf.KindFloat32, float32(c.NormEpsilon))
	key("qwen3.rope.freq_base", gguf.KindFloat32, float32(c.Rope.Theta))
	offset := int64(0)
	for _, e := range c.Expected() {
		kind, size := gguf.BF16, int64(2)
		if len(e.Shape) == 1 {
			kind, size = gguf.F32, 4
		}
		put(&tensors, ggmlNames.Replace(e.Name), uint32(len(e.Shape)))
		for _, n := range slices.Backward(e.Shape) { // columns first
			put(&tensors, n)
			size *= n
		}
		put(&tensors, uint32(kind), offset)
		offset += (size + alignment - 1) / alignment * alignment
	}
	var b bytes.Buffer
	put(&b, []byte("GGUF"), uint32(3), uint64(len(c.Expected())), count, keys.Bytes(), tensors.Bytes())
	return b.Bytes()
}

// put writes values as they lie in the file.
func put(w io.Writer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(w, uint64(len(s)), []byte(s))
			continue
		}
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			panic(err) // a buffer takes everything of fixed size
		}
	}
}

func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&(alignment-1))...) }

// widened turns bf16 into float32, whose upper half it is.
func widened(raw []byte) []byte {
	wide := make([]byte, 0, 2*len(raw))
	for i := 0; i < len(raw); i += 2 {
		wide = append(wide, 0, 0, raw[i], raw[i+1])
	}
	return wide
}
