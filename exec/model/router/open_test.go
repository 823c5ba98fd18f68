package router

import (
	"bytes"
	"encoding/binary"
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

// file is the content of a weights file that tests change.
type file struct {
	names  []string
	shapes map[string][]int64
	data   map[string][]float32
	types  map[string]model.DType // F32 unless it says otherwise
}

// fileOf has a made router's tensors.
func fileOf(t testing.TB, s Shape) *file {
	t.Helper()
	dir := t.TempDir()
	if err := Make(dir, s, 1); err != nil {
		t.Fatal(err)
	}
	f, err := model.OpenFile(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &file{shapes: map[string][]int64{}, data: map[string][]float32{}, types: map[string]model.DType{}}
	for _, tensor := range f.Tensors() {
		data := make([]float32, tensor.Elements())
		model.ToFloat32(data, f.Bytes(tensor), tensor.DType)
		c.put(tensor.Name, data, tensor.Shape...)
	}
	return c
}

func (c *file) put(name string, data []float32, shape ...int64) {
	if c.data[name] == nil {
		c.names = append(c.names, name)
	}
	c.shapes[name], c.data[name] = shape, data
}

func (c *file) drop(name string) {
	c.names = slices.DeleteFunc(c.names, func(n string) bool { return n == name })
	delete(c.data, name)
}

// folder writes a router folder.
func (c *file) folder(t testing.TB, metadata string) string {
	t.Helper()
	var tensors []model.Declared
	for _, name := range c.names {
		kind := c.types[name]
		if kind == "" {
			kind = model.F32
		}
		tensors = append(tensors, model.Declared{Name: name, DType: kind, Shape: c.shapes[name],
			Fill: func(w io.Writer) error {
				return binary.Write(w, binary.LittleEndian, encoded(c.data[name], kind))
			}})
	}
	var b bytes.Buffer
	if err := model.WriteFile(&b, nil, tensors); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{weightsFile: b.Bytes(), metadataFile: []byte(metadata)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func encoded(data []float32, kind model.DType) any {
	halves := make([]uint16, len(data))
	switch kind {
	case model.BF16:
		for i, x := range data {
			halves[i] = model.ToBF16(x)
		}
		return halves
	case "I64":
		return make([]int64, len(data))
	}
	return data
}

var tinyShapes = []Shape{{R2R, 6, 10, 8, 2, 12}, {Algorithm: CITER, Hidden: 6, Width: 9},
	{Algorithm: CoLLM, Hidden: 6}}

const r2rJSON = `{"algorithm": "r2r", "hidden_size": 6}`
const citerJSON = `{"algorithm": "citer", "hidden_size": 6}`
const collmJSON = `{"algorithm": "collm", "hidden_size": 6}`

// TestOpen: sizes that router.json leaves out come from the tensors; what it says is kept.
func TestOpen(t *testing.T) {
	for i, metadata := range []string{r2rJSON, citerJSON, collmJSON} {
		s := tinyShapes[i]
		t.Run(s.Algorithm.String(), func(t *testing.T) {
			r := open(t, fileOf(t, s).folder(t, metadata))
			if r.Shape != s || r.HasThreshold || len(r.Text) != 0 || len(r.Warnings) != 0 {
				t.Errorf("opened as %+v, want %v and nothing else", r, s)
			}
		})
	}
	metadata := `{"algorithm": "r2r", "hidden_size": 6, "top_logits": 10, "width": 8, "blocks": 2,
		"expanded_width": 12, "threshold": 0.406, "small_model": "S", "large_model_hash": "sha256:0", "note": ""}`
	r := open(t, fileOf(t, tinyShapes[0]).folder(t, metadata))
	want := map[string]string{"small_model": "S", "large_model_hash": "sha256:0", "note": ""}
	if !r.HasThreshold || r.Threshold != 0.406 || cmp.Diff(want, r.Text) != "" {
		t.Errorf("threshold %v (%v), text %q, want 0.406 and %q", r.Threshold, r.HasThreshold, r.Text, want)
	}
}

// TestOpenTensors: all parts are there with their shapes and the numbers of the file.
func TestOpenTensors(t *testing.T) {
	c := fileOf(t, tinyShapes[0])
	c.types["backbone.blocks.1.mlp.3.weight"] = model.BF16
	r := open(t, c.folder(t, r2rJSON))
	if len(r.Tensors) != 6+2*6+4 {
		t.Errorf("%d tensors, want 22", len(r.Tensors))
	}
	for _, want := range []struct {
		part          Part
		block         int
		rows, columns int
		name          string
	}{
		{Top, 0, 6, 10, "logits_projection.weight"}, {TopBias, 0, 1, 6, "logits_projection.bias"},
		{Combined, 0, 8, 18, "combined_projection.weight"}, {Input, 0, 8, 8, "backbone.input_projection.weight"},
		{NormBias, 1, 1, 8, "backbone.blocks.1.layer_norm.bias"},
		{First, 0, 12, 8, "backbone.blocks.0.mlp.0.weight"}, {FirstBias, 1, 1, 12, "backbone.blocks.1.mlp.0.bias"},
		{Second, 0, 8, 12, "backbone.blocks.0.mlp.3.weight"}, {SecondBias, 1, 1, 8, "backbone.blocks.1.mlp.3.bias"},
		{OutputNorm, 0, 1, 8, "backbone.output_layer.0.weight"},
		{Output, 0, 1, 8, "backbone.output_layer.1.weight"}, {OutputBias, 0, 1, 1, "backbone.output_layer.1.bias"},
	} {
		got := r.tensor(want.part, want.block)
		if got.Rows != want.rows || got.Columns != want.columns || !slices.Equal(got.Data, c.data[want.name]) {
			t.Errorf("%s is %d x %d, want %d x %d", want.name, got.Rows, got.Columns, want.rows, want.columns)
		}
	}
	rounded := r.tensor(Second, 1).Data
	for i, x := range c.data["backbone.blocks.1.mlp.3.weight"] {
		if rounded[i] != model.FromBF16(model.ToBF16(x)) {
			t.Fatalf("bf16 number %d is %v, want %v rounded", i, rounded[i], x)
		}
	}
}

// TestOpenLeavesOut: what state_dicts have besides is no fault, and the embedding is told of.
func TestOpenLeavesOut(t *testing.T) {
	c := fileOf(t, tinyShapes[0])
	c.put("token_embeddings.weight", make([]float32, 30), 5, 6)
	dir := c.folder(t, r2rJSON)
	if r := open(t, dir); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "token_embeddings.weight") ||
		!strings.Contains(r.Warnings[0], dir) {
		t.Errorf("warnings %q, want one of token_embeddings.weight", r.Warnings)
	}
	c = fileOf(t, tinyShapes[1])
	c.put("mlp.1.num_batches_tracked", make([]float32, 1))
	c.types["mlp.1.num_batches_tracked"] = "I64"
	if r := open(t, c.folder(t, citerJSON)); len(r.Warnings) != 0 {
		t.Errorf("warnings %q, want none", r.Warnings)
	}
}

// badFolder is a made router with a change that must be refused.
type badFolder struct {
	name     string
	metadata string
	change   func(c *file)
	want     []string
}

func badR2R() []badFolder {
	same := func(*file) {}
	nan := float32(math.NaN())
	return []badFolder{
		{"other hidden size", `{"algorithm": "r2r", "hidden_size": 7}`, same,
			[]string{"logits_projection.weight", "[6 10]", "want [7 10]"}},
		{"published training JSON, wrong", `{"algorithm": "r2r", "hidden_size": 2048}`, same,
			[]string{"[2048 10]"}},
		{"other top", `{"algorithm": "r2r", "hidden_size": 6, "top_logits": 100}`, same, []string{"want [6 100]"}},
		{"other width", `{"algorithm": "r2r", "hidden_size": 6, "width": 9}`, same,
			[]string{"combined_projection.weight", "[8 18]", "want [9 18]"}},
		{"too many blocks", `{"algorithm": "r2r", "hidden_size": 6, "blocks": 3}`, same,
			[]string{"has no tensor backbone.blocks.2.layer_norm.weight"}},
		{"too few blocks", `{"algorithm": "r2r", "hidden_size": 6, "blocks": 1}`, same,
			[]string{`"backbone.blocks.1.`, "1 blocks"}},
		{"far too many blocks", `{"algorithm": "r2r", "hidden_size": 6, "blocks": 1025}`, same, []string{"1025"}},
		{"no blocks", r2rJSON, func(c *file) { c.drop("backbone.blocks.0.layer_norm.weight") },
			[]string{"blocks = 0, want 1 to 1024"}},
		{"no bias", r2rJSON, func(c *file) { c.drop("backbone.blocks.0.mlp.0.bias") },
			[]string{"has no tensor backbone.blocks.0.mlp.0.bias"}},
		{"a block of its own width", r2rJSON,
			func(c *file) { c.put("backbone.blocks.1.mlp.0.weight", make([]float32, 128), 16, 8) },
			[]string{"backbone.blocks.1.mlp.0.weight", "[16 8]", "want [12 8]"}},
		{"three classes", r2rJSON,
			func(c *file) { c.put("backbone.output_layer.1.weight", make([]float32, 24), 3, 8) },
			[]string{"backbone.output_layer.1.weight", "[3 8]", "want [1 8]"}},
		{"position embedding", r2rJSON,
			func(c *file) { c.put("backbone.position_embedding", make([]float32, 8), 1, 8) },
			[]string{`"backbone.position_embedding" is unknown`}},
		{"flat matrix", r2rJSON, func(c *file) { c.put("combined_projection.weight", make([]float32, 8), 8) },
			[]string{"combined_projection.weight", "[8]", "two sizes"}},
		{"no inputs", r2rJSON, func(c *file) { c.put("logits_projection.weight", nil, 6, 0) },
			[]string{"top_logits = 0"}},
		{"NaN", r2rJSON, func(c *file) { c.data["backbone.blocks.1.mlp.3.weight"][5] = nan },
			[]string{"backbone.blocks.1.mlp.3.weight", "NaN at place 5"}},
	}
}

func badOthers() []badFolder {
	return []badFolder{
		{"infinite", collmJSON, func(c *file) { c.data["defer.weight"][0] = float32(math.Inf(1)) },
			[]string{"defer.weight", "+Inf"}},
		{"too large for bf16", collmJSON, func(c *file) { c.data["defer.weight"][0] = math.MaxFloat32 },
			[]string{"defer.weight", "place 0"}},
		{"whole numbers", citerJSON, func(c *file) { c.types["mlp.4.bias"] = "I64" },
			[]string{"mlp.4.bias", "I64, want BF16, F16 or F32"}},
		{"negative variance", citerJSON, func(c *file) { c.data["mlp.1.running_var"][3] = -0.5 },
			[]string{"running_var", "-0.5 at place 3"}},
		{"overflows when fused", citerJSON, func(c *file) {
			c.data["linear.weight"][0], c.data["mlp.4.weight"][0] = 1e30, 1e30
		}, []string{"linear with mlp.4", "place 0"}},
		{"second bias of Co-LLM", collmJSON, func(c *file) { c.put("defer.bias", make([]float32, 1), 1) },
			[]string{`"defer.bias" is unknown to collm`}},
		{"row as a matrix", collmJSON, func(c *file) { c.put("defer.weight", make([]float32, 6), 1, 6) },
			[]string{"defer.weight", "[1 6]", "want [6]"}},
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range append(badR2R(), badOthers()...) {
		t.Run(c.name, func(t *testing.T) {
			s := tinyShapes[0]
			switch c.metadata {
			case citerJSON:
				s = tinyShapes[1]
			case collmJSON:
				s = tinyShapes[2]
			}
			f := fileOf(t, s)
			c.change(f)
			dir := f.folder(t, c.metadata)
			refused(t, dir, append(c.want, filepath.Join(dir, weightsFile)))
		})
	}
	t.Run("algorithm of another", func(t *testing.T) {
		refused(t, fileOf(t, tinyShapes[0]).folder(t, citerJSON), []string{"has no tensor mlp.0.weight"})
	})
}

func refused(t *testing.T, dir string, want []string) {
	t.Helper()
	r, err := Open(dir)
	if err == nil {
		t.Fatalf("opened as %v", r.Shape)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want %q in it", err, part)
		}
	}
}

func TestOpenRefusesMetadata(t *testing.T) {
	f := fileOf(t, tinyShapes[2])
	for _, c := range []struct{ name, metadata, want string }{
		{"empty", "", "no JSON object"},
		{"list", "[]", "no JSON object"},
		{"cut", `{"algorithm": "collm"`, "not JSON"},
		{"two documents", collmJSON + "{}", "after the JSON object"},
		{"not UTF-8", "{\"note\": \"\xff\"}", "not UTF-8"},
		{"no algorithm", `{"hidden_size": 6}`, `algorithm = null, want one of "r2r", "citer", "collm"`},
		{"another algorithm", `{"algorithm": "R2R", "hidden_size": 6}`, `algorithm = "R2R", want one of`},
		{"no hidden size", `{"algorithm": "collm"}`, "hidden_size is missing"},
		{"hidden size of text", `{"algorithm": "collm", "hidden_size": "6"}`, `hidden_size = "6", want a whole`},
		{"hidden size 0", `{"algorithm": "collm", "hidden_size": 0}`, "hidden_size = 0, want a whole"},
		{"hidden size 6.0", `{"algorithm": "collm", "hidden_size": 6.0}`, "hidden_size = 6.0, want a whole"},
		{"huge hidden size", `{"algorithm": "collm", "hidden_size": 1e99}`, "hidden_size = 1e99"},
		{"threshold of text", `{"algorithm": "collm", "hidden_size": 6, "threshold": "0.5"}`, `threshold = "0.5"`},
		{"threshold overflows", `{"algorithm": "collm", "hidden_size": 6, "threshold": 1e999}`,
			"threshold = 1e999"},
		{"threshold null", `{"algorithm": "collm", "hidden_size": 6, "threshold": null}`, "threshold = null"},
		{"note of numbers", `{"algorithm": "collm", "hidden_size": 6, "note": 1}`, "note = 1, want text"},
		{"unknown key", `{"algorithm": "collm", "hidden_size": 6, "Threshold": 0.5}`, `key "Threshold" is unknown`},
		{"key twice", `{"algorithm": "collm", "algorithm": "collm"}`, `key "algorithm" is given twice`},
		{"nested", `{"algorithm": "collm", "hidden_size": [6]}`, "hidden_size is a list or an object"},
		{"size that Co-LLM has not", `{"algorithm": "collm", "hidden_size": 6, "width": 6}`,
			"width = 6: a collm router has none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := f.folder(t, c.metadata)
			refused(t, dir, []string{c.want, dir})
		})
	}
	for _, missing := range []string{metadataFile, weightsFile} {
		dir := f.folder(t, collmJSON)
		if err := os.Remove(filepath.Join(dir, missing)); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, []string{missing})
	}
}

// FuzzParseMetadata: what is accepted has an algorithm and sizes in bounds.
func FuzzParseMetadata(f *testing.F) {
	for _, text := range []string{r2rJSON, citerJSON, collmJSON, `{"a":1,"a":2}`, `{"threshold":1e9}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		m, err := parseMetadata(document)
		if err != nil {
			return
		}
		s := m.shape
		if s.Algorithm < R2R || s.Algorithm > CoLLM || s.Hidden < 1 {
			t.Errorf("%q is taken as %v", document, s)
		}
		for _, size := range []int{s.Hidden, s.Top, s.Width, s.Blocks, s.Expanded} {
			if size < 0 || size > sizeMax {
				t.Errorf("%q has a size %d", document, size)
			}
		}
	})
}

// FuzzOpen: whatever lies in the files of a folder, what is opened is a whole router, and it judges.
func FuzzOpen(f *testing.F) {
	for i, metadata := range []string{r2rJSON, citerJSON, collmJSON} {
		dir := fileOf(f, tinyShapes[i]).folder(f, metadata)
		weights, err := os.ReadFile(filepath.Join(dir, weightsFile))
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(metadata), weights)
		f.Add([]byte(metadata), weights[:len(weights)-1])
		f.Add([]byte(collmJSON), weights)
	}
	f.Fuzz(func(t *testing.T, metadata, weights []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{metadataFile: metadata, weightsFile: weights} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Open(dir)
		if err != nil {
			return
		}
		for _, tensor := range r.Tensors {
			if len(tensor.Data) != tensor.Rows*tensor.Columns || len(tensor.Data) == 0 {
				t.Fatalf("%v: part %d has %d numbers in %d x %d", r.Shape, tensor.Part, len(tensor.Data), tensor.Rows,
					tensor.Columns)
			}
		}
		x := make([]float32, r.Shape.Hidden)
		x[0] = 1
		if score := r.Score(x, x, make([]float32, r.Shape.Top)); score < 0 || score > 1 {
			t.Errorf("%v: score %v", r.Shape, score)
		}
	})
}
