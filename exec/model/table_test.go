package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small are changes that make the published configuration a model of two layers with 4 words.
func small(pairs ...string) map[string]string {
	changes := map[string]string{"num_hidden_layers": "2", "hidden_size": "6", "num_attention_heads": "3",
		"num_key_value_heads": "1", "head_dim": "4", "intermediate_size": "5", "vocab_size": "4",
		"bos_token_id": "0", "eos_token_id": "1"}
	for i := 0; i < len(pairs); i += 2 {
		changes[pairs[i]] = pairs[i+1]
	}
	return changes
}

// constant is a tensor whose numbers are all x, in bf16.
func constant(e Expected, x float32) Declared {
	elements, _ := shapeBytes(e.Shape, "U8")
	return Declared{e.Name, BF16, e.Shape, func(w io.Writer) error {
		for range elements {
			if err := binary.Write(w, binary.LittleEndian, ToBF16(x)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// shard writes a file of tensors.
func shard(t *testing.T, dir, name string, tensors []Declared) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteFile(&b, nil, tensors); err != nil {
		t.Fatal(err)
	}
	put(t, dir, name, b.Bytes())
}

// folder writes a small model whose every tensor holds ones, with its weights changed by edit.
func folder(t *testing.T, changes map[string]string, edit func(tensors []Declared) []Declared) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, configFile, with(t, changes))
	c := parsed(t, changes)
	var tensors []Declared
	for _, e := range c.Expected() {
		tensors = append(tensors, constant(e, 1))
	}
	if edit != nil {
		tensors = edit(tensors)
	}
	shard(t, dir, weightsFile, tensors)
	return dir
}

// first returns the first number of a tensor.
func first(t *testing.T, f *Folder, name string) float32 {
	t.Helper()
	tensor, ok := f.Lookup(name)
	if !ok {
		t.Fatalf("no tensor %s", name)
	}
	return FromBF16(binary.LittleEndian.Uint16(f.Bytes(tensor)))
}

func opened(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestExpectedShapes: Qwen3-0.6B's published shapes, and heads whose width is not that of the stream.
func TestExpectedShapes(t *testing.T) {
	for _, test := range []struct {
		name       string
		changes    map[string]string
		q, kv, out []int64
	}{
		{"Qwen3-0.6B", nil, []int64{2048, 1024}, []int64{1024, 1024}, []int64{1024, 2048}},
		{"3 heads of 4 at width 6", small(), []int64{12, 6}, []int64{4, 6}, []int64{6, 12}},
	} {
		c := parsed(t, test.changes)
		shapes := map[string][]int64{}
		for _, e := range c.Expected() {
			shapes[strings.TrimPrefix(e.Name, "model.layers.1.self_attn.")] = e.Shape
		}
		for part, want := range map[string][]int64{"q_proj.weight": test.q, "k_proj.weight": test.kv,
			"v_proj.weight": test.kv, "o_proj.weight": test.out} {
			if !slices.Equal(shapes[part], want) {
				t.Errorf("%s: %s has the shape %d, want %d", test.name, part, shapes[part], want)
			}
		}
	}
	// Qwen3-0.6B's model card says 0.6 billion parameters, 0.44 billion without the embedding; by arithmetic:
	// 28 * (1024*128*(2*16+2*8) + 3*1024*3072 + 2*1024 + 2*128) + 1024 + 151936*1024.
	if c := parsed(t, nil); c.Parameters() != 440_467_456+155_582_464 {
		t.Errorf("%d parameters, want 596049920", c.Parameters())
	}
}

// TestExpectedLayer lists one layer of each architecture, biases included.
func TestExpectedLayer(t *testing.T) {
	layer := func(c Config) string {
		var names []string
		for _, e := range c.Expected() {
			if name, ok := strings.CutPrefix(e.Name, "model.layers.0."); ok {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	for _, test := range []struct{ class, kind, bias, want string }{
		{"Qwen3ForCausalLM", "qwen3", "false", "input_layernorm.weight self_attn.q_proj.weight " +
			"self_attn.k_proj.weight self_attn.v_proj.weight self_attn.q_norm.weight self_attn.k_norm.weight " +
			"self_attn.o_proj.weight post_attention_layernorm.weight mlp.gate_proj.weight mlp.up_proj.weight " +
			"mlp.down_proj.weight"},
		{"Qwen2ForCausalLM", "qwen2", "false", "input_layernorm.weight self_attn.q_proj.weight " +
			"self_attn.q_proj.bias self_attn.k_proj.weight self_attn.k_proj.bias self_attn.v_proj.weight " +
			"self_attn.v_proj.bias self_attn.o_proj.weight post_attention_layernorm.weight mlp.gate_proj.weight " +
			"mlp.up_proj.weight mlp.down_proj.weight"},
		{"LlamaForCausalLM", "llama", "true", "input_layernorm.weight self_attn.q_proj.weight " +
			"self_attn.q_proj.bias self_attn.k_proj.weight self_attn.k_proj.bias self_attn.v_proj.weight " +
			"self_attn.v_proj.bias self_attn.o_proj.weight self_attn.o_proj.bias post_attention_layernorm.weight " +
			"mlp.gate_proj.weight mlp.up_proj.weight mlp.down_proj.weight"},
	} {
		c := parsed(t, small("architectures", `["`+test.class+`"]`, "model_type", `"`+test.kind+`"`,
			"attention_bias", test.bias))
		if diff := cmp.Diff(test.want, layer(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.class, diff)
		}
	}
}

// TestOpenTied: all four ways in which head and tie_word_embeddings can meet, and an absent key.
func TestOpenTied(t *testing.T) {
	head := constant(Expected{"lm_head.weight", []int64{4, 6}}, 2)
	addHead := func(tensors []Declared) []Declared { return append(tensors, head) }
	noHead := func(tensors []Declared) []Declared { return tensors[:len(tensors)-1] }
	for _, test := range []struct {
		name, tie string
		edit      func([]Declared) []Declared
		want      string // of the error or of the only warning
		fails     bool
	}{
		{"tied, no head", "true", nil, "", false},
		{"tied, another head", "true", addHead, `"lm_head.weight" is left out: tie_word_embeddings is true`, false},
		{"untied, a head", "false", nil, "", false},
		{"untied, no head", "false", noHead, "lm_head.weight is missing (tie_word_embeddings is false)", true},
		{"absent, no head", "", noHead, "lm_head.weight is missing", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := Open(folder(t, small("tie_word_embeddings", test.tie), test.edit))
			if test.fails {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("error %v, want %q in it", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := strings.Join(f.Warnings, "\n")
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("warnings %q, want %q", got, test.want)
			}
			if _, ok := f.Lookup("lm_head.weight"); ok == f.Config.Tied {
				t.Errorf("lm_head.weight in the table: %v, tied: %v", ok, f.Config.Tied)
			}
		})
	}
}

func TestOpenTensors(t *testing.T) {
	replace := func(name string, with ...Declared) func([]Declared) []Declared {
		return func(tensors []Declared) []Declared {
			i := slices.IndexFunc(tensors, func(d Declared) bool { return d.Name == name })
			return slices.Replace(tensors, i, i+1, with...)
		}
	}
	extra := func(name string) func([]Declared) []Declared {
		return func(tensors []Declared) []Declared {
			return append(tensors, constant(Expected{name, []int64{1}}, 0))
		}
	}
	const up = "model.layers.1.mlp.up_proj.weight"
	whole := Declared{up, "I8", []int64{5, 6}, filled(make([]byte, 30)...)}
	for _, test := range []struct {
		name    string
		edit    func([]Declared) []Declared
		want    string // of the error
		warning string
	}{
		{"missing", replace(up), "model.safetensors: tensor " + up + " is missing", ""},
		{"shape", replace(up, constant(Expected{up, []int64{6, 5}}, 1)),
			up + " has the shape [6 5], want [5 6]", ""},
		{"flat", replace(up, constant(Expected{up, []int64{30}}, 1)), up + " has the shape [30], want [5 6]", ""},
		{"type", replace(up, whole), up + " has type I8, want BF16, F16 or F32", ""},
		{"bias", extra("model.layers.1.self_attn.q_proj.bias"),
			`"model.layers.1.self_attn.q_proj.bias" is not part of a Qwen3ForCausalLM`, ""},
		{"old buffer", extra("model.layers.1.self_attn.rotary_emb.inv_freq"), "", "inv_freq\" is left out"},
		{"layer beyond", extra("model.layers.2.eh_proj.weight"), "", "eh_proj.weight\" is left out"},
		{"other part", extra("visual.patch.weight"), "",
			"visual.patch.weight\" is left out: the model does not need"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := folder(t, small(), test.edit)
			f, err := Open(dir)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), dir) {
					t.Fatalf("error %v, want %s and %q in it", err, dir, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0], test.warning) {
				t.Errorf("warnings %q, want one with %q", f.Warnings, test.warning)
			}
		})
	}
}

// split writes the small model in two shards and an index, the second with model.norm.weight and all of
// layer 1. The index is changed by edit.
func split(t *testing.T, edit func(from map[string]string)) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, configFile, with(t, small()))
	c := parsed(t, small())
	shards := map[string][]Declared{}
	from := map[string]string{}
	for _, e := range c.Expected() {
		name := "model-00001-of-00002.safetensors"
		if strings.HasPrefix(e.Name, "model.layers.1.") || e.Name == "model.norm.weight" {
			name = "model-00002-of-00002.safetensors"
		}
		shards[name] = append(shards[name], constant(e, 1))
		from[e.Name] = name
	}
	// The second shard also holds a tensor that the index gives to the first, with another value.
	shards["model-00002-of-00002.safetensors"] = append(shards["model-00002-of-00002.safetensors"],
		constant(Expected{"model.embed_tokens.weight", []int64{4, 6}}, 2))
	for name, tensors := range shards {
		shard(t, dir, name, tensors)
	}
	if edit != nil {
		edit(from)
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]int{"total_size": 1}, "weight_map": from})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, indexFile, index)
	return dir
}

func TestOpenShards(t *testing.T) {
	dir := split(t, nil)
	// A stray file of all tensors, with other values, lies beside.
	c := parsed(t, small())
	var stray []Declared
	for _, e := range c.Expected() {
		stray = append(stray, constant(e, 3))
	}
	shard(t, dir, weightsFile, stray)
	f := opened(t, dir)
	for _, tensor := range f.Tensors {
		if got := first(t, f, tensor.Name); got != 1 {
			t.Errorf("%s begins with %v, want 1", tensor.Name, got)
		}
	}
	want := []string{
		filepath.Join(dir, "model-00002-of-00002.safetensors") +
			`: tensor "model.embed_tokens.weight" is left out: the index does not give it to this file`,
		filepath.Join(dir, weightsFile) + " is left out: the index does not name it",
	}
	if diff := cmp.Diff(want, f.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if f.WeightBytes() != 2*c.Parameters() {
		t.Errorf("%d bytes for %d parameters of bf16", f.WeightBytes(), c.Parameters())
	}
}

func TestOpenShardsRefuses(t *testing.T) {
	const second = "model-00002-of-00002.safetensors"
	cut := func(t *testing.T, dir string) {
		path := filepath.Join(dir, second)
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, content[:len(content)-1], 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, second)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		edit func(from map[string]string)
		then func(t *testing.T, dir string)
		want []string
	}{
		{"shard absent", nil, remove, []string{second, "model.layers.1.input_layernorm.weight", "no such file"}},
		{"shard cut by a byte", nil, cut, []string{second, `"model.embed_tokens.weight"`, "bytes of data"}},
		{"tensor not in its shard",
			func(from map[string]string) { from["model.layers.0.mlp.up_proj.weight"] = second },
			nil, []string{second, `no tensor "model.layers.0.mlp.up_proj.weight"`}},
		{"path up", func(from map[string]string) { from["model.norm.weight"] = "../x.safetensors" },
			nil, []string{`"model.norm.weight"`, `"../x.safetensors"`, "same folder"}},
		{"path down", func(from map[string]string) { from["model.norm.weight"] = "a/x.safetensors" },
			nil, []string{`"model.norm.weight"`, "same folder"}},
		{"control character", func(from map[string]string) { from["model.norm.weight"] = "\x1b.safetensors" },
			nil, []string{`"model.norm.weight"`, `"\x1b.safetensors"`, "same folder"}},
		{"other kind of file", func(from map[string]string) { from["model.norm.weight"] = "config.json" },
			nil, []string{`"model.norm.weight"`, "same folder"}},
		{"tensor not in the index", func(from map[string]string) { delete(from, "model.norm.weight") },
			nil, []string{indexFile, "model.norm.weight is missing"}},
		{"empty", func(from map[string]string) { clear(from) }, nil, []string{indexFile, "weight_map"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := split(t, test.edit)
			if test.then != nil {
				test.then(t, dir)
			}
			_, err := Open(dir)
			if err == nil {
				t.Fatal("opened")
			}
			for _, part := range append(test.want, dir) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestOpenRefusesFolders(t *testing.T) {
	empty := t.TempDir()
	if _, err := Open(empty); err == nil || !strings.Contains(err.Error(), filepath.Join(empty, configFile)) {
		t.Errorf("empty folder: error %v, want one of config.json", err)
	}
	put(t, empty, configFile, with(t, small()))
	want := fmt.Sprintf("%s has neither model.safetensors nor model.safetensors.index.json", empty)
	if _, err := Open(empty); err == nil || err.Error() != want {
		t.Errorf("no weights: error %v, want %s", err, want)
	}
	put(t, empty, indexFile, []byte(`{"weight_map":{"a":"b.safetensors","a":"c.safetensors"}}`))
	if _, err := Open(empty); err == nil || !strings.Contains(err.Error(), `"a" is given twice`) {
		t.Errorf("doubled key: error %v", err)
	}
	// A configuration that claims more layers than the file has is refused for the missing ones.
	dir := folder(t, small(), nil)
	put(t, dir, configFile, with(t, small("num_hidden_layers", "4096")))
	_, err := Open(dir)
	if err == nil || !strings.Contains(err.Error(), "model.layers.4095.input_layernorm.weight") {
		t.Errorf("4096 layers: error %v", err)
	}
}

// FuzzIndex: an accepted index names only files of its own folder.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{},"weight_map":{"a":"model-00001-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../x.safetensors"}}`))
	f.Fuzz(func(t *testing.T, index []byte) {
		from, err := parseIndex(index)
		if err != nil {
			return
		}
		for _, name := range from {
			if filepath.Base(name) != name || name == ".." || !filepath.IsLocal(name) {
				t.Fatalf("accepted the file %q from %q", name, index)
			}
		}
	})
}
