package gguf_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/gguf"
	"tokenrouter/exec/native"
)

// The file is read by the package that reads llama.cpp's own.
func TestWrittenWeights(t *testing.T) {
	const seed = 1
	c, err := model.ParseShape(model.ShapeTiny)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := gguf.Write(path, c, &native.Random{Config: c, Seed: seed}, nil); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []struct {
		key  string
		want uint64
	}{
		// Tiny has 4 layers, 4 heads of 64 on 2 of KV, and 320 tokens.
		{"qwen3.block_count", 4}, {"qwen3.embedding_length", 256}, {"qwen3.attention.head_count", 4},
		{"qwen3.attention.head_count_kv", 2}, {"qwen3.attention.key_length", 64}, {"qwen3.vocab_size", 320},
	} {
		if n, err := f.Uint(size.key); n != size.want || err != nil {
			t.Errorf("%s = %d, %v, want %d", size.key, n, err, size.want)
		}
	}
	// An embedding, a last norm, and 11 tensors a layer; the head is the embedding.
	if n := len(f.Tensors()); n != 4*11+2 {
		t.Errorf("%d tensors, want 46", n)
	}
	source := native.Random{Config: c, Seed: seed}
	for _, e := range []struct {
		name, ggml string
		kind       gguf.Type
	}{
		{"model.embed_tokens.weight", "token_embd.weight", gguf.BF16},
		{"model.layers.3.self_attn.o_proj.weight", "blk.3.attn_output.weight", gguf.BF16},
		{"model.layers.2.mlp.down_proj.weight", "blk.2.ffn_down.weight", gguf.BF16},
		{"model.layers.1.post_attention_layernorm.weight", "blk.1.ffn_norm.weight", gguf.F32},
		{"model.layers.0.self_attn.k_norm.weight", "blk.0.attn_k_norm.weight", gguf.F32},
		{"model.norm.weight", "output_norm.weight", gguf.F32},
	} {
		checkTensor(t, f, &source, e.name, e.ggml, e.kind)
	}
}

// What is written can be read back as a folder: the same configuration, the same texts, the end token.
func TestWrittenVocabulary(t *testing.T) {
	c, err := model.ParseShape("tiny,layers=1")
	if err != nil {
		t.Fatal(err)
	}
	v := &gguf.Tokens{EOS: c.Vocab - 1}
	for id := range c.Vocab {
		v.Texts = append(v.Texts, fmt.Sprintf("token%d", id))
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := gguf.Write(path, c, &native.Random{Config: c, Seed: 1}, v); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := f.Texts("tokenizer.ggml.tokens")
	if err != nil || !slices.Equal(got, v.Texts) {
		t.Errorf("texts %q, %v, want %q", got, err, v.Texts)
	}
	if n, err := f.Uint("tokenizer.ggml.eos_token_id"); n != uint64(c.Vocab-1) || err != nil {
		t.Errorf("end token %d, %v, want %d", n, err, c.Vocab-1)
	}
	v.Texts = v.Texts[1:]
	if err := gguf.Write(path, c, nil, v); err == nil || !strings.Contains(err.Error(), "319 texts") {
		t.Errorf("error %v, want one of 319 texts", err)
	}
}

func checkTensor(t *testing.T, f *gguf.File, source *native.Random, name, ggml string, kind gguf.Type) {
	t.Helper()
	at, ok := f.Lookup(ggml)
	if !ok || at.Type != kind {
		t.Fatalf("tensor %s is there: %v, in %v, want true, in %v", ggml, ok, at.Type, kind)
	}
	for _, e := range source.Config.Expected() {
		if e.Name != name {
			continue
		}
		want, _, err := source.Tensor(e)
		if err != nil {
			t.Fatal(err)
		}
		got, numbers := make([]float32, at.Rows()*at.Columns()), make([]float32, len(want)/2)
		if err := f.ReadRows(got, at, 0); err != nil {
			t.Fatal(err)
		}
		model.ToFloat32(numbers, want, model.BF16)
		if !slices.Equal(got, numbers) {
			t.Errorf("%s has other numbers than %s", ggml, name)
		}
		return
	}
	t.Fatalf("no tensor %s", name)
}
