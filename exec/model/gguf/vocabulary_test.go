package gguf

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/exec/model"
)

// TestSplitters has the pre-tokenizer of each published tokenizer.json, from the files on the Hugging Face
// Hub: openai-community/gpt2, HuggingFaceTB/SmolLM2-135M-Instruct, Qwen/Qwen2-0.5B, meta-llama/Llama-3.2-1B.
func TestSplitters(t *testing.T) {
	const tail = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	const start = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	for _, c := range []struct {
		pre        string
		normalizer any
		pattern    string // "": ByteLevel's own
		digits     bool
		whole      bool
	}{
		{"gpt-2", nil, "", false, false},
		{"smollm", nil, "", true, false},
		{"qwen2", map[string]any{"type": "NFC"}, start + `\p{N}` + tail, false, false},
		{"llama-bpe", nil, start + `\p{N}{1,3}` + tail, false, true},
	} {
		t.Run(c.pre, func(t *testing.T) {
			v, err := readVocabulary(tiny("llama", c.pre).read(t), 6)
			if err != nil {
				t.Fatal(err)
			}
			file := decoded(t, tokenizerJSON(&v)).(map[string]any)
			bytesOf := func(regex bool) map[string]any {
				return map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
					"use_regex": regex}
			}
			var want any = bytesOf(true)
			switch {
			case c.digits:
				want = map[string]any{"type": "Sequence", "pretokenizers": []any{
					map[string]any{"type": "Digits", "individual_digits": true}, bytesOf(true)}}
			case c.pattern != "":
				want = map[string]any{"type": "Sequence", "pretokenizers": []any{
					map[string]any{"type": "Split", "pattern": map[string]any{"Regex": c.pattern},
						"behavior": "Isolated", "invert": false}, bytesOf(false)}}
			}
			if diff := cmp.Diff(want, file["pre_tokenizer"]); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.normalizer, file["normalizer"]); diff != "" {
				t.Error(diff)
			}
			if whole := file["model"].(map[string]any)["ignore_merges"]; whole != c.whole {
				t.Errorf("ignore_merges = %v, want %t", whole, c.whole)
			}
		})
	}
}

// TestAddedAround puts the first token, 4 ("<b>"), and the last, 0 ("<|im_end|>"), around a text: Llama 3
// adds the first unless the file says otherwise.
func TestAddedAround(t *testing.T) {
	around := func(v vocabulary) string {
		list, _ := decoded(t, v.postProcessor()).(map[string]any)["single"].([]any)
		var names []string
		for _, item := range list {
			for _, of := range item.(map[string]any) {
				names = append(names, of.(map[string]any)["id"].(string))
			}
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		name string
		file *written
		want string
	}{
		{"smollm", tiny("llama", "smollm"), ""},
		{"llama 3", tiny("llama", "llama-bpe"), "<b> A"},
		{"llama 3, none", tiny("llama", "llama-bpe").key("tokenizer.ggml.add_bos_token", KindBool, uint8(0)), ""},
		{"both", tiny("llama", "llama-bpe").key("tokenizer.ggml.add_eos_token", KindBool, uint8(1)),
			"<b> A <|im_end|>"},
	} {
		v, err := readVocabulary(c.file.read(t), 6)
		if err != nil {
			t.Fatal(err)
		}
		if got := around(v); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEnds: the tokens that end a turn or a message end an answer too.
func TestEnds(t *testing.T) {
	w := tiny("llama", "smollm").key("tokenizer.ggml.eot_token_id", KindUint32, uint32(4)).
		key("tokenizer.ggml.eom_token_id", KindUint32, uint32(0))
	v, err := readVocabulary(w.read(t), 6)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{0.0, 4.0}, decoded(t, v.endIDs())); diff != "" {
		t.Error(diff)
	}
}

// TestConvertRefuses has what the folder can not say, or the file says wrongly.
func TestConvertRefuses(t *testing.T) {
	known := func() *written { return tiny("llama", "smollm") }
	other := func(key, value string) *written { return newWritten().key(key, KindString, value) }
	cases := []struct {
		name string
		file *written
		want string
	}{
		{"no architecture", newWritten(), "no key general.architecture"},
		{"architecture", other("general.architecture", "gemma"),
			`key general.architecture = "gemma" is not supported`},
		{"no layers", other("general.architecture", "llama"), "no key llama.block_count"},
		{"pre", tiny("llama", "tekken"),
			`key tokenizer.ggml.pre = "tekken" is not supported, want one of gpt-2, smollm`},
		{"experts", known().key("llama.expert_count", KindUint32, uint32(8)),
			"key llama.expert_count = 8, want 0"},
		{"scaling", known().key("llama.rope.scaling.type", KindString, "yarn"),
			`key llama.rope.scaling.type = "yarn" is not supported, want none`},
		{"part of a head", known().key("llama.rope.dimension_count", KindUint32, uint32(2)),
			"key llama.rope.dimension_count = 2, want 4"},
		{"unknown key", known().key("llama.attention.sliding_window", KindUint32, uint32(2)),
			"key llama.attention.sliding_window is not supported"},
		{"other rows", known().key("llama.vocab_size", KindUint32, uint32(7)), "key llama.vocab_size = 7, want 6"},
		{"unknown tensor", known().floats("rope_freqs.weight", []float32{1, 1}, 2),
			"tensor rope_freqs.weight is not supported in llama"},
		{"tensor missing", tiny("qwen3", "qwen2"), "no tensor blk.0.attn_q_norm.weight"},
		{"bias missing", tiny("qwen2", "qwen2"), "no tensor blk.0.attn_q.bias"},
		{"bias of one", func() *written { return biased(known()) }(), "no tensor blk.0.attn_output.bias"},
		{"shape", known().floats("output.weight", make([]float32, 48), 8, 6),
			"tensor output.weight has shape [8 6] (rows first), want [6 8]"},
		{"token id", known().key("tokenizer.ggml.eot_token_id", KindUint32, uint32(6)),
			"key tokenizer.ggml.eot_token_id = 6, want less than the 6 tokens"},
		{"space", known().key("tokenizer.ggml.add_space_prefix", KindBool, uint8(1)),
			"key tokenizer.ggml.add_space_prefix = true is not supported"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "model")
			err := Convert(context.Background(), c.file.read(t), dir, Options{DType: model.BF16})
			if err == nil || !strings.HasPrefix(err.Error(), "a.gguf: "+c.want) {
				t.Errorf("error %v, want a.gguf: %s", err, c.want)
			}
		})
	}
}

// TestVocabularyRefuses has vocabularies that no tokenizer could be made of.
func TestVocabularyRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens []string
		types  []int32
		merge  string
		want   string
	}{
		{"type", []string{"a", "b"}, []int32{1, 6}, "", `token 1 ("b") has type 6, want 1 (normal)`},
		{"twice", []string{"a", "a"}, []int32{1, 3}, "", `tokens 0 and 1 are both "a"`},
		{"one part", []string{"a"}, []int32{1}, "a", `merge 0 is "a", want two tokens`},
		{"three parts", []string{"a"}, []int32{1}, "a a a", `merge 0 is "a a a", want two tokens`},
		{"no such token", []string{"a"}, []int32{1}, "a a", `merge 0 is "a a", but "aa" is no token`},
		{"unused token", []string{"a", "aa"}, []int32{1, 5}, "a a", `merge 0 is "a a", but "aa" is no token`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := vocabulary{tokens: c.tokens, types: c.types}
			if c.merge != "" {
				v.merges = []string{c.merge}
			}
			if err := v.check(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
