package query

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/exec/model"
)

// content is a folder of testdata that tests change.
type content struct {
	metadata map[string]any
	names    []string
	shapes   map[string][]int64
	data     map[string][]float32
	types    map[string]model.DType // F32 unless it says otherwise
}

func contentOf(t testing.TB, k Kind) *content {
	t.Helper()
	c := &content{shapes: map[string][]int64{}, data: map[string][]float32{}, types: map[string]model.DType{}}
	text, err := os.ReadFile(filepath.Join(folderOf(k), metadataFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c.metadata); err != nil {
		t.Fatal(err)
	}
	f, err := model.OpenFile(filepath.Join(folderOf(k), weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, tensor := range f.Tensors() {
		data := make([]float32, tensor.Elements())
		model.ToFloat32(data, f.Bytes(tensor), tensor.DType)
		c.put(tensor.Name, data, tensor.Shape...)
	}
	return c
}

func (c *content) put(name string, data []float32, shape ...int64) {
	if c.data[name] == nil {
		c.names = append(c.names, name)
	}
	c.shapes[name], c.data[name] = shape, data
}

func (c *content) drop(name string) {
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })
}

// folder writes a router folder.
func (c *content) folder(t testing.TB) string {
	t.Helper()
	var tensors []model.Declared
	for _, name := range c.names {
		kind := c.types[name]
		if kind == "" {
			kind = model.F32
		}
		tensors = append(tensors, model.Declared{Name: name, DType: kind, Shape: c.shapes[name],
			Fill: func(w io.Writer) error {
				if kind == "I64" {
					return binary.Write(w, binary.LittleEndian, make([]int64, len(c.data[name])))
				}
				return binary.Write(w, binary.LittleEndian, c.data[name])
			}})
	}
	var b bytes.Buffer
	if err := model.WriteFile(&b, nil, tensors); err != nil {
		t.Fatal(err)
	}
	metadata, err := json.Marshal(c.metadata)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, metadata, b.Bytes())
}

func written(t testing.TB, metadata, weights []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, file := range map[string][]byte{weightsFile: weights, metadataFile: metadata} {
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOpen: what a folder says is kept.
func TestOpen(t *testing.T) {
	for _, k := range kinds {
		r := open(t, folderOf(k))
		if r.Kind != k || r.SmallModel != "small" || r.LargeModel != "none" || r.Note != "random weights" ||
			r.LargeModelHash != hashPrefix+strings.Repeat("0", 64) {
			t.Errorf("%v is opened as %+v", k, r)
		}
		if diff := cmp.Diff([]string{"arith", "symbols"}, r.Tasks()); diff != "" {
			t.Errorf("%v: tasks %s", k, diff)
		}
	}
}

// badFolder is a folder with a change that must be refused, and what the error must say.
type badFolder struct {
	name   string
	kind   Kind
	change func(c *content)
	want   []string
}

func set(key string, value any) func(c *content) {
	return func(c *content) { c.metadata[key] = value }
}

var badTensors = []badFolder{
	{"no mean", MF, func(c *content) { c.drop("embedding.mean") }, []string{"has no tensor embedding.mean"}},
	{"deviation 0", MF, func(c *content) { c.data["embedding.deviation"][2] = 0 },
		[]string{"embedding.deviation has 0 at place 2"}},
	{"negative deviation", SW, func(c *content) { c.data["embedding.deviation"][0] = -1 },
		[]string{"embedding.deviation has -1 at place 0"}},
	{"three models", MF, func(c *content) { c.put("P.weight", make([]float32, 18), 3, 6) },
		[]string{"P.weight has the shape [3 6], want [2 6]"}},
	{"another width", MF, set("width", 7), []string{"P.weight has the shape [2 6], want [2 7]"}},
	{"embedding without the 1", MF,
		func(c *content) { c.put("text_proj.0.weight", make([]float32, 144), 6, 24) },
		[]string{"text_proj.0.weight has the shape [6 24], want [6 25]"}},
	{"bias of mf", MF, func(c *content) { c.put("classifier.0.bias", make([]float32, 1), 1) },
		[]string{`tensor "classifier.0.bias" is unknown`}},
	{"NaN", MF, func(c *content) { c.data["text_proj.0.weight"][5] = float32(math.NaN()) },
		[]string{"text_proj.0.weight has NaN at place 5"}},
	{"infinite", SW, func(c *content) { c.data["battles.embedding"][1] = float32(math.Inf(-1)) },
		[]string{"battles.embedding has -Inf at place 1"}},
	{"outcome", SW, func(c *content) { c.data["battles.outcome"][19] = 0.25 },
		[]string{"battles.outcome has 0.25 at place 19, want 0, 0.5 or 1"}},
	{"fewer battles", SW, set("battles", 19), []string{"battles.embedding has the shape [20 25], want [19 25]"}},
	{"outcomes of others", SW, func(c *content) { c.put("battles.outcome", make([]float32, 21), 21) },
		[]string{"battles.outcome has the shape [21], want [20]"}},
	{"whole numbers", SW, func(c *content) { c.types["battles.outcome"] = "I64" },
		[]string{"battles.outcome has type I64, want BF16, F16 or F32"}},
	{"more layers", BERT, set("layers", 2), []string{"has no tensor model.layers.1.input_layernorm.weight"}},
	{"far more layers", BERT, set("layers", 1024), []string{"has no tensor model.layers.1."}},
	{"other heads", BERT, set("heads", 4), []string{"q_norm.weight has the shape [64], want [32]"}},
	{"another intermediate", BERT, set("intermediate", 25), []string{"mlp.gate_proj.weight", "want [25 128]"}},
	{"two labels", BERT, func(c *content) { c.put("classifier.weight", make([]float32, 256), 2, 128) },
		[]string{"classifier.weight has the shape [2 128], want [3 128]"}},
	{"a head", BERT, func(c *content) { c.put("lm_head.weight", make([]float32, 128), 1, 128) },
		[]string{`tensor "lm_head.weight" is unknown`}},
	{"another rank", Causal, set("rank", 3), []string{"lora_A has the shape [2 24], want [3 24]"}},
	{"a change less", Causal, func(c *content) { c.drop("model.layers.1.mlp.up_proj.lora_B") },
		[]string{"has no tensor model.layers.1.mlp.up_proj.lora_B"}},
	{"a change more", Causal,
		func(c *content) { c.put("model.layers.2.mlp.up_proj.lora_B", make([]float32, 2), 2) },
		[]string{`"model.layers.2.mlp.up_proj.lora_B" is unknown`}},
	{"labels of another width", Causal, func(c *content) { c.put("labels.weight", make([]float32, 75), 3, 25) },
		[]string{"labels.weight has the shape [3 25], want [3 24]"}},
	{"no tensors", Causal, func(c *content) { c.names = nil }, []string{"has no tensor model.layers.0"}},
}

func TestOpenRefusesTensors(t *testing.T) {
	for _, c := range badTensors {
		t.Run(c.name, func(t *testing.T) {
			f := contentOf(t, c.kind)
			c.change(f)
			dir := f.folder(t)
			refused(t, dir, "testdata/small", append(c.want, filepath.Join(dir, weightsFile)))
		})
	}
}

func refused(t *testing.T, dir, small string, want []string) {
	t.Helper()
	r, err := Open(dir, small)
	if err == nil {
		t.Fatalf("opened as %v", r.Kind)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}

func unsorted() any {
	list := slices.Repeat([]any{0.5}, quantileCount)
	list[7] = 0.25
	return map[string]any{"arith": list}
}

func quantilesOf(x any) any { return map[string]any{"arith": slices.Repeat([]any{x}, quantileCount)} }

var badMetadata = []badFolder{
	{"no kind", MF, func(c *content) { delete(c.metadata, "kind") },
		[]string{`kind = null, want one of "mf", "sw", "bert", "causal"`}},
	{"another kind", MF, set("kind", "random"), []string{`kind = "random", want one of "mf"`}},
	{"kind in another case", MF, set("kind", "MF"), []string{`kind = "MF", want one of "mf"`}},
	{"kind of another", MF, set("kind", "sw"), []string{"battles is missing"}},
	{"unknown key", MF, set("threshold", 0.5), []string{`key "threshold" is unknown to a router of kind mf`}},
	{"key in another case", MF, set("Width", 6), []string{`key "Width" is unknown`}},
	{"key of another kind", SW, set("rank", 2), []string{`key "rank" is unknown to a router of kind sw`}},
	{"no hidden size", MF, func(c *content) { delete(c.metadata, "hidden_size") },
		[]string{"hidden_size is missing"}},
	{"hidden size null", MF, set("hidden_size", nil), []string{"hidden_size = null, want a whole number"}},
	{"hidden size of text", MF, set("hidden_size", "24"), []string{`hidden_size = "24", want a whole number`}},
	{"width 0", MF, set("width", 0), []string{"width = 0, want a whole number from 1 to 1048576"}},
	{"width 6.5", MF, set("width", 6.5), []string{"width = 6.5, want a whole number"}},
	{"huge width", MF, set("width", 1<<40), []string{"width = 1099511627776, want a whole number"}},
	{"too many layers", BERT, set("layers", 1025), []string{"layers = 1025, want a whole number from 1 to"}},
	{"heads that do not divide", BERT, set("heads", 3), []string{"width = 128 for 3 heads"}},
	{"no layers", SW, set("embedding_layers", 0), []string{"embedding_layers = 0, want a whole number"}},
	{"layers that the small model lacks", MF, set("embedding_layers", 3),
		[]string{"embedding_layers = 3, but testdata/small has 2 layers"}},
	{"odd heads", BERT, set("heads", 128), []string{"width = 128 for 128 heads, want an even number for each"}},
	{"name of numbers", MF, set("small_model", 1), []string{"small_model = 1, want text"}},
	{"name null", MF, set("note", nil), []string{"note = null, want text"}},
	{"no hash", MF, func(c *content) { delete(c.metadata, "small_model_hash") },
		[]string{"small_model_hash is missing"}},
	{"short hash", MF, set("small_model_hash", "sha256:00"),
		[]string{`small_model_hash = "sha256:00", want "sha256:"`}},
	{"hash of another kind", MF, set("large_model_hash", "sha512:"+strings.Repeat("0", 64)),
		[]string{"large_model_hash = ", "64 hexadecimal digits"}},
	{"hash in upper case", MF, set("tokenizer_hash", "sha256:"+strings.Repeat("A", 64)),
		[]string{"tokenizer_hash = ", "in lower case"}},
	{"no quantiles", MF, set("quantiles", map[string]any{}), []string{"quantiles = {}, want an object"}},
	{"quantiles in a list", MF, set("quantiles", []any{0.5}), []string{"quantiles = [0.5], want an object"}},
	{"one quantile", MF, set("quantiles", map[string]any{"arith": []any{0.5}}),
		[]string{`quantiles = 1 numbers of task "arith", want 101`}},
	{"falling", MF, set("quantiles", unsorted()), []string{`numbers of task "arith"`, "ascending"}},
	{"quantiles above 1", MF, set("quantiles", quantilesOf(1.5)), []string{"from 1.5 to 1.5"}},
	{"quantiles below 0", MF, set("quantiles", quantilesOf(-0.5)), []string{"from -0.5 to -0.5"}},
	{"quantiles null", MF, set("quantiles", quantilesOf(nil)), []string{`null at place 0 of task "arith"`}},
	{"quantiles of text", MF, set("quantiles", quantilesOf("0.5")), []string{"quantiles = {", "want an object"}},
}

func TestOpenRefusesMetadata(t *testing.T) {
	for _, c := range badMetadata {
		t.Run(c.name, func(t *testing.T) {
			f := contentOf(t, c.kind)
			c.change(f)
			dir := f.folder(t)
			refused(t, dir, "testdata/small", append(c.want, filepath.Join(dir, metadataFile)))
		})
	}
	for _, c := range []struct{ name, document, want string }{
		{"empty", "", "is not JSON"},
		{"list", "[]", "no JSON object"},
		{"null", "null", "no JSON object"},
		{"cut", `{"kind": "mf"`, "not JSON"},
		{"two documents", "{}{}", "after the JSON document"},
		{"key twice", `{"kind": "mf", "kind": "sw"}`, `key "kind" is given twice`},
		{"not UTF-8", "{\"note\": \"\xff\"}", "not UTF-8"},
		{"huge", strings.Repeat(" ", metadataBytesMax) + "{}", "bytes, want at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := written(t, []byte(c.document), nil)
			refused(t, dir, "testdata/small", []string{c.want, filepath.Join(dir, metadataFile)})
		})
	}
}

func TestOpenRefusesMissing(t *testing.T) {
	for _, missing := range []string{metadataFile, weightsFile} {
		dir := contentOf(t, MF).folder(t)
		if err := os.Remove(filepath.Join(dir, missing)); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "testdata/small", []string{missing})
	}
	refused(t, folderOf(MF), t.TempDir(), []string{folderOf(MF), "config.json"})
}

// smallCopy is testdata/small with a change of its files.
func smallCopy(t *testing.T, change func(files map[string][]byte)) string {
	t.Helper()
	dir, files := t.TempDir(), map[string][]byte{}
	for _, name := range []string{"config.json", smallWeights, smallTokenizer} {
		text, err := os.ReadFile(filepath.Join("testdata/small", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	change(files)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestOpenRefusesOthers: a small model that the router was not trained for, for every kind.
func TestOpenRefusesOthers(t *testing.T) {
	weights := func(files map[string][]byte) { files[smallWeights][len(files[smallWeights])-1] ^= 1 }
	tokenizer := func(files map[string][]byte) { files[smallTokenizer] = []byte("{ }") }
	for _, k := range kinds {
		metadata := filepath.Join(folderOf(k), metadataFile)
		dir := smallCopy(t, weights)
		refused(t, folderOf(k), dir, []string{metadata, "small_model_hash = ", filepath.Join(dir, smallWeights),
			"trained for another model.safetensors (its small model: small)"})
		dir = smallCopy(t, tokenizer)
		refused(t, folderOf(k), dir, []string{metadata, "tokenizer_hash = ", filepath.Join(dir, smallTokenizer)})
		dir = smallCopy(t, func(files map[string][]byte) { delete(files, smallTokenizer) })
		refused(t, folderOf(k), dir, []string{filepath.Join(dir, smallTokenizer)})
		f := contentOf(t, k)
		f.metadata["hidden_size"] = 32
		refused(t, f.folder(t), "testdata/small", []string{"hidden_size = 32", "hidden states of 24 numbers"})
	}
	f := contentOf(t, BERT)
	f.metadata["vocab"] = 64
	refused(t, f.folder(t), "testdata/small", []string{"vocab = 64", "vocabulary of 48"})
	dir := smallCopy(t, func(files map[string][]byte) {
		slides := strings.NewReplacer(`"use_sliding_window": false`, `"use_sliding_window": true`,
			`"sliding_window": null`, `"sliding_window": 4, "max_window_layers": 0`)
		files["config.json"] = []byte(slides.Replace(string(files["config.json"])))
	})
	refused(t, folderOf(MF), dir, []string{dir, "want Qwen3ForCausalLM without biases and sliding windows"})
}

// FuzzParseMetadata: what is accepted has a kind, sizes in bounds, hashes and ascending quantiles.
func FuzzParseMetadata(f *testing.F) {
	for _, k := range kinds {
		text, err := os.ReadFile(filepath.Join(folderOf(k), metadataFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"kind":"mf","kind":"sw"}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		m, err := parseMetadata(document)
		if err != nil {
			return
		}
		sizes := map[Kind][]int{MF: {m.width, m.embeddingLayers}, SW: {m.battles}, Causal: {m.rank},
			BERT: {m.layers, m.width, m.heads, m.intermediate, m.vocab}}[m.kind]
		if len(sizes) == 0 || slices.Min(append(sizes, m.hidden)) < 1 || slices.Max(sizes) > sizeMax {
			t.Errorf("%q is taken as %+v", document, m)
		}
		for _, hash := range []string{m.smallHash, m.largeHash, m.tokenizerHash} {
			if len(hash) != len(hashPrefix)+64 {
				t.Errorf("%q has the hash %q", document, hash)
			}
		}
		for task, list := range m.quantiles {
			if len(list) != quantileCount || !slices.IsSorted(list) || list[0] < 0 || list[100] > 1 {
				t.Errorf("%q has the quantiles %v of %q", document, list, task)
			}
		}
	})
}

// FuzzOpen: a folder of any bytes is refused or scores; nothing panics.
func FuzzOpen(f *testing.F) {
	for _, k := range kinds {
		metadata, err := os.ReadFile(filepath.Join(folderOf(k), metadataFile))
		if err != nil {
			f.Fatal(err)
		}
		weights, err := os.ReadFile(filepath.Join(folderOf(k), weightsFile))
		if err != nil {
			f.Fatal(err)
		}
		if k != BERT { // large
			f.Add(metadata, weights)
		}
	}
	f.Fuzz(func(t *testing.T, metadata, weights []byte) {
		r, err := Open(written(t, metadata, weights), "testdata/small")
		if err != nil {
			return
		}
		if score, err := r.Score([]int32{1, 2, 3}); err == nil && !(score >= 0 && score <= 1) {
			t.Errorf("score %v", score)
		}
	})
}
