package gguf

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/exec/model"
)

var update = flag.Bool("update", false, "write the golden files")

// converted converts w and returns the folder.
func converted(t *testing.T, w *written, d model.DType) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "model")
	if err := Convert(context.Background(), w.read(t), dir, Options{DType: d}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestConvertFiles compares the JSON files of the tiny model with testdata/tiny. transformers 5.24.0 reads
// that folder; its ids of " a<b>aa<|im_end|>" are 3 4 1 1 0.
func TestConvertFiles(t *testing.T) {
	dir := converted(t, tiny("llama", "smollm"), model.BF16)
	files := []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
	for _, name := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", "tiny", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestConvertConfig opens the folders: what the metadata say is what will be computed.
func TestConvertConfig(t *testing.T) {
	cases := []struct {
		name string
		file *written
		want func(c *model.Config)
	}{
		{"llama", tiny("llama", "smollm"), func(c *model.Config) { c.Architecture = model.Llama }},
		{"qwen2", biased(tiny("qwen2", "qwen2")), func(c *model.Config) {
			c.Architecture, c.QKVBias = model.Qwen2, true
		}},
		{"qwen3", normed(tiny("qwen3", "qwen2")), func(c *model.Config) {
			c.Architecture, c.QKNorm = model.Qwen3, true
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			folder, err := model.Open(converted(t, c.file, model.BF16))
			if err != nil {
				t.Fatal(err)
			}
			got := folder.Config
			if err := folder.Close(); err != nil || len(folder.Warnings) > 0 {
				t.Errorf("%v, warnings %q, want none", err, folder.Warnings)
			}
			want := model.Config{Layers: 1, Hidden: 8, Heads: 2, KVHeads: 1, HeadDim: 4, Intermediate: 6, Vocab: 6,
				NormEpsilon: 1e-5, Rope: got.Rope, Tied: true, Positions: 64, BOS: 4, EOS: []int{0}}
			c.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if got.Rope.Theta != 100000 {
				t.Errorf("theta = %g, want 100000", got.Rope.Theta)
			}
		})
	}
}

// TestConvertWeights has every tensor under its name, in both types, each number as it was; rows of queries
// and keys move in llama only.
func TestConvertWeights(t *testing.T) {
	queryRows := []int64{0, 2, 1, 3, 4, 6, 5, 7} // two heads of 4: pairs (0 1) (2 3) to (0 2) (1 3)
	for _, d := range []model.DType{model.BF16, model.F32} {
		w := tiny("llama", "smollm")
		weight(w, "output.weight", 6, 8)
		biased(w)
		weight(w, "blk.0.attn_output.bias", 8)
		file, err := model.OpenFile(filepath.Join(converted(t, w, d), "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for name, from := range map[string]string{
			"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
			"lm_head.weight":                                 "output.weight",
			"model.layers.0.input_layernorm.weight":          "blk.0.attn_norm.weight",
			"model.layers.0.self_attn.v_proj.weight":         "blk.0.attn_v.weight",
			"model.layers.0.self_attn.o_proj.weight":         "blk.0.attn_output.weight",
			"model.layers.0.self_attn.o_proj.bias":           "blk.0.attn_output.bias",
			"model.layers.0.mlp.gate_proj.weight":            "blk.0.ffn_gate.weight",
			"model.layers.0.mlp.up_proj.weight":              "blk.0.ffn_up.weight",
			"model.layers.0.mlp.down_proj.weight":            "blk.0.ffn_down.weight",
			"model.layers.0.self_attn.q_proj.bias":           "blk.0.attn_q.bias",
			"model.layers.0.self_attn.q_proj.weight":         "blk.0.attn_q.weight",
			"model.layers.0.self_attn.k_proj.weight":         "blk.0.attn_k.weight",
			"model.layers.0.self_attn.k_proj.bias":           "blk.0.attn_k.bias",
			"model.layers.0.self_attn.v_proj.bias":           "blk.0.attn_v.bias",
			"model.layers.0.post_attention_layernorm.weight": "blk.0.ffn_norm.weight"} {
			tensor, ok := file.Lookup(name)
			if !ok || tensor.DType != d {
				t.Fatalf("%s: %t as %s, want it as %s", name, ok, tensor.DType, d)
			}
			got := make([]float32, tensor.Elements())
			model.ToFloat32(got, file.Bytes(tensor), d)
			want := numbersOf(from, tensor.Shape...)
			if strings.Contains(name, "q_proj") || strings.Contains(name, "k_proj") {
				want = rowsOf(want, queryRows[:tensor.Shape[0]])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		if len(file.Tensors()) != 16 || file.Metadata["format"] != "pt" {
			t.Errorf("%d tensors, format %q, want 16 and pt", len(file.Tensors()), file.Metadata["format"])
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

func rowsOf(numbers []float32, rows []int64) []float32 {
	columns := len(numbers) / len(rows)
	var list []float32
	for _, row := range rows {
		list = append(list, numbers[int(row)*columns:int(row+1)*columns]...)
	}
	return list
}

// TestPermutationKeepsScores turns queries and keys at several distances, as llama.cpp does with pairs next
// to one another and as transformers does with pairs half a head apart: the products must be the same.
func TestPermutationKeepsScores(t *testing.T) {
	const heads, size = 2, 6
	turn := func(x []float64, first, second func(pair int) int, position int) {
		for pair := range size / 2 {
			angle := float64(position) * math.Pow(100, -2*float64(pair)/size)
			sin, cos := math.Sincos(angle)
			a, b := x[first(pair)], x[second(pair)]
			x[first(pair)], x[second(pair)] = a*cos-b*sin, b*cos+a*sin
		}
	}
	next := func(pair int) (int, int) { return 2 * pair, 2*pair + 1 }
	apart := func(pair int) (int, int) { return pair, size/2 + pair }
	score := func(q, k []float64, places func(int) (int, int), position int) float64 {
		first := func(pair int) int { i, _ := places(pair); return i }
		second := func(pair int) int { _, i := places(pair); return i }
		q, k = append([]float64{}, q...), append([]float64{}, k...)
		turn(q, first, second, position)
		turn(k, first, second, 3)
		sum := 0.0
		for i := range q {
			sum += q[i] * k[i]
		}
		return sum
	}
	file := [2][]float64{}
	for i := range heads * size {
		file[0] = append(file[0], float64(i*i%7)-3)
		file[1] = append(file[1], float64(i*5%11)-4)
	}
	folder := [2][]float64{}
	for i := range int64(heads * size) {
		for j := range folder {
			folder[j] = append(folder[j], file[j][rowOf(i, heads*size, heads)])
		}
	}
	for head := range heads {
		part := func(x []float64) []float64 { return x[head*size : (head+1)*size] }
		for _, position := range []int{3, 4, 11} {
			want := score(part(file[0]), part(file[1]), next, position)
			got := score(part(folder[0]), part(folder[1]), apart, position)
			if math.Abs(got-want) > 1e-12 {
				t.Errorf("head %d, position %d: %g, want %g", head, position, got, want)
			}
		}
	}
}

// TestConvertSameBytes: the same file gives the same folder.
func TestConvertSameBytes(t *testing.T) {
	a, b := converted(t, tiny("llama", "gpt-2"), model.F32), converted(t, tiny("llama", "gpt-2"), model.F32)
	entries, err := os.ReadDir(a)
	if err != nil || len(entries) != 5 {
		t.Fatalf("%d files, %v, want 5", len(entries), err)
	}
	for _, e := range entries {
		one, _ := os.ReadFile(filepath.Join(a, e.Name()))
		other, _ := os.ReadFile(filepath.Join(b, e.Name()))
		if len(one) == 0 || !bytes.Equal(one, other) {
			t.Errorf("%s: %d and %d bytes that differ", e.Name(), len(one), len(other))
		}
	}
}

// TestConvertLeavesNothing: a folder in use stays as it is, and what can not be finished is taken away.
func TestConvertLeavesNothing(t *testing.T) {
	infinite := newInfinite(t)
	stopped, stop := context.WithCancel(context.Background())
	stop()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, dir, want string
		ctx             context.Context
		file            *File
	}{
		{"folder in use", full, "the folder is not empty: " + full + " has mine in it", context.Background(),
			tiny("llama", "gpt-2").read(t)},
		{"infinity", filepath.Join(full, "a"), "a.gguf: tensor output_norm.weight: number 0 is +Inf",
			context.Background(), infinite},
		{"stopped", filepath.Join(full, "a"), "context canceled", stopped, tiny("llama", "gpt-2").read(t)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Convert(c.ctx, c.file, c.dir, Options{DType: model.BF16})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
			entries, err := os.ReadDir(full)
			if err != nil || len(entries) != 1 {
				t.Errorf("%d entries, %v, want mine alone", len(entries), err)
			}
		})
	}
}

// newInfinite is the tiny model with an infinity where a norm begins.
func newInfinite(t *testing.T) *File {
	b := tiny("llama", "gpt-2").bytes()
	f, err := Read(bytes.NewReader(b), int64(len(b)), "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	norm, _ := f.Lookup("output_norm.weight")
	copy(b[norm.Offset:], []byte{0, 0, 0x80, 0x7f})
	return f
}

// TestConvertEmptyFolder takes the place of a folder that is there and empty, and tells how far it is.
func TestConvertEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	var shown []int
	options := Options{DType: model.BF16, Show: func(done, total int) { shown = append(shown, done, total) }}
	if err := Convert(context.Background(), tiny("llama", "gpt-2").read(t), dir, options); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 5 {
		t.Errorf("%d files, %v, want 5", len(entries), err)
	}
	if len(shown) != 22 || shown[0] != 1 || shown[20] != 11 || shown[21] != 11 {
		t.Errorf("shown %d, want 1 to 11 of 11", shown)
	}
}

// decoded is v as its JSON reads.
func decoded(t *testing.T, v any) any {
	t.Helper()
	text, err := document(v)
	if err != nil {
		t.Fatal(err)
	}
	var d any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}
