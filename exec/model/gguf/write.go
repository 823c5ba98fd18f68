package gguf

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
)

// ggmlNames turns the names of tensors into those of llama.cpp (gguf-py, tensor_mapping.py).
var ggmlNames = strings.NewReplacer(
	"model.embed_tokens", "token_embd", "model.layers.", "blk.", "model.norm", "output_norm",
	"lm_head", "output",
	"input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm",
	"self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v",
	"self_attn.o_proj", "attn_output", "self_attn.q_norm", "attn_q_norm", "self_attn.k_norm", "attn_k_norm",
	"mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down",
)

// Source gives the tensors that are written, as they lie in a model folder. It need not keep one when it is
// asked for the next.
type Source interface {
	Tensor(e model.Expected) (raw []byte, kind model.DType, err error)
}

// Tokens are what a written file says of its vocabulary.
type Tokens struct {
	Texts []string // of all ids, in the byte-level alphabet
	EOS   int      // the token that ends an answer
}

// Write writes a Qwen3 model to a GGUF file, version 3, for llama.cpp: matrices in bf16, vectors in float32.
// v nil: no tokenizer, only a vocabulary's size. Otherwise ids have texts, but there are no merges: the file
// is for those who send ids.
func Write(path string, c model.Config, source Source, v *Tokens) (err error) {
	if c.Architecture != model.Qwen3 {
		return fmt.Errorf("%s: architecture %v, want %v", path, c.Architecture, model.Qwen3)
	}
	if v != nil && (len(v.Texts) != c.Vocab || v.EOS < 0 || v.EOS >= c.Vocab) {
		return fmt.Errorf("%s: %d texts and end token %d, want %d and one of them", path, len(v.Texts), v.EOS,
			c.Vocab)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	if _, err := w.Write(padded(header(c, v))); err != nil {
		return err
	}
	for _, e := range c.Expected() {
		raw, kind, err := source.Tensor(e)
		if err != nil {
			return err
		}
		if kind != model.BF16 {
			return fmt.Errorf("%s: tensor %s is in %v, want %v", path, e.Name, kind, model.BF16)
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
func header(c model.Config, v *Tokens) []byte {
	var keys, tensors bytes.Buffer
	count := uint64(0)
	key := func(name string, kind Kind, value any) {
		count++
		put(&keys, name, uint32(kind), value)
	}
	key("general.architecture", KindString, "qwen3")
	if v == nil {
		key("tokenizer.ggml.model", KindString, "none")
	} else {
		key("tokenizer.ggml.model", KindString, "gpt2")
		key("tokenizer.ggml.pre", KindString, "qwen2")
		key("tokenizer.ggml.tokens", KindArray, texts(v.Texts))
		key("tokenizer.ggml.merges", KindArray, texts(nil))
		key("tokenizer.ggml.eos_token_id", KindUint32, uint32(v.EOS))
		key("tokenizer.ggml.add_bos_token", KindBool, uint8(0))
	}
	for _, size := range []struct {
		name string
		n    int
	}{
		{"vocab_size", c.Vocab}, {"context_length", c.Positions}, {"embedding_length", c.Hidden},
		{"block_count", c.Layers}, {"feed_forward_length", c.Intermediate},
		{"attention.head_count", c.Heads}, {"attention.head_count_kv", c.KVHeads},
		{"attention.key_length", c.HeadDim}, {"attention.value_length", c.HeadDim},
	} {
		key("qwen3."+size.name, KindUint32, uint32(size.n))
	}
	key("qwen3.attention.layer_norm_rms_epsilon", KindFloat32, float32(c.NormEpsilon))
	key("qwen3.rope.freq_base", KindFloat32, float32(c.Rope.Theta))
	offset := int64(0)
	for _, e := range c.Expected() {
		kind, size := BF16, int64(2)
		if len(e.Shape) == 1 {
			kind, size = F32, 4
		}
		put(&tensors, ggmlNames.Replace(e.Name), uint32(len(e.Shape)))
		for _, n := range slices.Backward(e.Shape) { // columns first
			put(&tensors, n)
			size *= n
		}
		put(&tensors, uint32(kind), offset)
		offset += (size + alignmentDefault - 1) / alignmentDefault * alignmentDefault
	}
	var b bytes.Buffer
	put(&b, []byte("GGUF"), uint32(3), uint64(len(c.Expected())), count, keys.Bytes(), tensors.Bytes())
	return b.Bytes()
}

// texts is an array of strings.
type texts []string

// put writes values as they lie in the file.
func put(w io.Writer, values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			put(w, uint64(len(v)), []byte(v))
			continue
		case texts:
			put(w, uint32(KindString), uint64(len(v)))
			for _, s := range v {
				put(w, s)
			}
			continue
		}
		if err := binary.Write(w, binary.LittleEndian, v); err != nil {
			panic(err) // a buffer takes everything of fixed size
		}
	}
}

func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&(alignmentDefault-1))...) }

// widened turns bf16 into float32, whose upper half it is.
func widened(raw []byte) []byte {
	wide := make([]byte, 0, 2*len(raw))
	for i := 0; i < len(raw); i += 2 {
		wide = append(wide, 0, 0, raw[i], raw[i+1])
	}
	return wide
}
