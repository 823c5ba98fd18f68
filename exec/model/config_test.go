package model

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// published is Qwen3-0.6B's config.json, without the keys that only training and tools read.
const published = `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
	"bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
	"initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 40960,
	"max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
	"num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
	"sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
	"transformers_version": "4.51.0", "use_cache": true, "use_sliding_window": false, "vocab_size": 151936}`

// with returns the published configuration with other values; "" takes a key away.
func with(t testing.TB, changes map[string]string) []byte {
	t.Helper()
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(published), &values); err != nil {
		t.Fatal(err)
	}
	for key, value := range changes {
		if value == "" {
			delete(values, key)
			continue
		}
		values[key] = json.RawMessage(value)
	}
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parsed(t testing.TB, changes map[string]string) Config {
	t.Helper()
	c, err := ParseConfig(with(t, changes), nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseConfigPublished(t *testing.T) {
	got, err := ParseConfig([]byte(published), []byte(`{"bos_token_id": 151643, "do_sample": true,
		"eos_token_id": [151645, 151643], "pad_token_id": 151643, "temperature": 0.6, "top_k": 20}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Architecture: Qwen3, Layers: 28, Hidden: 1024, Heads: 16, KVHeads: 8, HeadDim: 128,
		Intermediate: 3072, Vocab: 151936, NormEpsilon: 1e-6,
		Rope: Rope{Theta: 1e6, Scaling: RopeUnscaled, AttentionFactor: 1},
		Tied: true, QKNorm: true, Positions: 40960, BOS: 151643, EOS: []int{151643, 151645}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	// 112 KiB a token: 2 * 28 layers * 8 heads * 128 * 2 bytes.
	if kv := got.KVBytesPerToken(2); kv != 112<<10 {
		t.Errorf("%d bytes of KV a token, want 112 KiB", kv)
	}
}

// llama3 is the scaling of Llama 3.2 1B and 3B.
const llama3 = `{"rope_type":"llama3","factor":32,"low_freq_factor":1,"high_freq_factor":4,
	"original_max_position_embeddings":8192}`

func TestParseConfigVariants(t *testing.T) {
	llama := map[string]string{"architectures": `["LlamaForCausalLM"]`, "model_type": `"llama"`,
		"use_sliding_window": "", "max_window_layers": "", "sliding_window": ""}
	qwen2 := map[string]string{"architectures": `["Qwen2ForCausalLM"]`, "model_type": `"qwen2"`}
	join := func(a map[string]string, pairs ...string) map[string]string {
		joined := maps.Clone(a)
		if joined == nil {
			joined = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			joined[pairs[i]] = pairs[i+1]
		}
		return joined
	}
	for _, test := range []struct {
		name    string
		changes map[string]string
		holds   func(c Config) bool
	}{
		{"head_dim null", join(nil, "head_dim", "null"), func(c Config) bool { return c.HeadDim == 64 }},
		{"head_dim absent, Qwen3", join(nil, "head_dim", ""), func(c Config) bool { return c.HeadDim == 128 }},
		{"head_dim absent, Llama", join(llama, "head_dim", ""), func(c Config) bool { return c.HeadDim == 64 }},
		{"head_dim absent, Qwen2", join(qwen2, "head_dim", ""), func(c Config) bool { return c.HeadDim == 64 }},
		{"28 heads of 4", join(nil, "num_attention_heads", "28", "num_key_value_heads", "4"),
			func(c Config) bool { return c.Heads == 28 && c.KVHeads == 4 }},
		{"KV heads absent, Llama", join(llama, "num_key_value_heads", ""),
			func(c Config) bool { return c.KVHeads == 16 }},
		{"tie absent, Qwen3", join(nil, "tie_word_embeddings", ""), func(c Config) bool { return !c.Tied }},
		{"tie absent, Qwen2", join(qwen2, "tie_word_embeddings", ""), func(c Config) bool { return !c.Tied }},
		{"tie absent, Llama", join(llama, "tie_word_embeddings", ""), func(c Config) bool { return !c.Tied }},
		{"Qwen3 without biases", nil, func(c Config) bool { return !c.QKVBias && !c.OutputBias && c.QKNorm }},
		{"Qwen3 with biases", join(nil, "attention_bias", "true"),
			func(c Config) bool { return c.QKVBias && c.OutputBias && !c.MLPBias }},
		{"Qwen2", qwen2, func(c Config) bool { return c.QKVBias && !c.OutputBias && !c.QKNorm }},
		{"Llama", llama, func(c Config) bool { return !c.QKVBias && !c.OutputBias && !c.MLPBias && !c.QKNorm }},
		{"Llama with biases", join(llama, "attention_bias", "true", "mlp_bias", "true"),
			func(c Config) bool { return c.QKVBias && c.OutputBias && c.MLPBias }},
		{"sliding_window not used", join(nil, "sliding_window", "4"),
			func(c Config) bool { return c.WindowOf(27) == 0 }},
		{"max_window_layers", join(nil, "sliding_window", "4", "use_sliding_window", "true",
			"num_hidden_layers", "2", "max_window_layers", "1"),
			func(c Config) bool { return c.WindowOf(0) == 0 && c.WindowOf(1) == 4 }},
		{"max_window_layers beyond all", join(nil, "sliding_window", "4", "use_sliding_window", "true"),
			func(c Config) bool { return c.WindowOf(27) == 0 && c.Window == 0 }},
		{"layer_types", join(nil, "sliding_window", "4", "use_sliding_window", "true", "num_hidden_layers", "2",
			"layer_types", `["sliding_attention","full_attention"]`),
			func(c Config) bool { return c.WindowOf(0) == 4 && c.WindowOf(1) == 0 }},
		{"EOS of two", join(nil, "eos_token_id", "[5,3,5]"),
			func(c Config) bool { return cmp.Equal(c.EOS, []int{3, 5}) }},
		{"no EOS", join(nil, "eos_token_id", "null"), func(c Config) bool { return len(c.EOS) == 0 }},
		{"no BOS", join(nil, "bos_token_id", ""), func(c Config) bool { return c.BOS == -1 }},
		{"rope default", join(nil, "rope_scaling", `{"rope_type":"default"}`),
			func(c Config) bool { return c.Rope.Scaling == RopeUnscaled }},
		{"rope old key", join(nil, "rope_scaling",
			`{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}`),
			func(c Config) bool { return c.Rope.Scaling == RopeYaRN && c.Rope.Factor == 4 }},
		{"rope_parameters", join(nil, "rope_theta", "", "rope_parameters",
			`{"rope_theta":500000.0,`+strings.TrimPrefix(llama3, "{")),
			func(c Config) bool { return c.Rope.Scaling == RopeLlama3 && c.Rope.Theta == 500000 }},
		{"quantization null", join(nil, "quantization_config", "null"),
			func(c Config) bool { return c.Layers == 28 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if c := parsed(t, test.changes); !test.holds(c) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for _, test := range []struct {
		name       string
		key, value string
		want       []string
	}{
		{"architecture", "architectures", `["MixtralForCausalLM"]`,
			[]string{"MixtralForCausalLM", "Qwen3ForCausalLM"}},
		{"no architecture", "architectures", "", []string{"architectures has 0 names"}},
		{"other model_type", "model_type", `"mistral"`, []string{`model_type = "mistral"`, `"qwen3"`}},
		{"heads not shared evenly", "num_key_value_heads", "3",
			[]string{"num_attention_heads = 16", "num_key_value_heads = 3"}},
		{"KV heads absent", "num_key_value_heads", "", []string{"num_key_value_heads is missing"}},
		{"no layers", "num_hidden_layers", "", []string{"num_hidden_layers is missing"}},
		{"layers 0", "num_hidden_layers", "0", []string{"num_hidden_layers = 0", "1 to"}},
		{"layers huge", "num_hidden_layers", "1e9", []string{"num_hidden_layers = 1e9"}},
		{"hidden negative", "hidden_size", "-1024", []string{"hidden_size = -1024"}},
		{"vocab huge", "vocab_size", "9223372036854775808", []string{"vocab_size = 9223372036854775808"}},
		{"odd head", "head_dim", "127", []string{"head_dim = 127"}},
		{"epsilon 0", "rms_norm_eps", "0", []string{"rms_norm_eps = 0"}},
		{"epsilon text", "rms_norm_eps", `"1e-6"`, []string{`rms_norm_eps = "1e-6"`}},
		{"theta huge", "rope_theta", "1e999", []string{"rope_theta = 1e999"}},
		{"activation", "hidden_act", `"gelu"`, []string{`hidden_act = "gelu"`}},
		{"quantized", "quantization_config", `{"bits":4}`, []string{"quantization_config", "not supported"}},
		{"experts", "num_experts", "8", []string{"num_experts = 8 is not supported"}},
		{"part of the head turns", "partial_rotary_factor", "0.5", []string{"partial_rotary_factor = 0.5"}},
		{"yarn without a factor", "rope_scaling", `{"type":"yarn"}`, []string{"rope_scaling.factor is missing"}},
		{"unknown scaling", "rope_scaling", `{"rope_type":"spiral"}`, []string{`"spiral" is not supported`}},
		{"linear", "rope_scaling", `{"type":"linear","factor":2}`, []string{`"linear" is not supported`}},
		{"scaling without a kind", "rope_scaling", `{"factor":2}`, []string{"rope_scaling.rope_type is missing"}},
		{"two kinds", "rope_scaling", `{"type":"linear","rope_type":"llama3"}`, []string{"linear", "llama3"}},
		{"scaling key", "rope_scaling", `{"rope_type":"default","mrope_section":[1]}`, []string{"mrope_section"}},
		{"scaling of text", "rope_scaling", `"llama3"`, []string{"rope_scaling", "want an object"}},
		{"low above high", "rope_scaling", `{"rope_type":"llama3","factor":8,"low_freq_factor":4,
			"high_freq_factor":4,"original_max_position_embeddings":8192}`, []string{"low_freq_factor = 4", "below"}},
		{"other theta", "rope_parameters", `{"rope_theta":10000,"rope_type":"default"}`,
			[]string{"another rope_theta"}},
		{"window kind", "layer_types", `["chunked_attention"]`, []string{"chunked_attention"}},
		{"sliding but not used", "layer_types", `[` + strings.Repeat(`"sliding_attention",`, 27) +
			`"full_attention"]`, []string{"layer_types has sliding_attention"}},
		{"layer_types short", "layer_types", `["full_attention"]`, []string{"1 names for 28 layers"}},
		{"EOS outside", "eos_token_id", "151936", []string{"eos_token_id has 151936", "151935"}},
		{"EOS negative", "eos_token_id", "[-1]", []string{"eos_token_id has -1"}},
		{"tie text", "tie_word_embeddings", `"yes"`, []string{`tie_word_embeddings = "yes"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := ParseConfig(with(t, map[string]string{test.key: test.value}), nil)
			if err == nil {
				t.Fatalf("taken: %+v", c)
			}
			for _, part := range append(test.want, "config.json: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestParseConfigRefusesFiles(t *testing.T) {
	for _, test := range []struct{ name, config, generation, want string }{
		{"empty", "", "", "config.json: is not JSON"},
		{"list", "[]", "", "config.json: a list, want an object"},
		{"key twice", `{"a":1,"a":2}`, "", `config.json: key "a" is given twice`},
		{"Llama with a window", string(with(t, map[string]string{"architectures": `["LlamaForCausalLM"]`,
			"model_type": "", "sliding_window": "4096"})), "", "sliding_window is not supported in a Llama"},
		{"generation EOS", published, `{"eos_token_id":"x"}`, "generation_config.json: eos_token_id"},
		{"generation cut", published, `{"eos_token_id":`, "generation_config.json: is not JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var generation []byte
			if test.generation != "" {
				generation = []byte(test.generation)
			}
			_, err := ParseConfig([]byte(test.config), generation)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// FuzzParseConfig: what is accepted can be computed: heads share evenly, sizes are in bounds.
func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(published), []byte(`{"eos_token_id":[1,2]}`))
	f.Add(with(f, map[string]string{"rope_scaling": llama3, "head_dim": "null"}), []byte(`{}`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c, err := ParseConfig(config, generation)
		if err != nil {
			return
		}
		if c.Heads%c.KVHeads != 0 || c.HeadDim < 2 || c.HeadDim%2 != 0 || c.Hidden < 1 || c.Hidden > sizeMax {
			t.Fatalf("accepted %+v from %q", c, config)
		}
		for _, w := range c.Rope.InverseFrequencies(min(c.HeadDim, 256)) {
			if !(w >= 0 && w <= 1e300) {
				t.Fatalf("frequency %v of %+v, from %q", w, c.Rope, config)
			}
		}
		for _, id := range c.EOS {
			if id < 0 || id >= c.Vocab {
				t.Fatalf("end token %d of %d, from %q", id, c.Vocab, config)
			}
		}
	})
}
