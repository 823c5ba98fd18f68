package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Expected is a tensor that a configuration needs.
type Expected struct {
	Name  string
	Shape []int64 // [out, in] for a matrix
}

// Expected returns all tensors that the model needs, by the names of Hugging Face transformers, in the order
// of their use: the embedding, layer by layer, the last norm, and the head unless it is tied.
func (c *Config) Expected() []Expected {
	hidden, vocab := int64(c.Hidden), int64(c.Vocab)
	list := []Expected{{"model.embed_tokens.weight", []int64{vocab, hidden}}}
	for layer := range c.Layers {
		list = c.appendLayer(list, layer)
	}
	list = append(list, Expected{"model.norm.weight", []int64{hidden}})
	if !c.Tied {
		list = append(list, Expected{"lm_head.weight", []int64{vocab, hidden}})
	}
	return list
}

func (c *Config) appendLayer(list []Expected, layer int) []Expected {
	prefix := layerPrefix + strconv.Itoa(layer) + "."
	hidden, intermediate := int64(c.Hidden), int64(c.Intermediate)
	queries, keys := int64(c.Heads*c.HeadDim), int64(c.KVHeads*c.HeadDim)
	vector := func(name string, size int64) {
		list = append(list, Expected{prefix + name + ".weight", []int64{size}})
	}
	matrix := func(name string, out, in int64, bias bool) {
		list = append(list, Expected{prefix + name + ".weight", []int64{out, in}})
		if bias {
			list = append(list, Expected{prefix + name + ".bias", []int64{out}})
		}
	}
	vector("input_layernorm", hidden)
	matrix("self_attn.q_proj", queries, hidden, c.QKVBias)
	matrix("self_attn.k_proj", keys, hidden, c.QKVBias)
	matrix("self_attn.v_proj", keys, hidden, c.QKVBias)
	if c.QKNorm {
		vector("self_attn.q_norm", int64(c.HeadDim))
		vector("self_attn.k_norm", int64(c.HeadDim))
	}
	matrix("self_attn.o_proj", hidden, queries, c.OutputBias)
	vector("post_attention_layernorm", hidden)
	matrix("mlp.gate_proj", intermediate, hidden, c.MLPBias)
	matrix("mlp.up_proj", intermediate, hidden, c.MLPBias)
	matrix("mlp.down_proj", hidden, intermediate, c.MLPBias)
	return list
}

const layerPrefix = "model.layers."

// Parameters returns how many weights the model has; a tied head counts once.
func (c *Config) Parameters() int64 {
	total := int64(0)
	for _, e := range c.Expected() {
		elements := int64(1)
		for _, n := range e.Shape {
			elements *= n
		}
		total += elements
	}
	return total
}

// Folder is an open model folder.
type Folder struct {
	Dir      string
	Config   Config
	Tensors  []Tensor // in the order of Config.Expected
	Warnings []string // tensors and files that were left out, each with the reason
	weights  *weights
	byName   map[string]int
}

// Open reads the configuration of the folder dir, maps its weights and finds every tensor that the model
// needs. Where model.safetensors.index.json exists it decides for each tensor which file it comes from, and a
// model.safetensors beside it that it does not name is left out; a tied model leaves lm_head.weight out. Open
// fails, naming file and tensor, for one that is missing, has another shape, or a type other than BF16, F16
// and F32, and for a tensor within the layers that the architecture does not know: such a model computes
// something else.
func Open(dir string) (*Folder, error) {
	config, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{Dir: dir, Config: config, byName: map[string]int{}}
	if f.weights, err = openWeights(dir); err != nil {
		return nil, err
	}
	if err := f.fillTable(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadConfig reads the configuration of the folder dir, whose weights need not be there.
func ReadConfig(dir string) (Config, error) {
	config, err := readJSON(filepath.Join(dir, configFile))
	if err != nil {
		return Config{}, err
	}
	generation, err := readJSON(filepath.Join(dir, generationFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Config{}, err
	}
	c, err := ParseConfig(config, generation)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", dir, err)
	}
	return c, nil
}

func (f *Folder) fillTable() error {
	// A configuration can claim far more layers than any file has: look for the last one before listing all.
	last := layerPrefix + strconv.Itoa(f.Config.Layers-1) + ".input_layernorm.weight"
	have := map[string]Tensor{}
	for _, t := range f.weights.all() {
		have[t.Name] = t
	}
	if _, ok := have[last]; !ok {
		return f.missing(last)
	}
	for _, e := range f.Config.Expected() {
		t, ok := have[e.Name]
		switch {
		case !ok:
			return f.missing(e.Name)
		case !t.DType.weight():
			return fmt.Errorf("%s: tensor %s has type %s, want BF16, F16 or F32", t.File, t.Name, t.DType)
		case !slices.Equal(t.Shape, e.Shape):
			return fmt.Errorf("%s: tensor %s has the shape %d, want %d from config.json",
				t.File, t.Name, t.Shape, e.Shape)
		}
		delete(have, e.Name)
		f.byName[e.Name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
	f.Warnings = f.weights.warnings
	for _, name := range sortedKeys(have) {
		if err := f.leaveOut(have[name]); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) missing(name string) error {
	where := weightsFile
	if f.weights.from != nil {
		where = indexFile
	}
	why := ""
	if name == "lm_head.weight" {
		why = " (tie_word_embeddings is false)"
	}
	return fmt.Errorf("%s: tensor %s is missing%s", filepath.Join(f.Dir, where), name, why)
}

// leaveOut warns of a tensor that the model does not need, and refuses one that says that the layers compute
// something else.
func (f *Folder) leaveOut(t Tensor) error {
	why := "the model does not need it"
	if t.Name == "lm_head.weight" {
		why = "tie_word_embeddings is true, the head is the embedding"
	}
	if rest, ok := strings.CutPrefix(t.Name, layerPrefix); ok {
		number, part, _ := strings.Cut(rest, ".")
		layer, err := strconv.Atoi(number)
		if err == nil && layer < f.Config.Layers && part != "self_attn.rotary_emb.inv_freq" {
			return fmt.Errorf("%s: tensor %q is not part of a %s with this config.json",
				t.File, t.Name, f.Config.Architecture)
		}
	}
	f.Warnings = append(f.Warnings, fmt.Sprintf("%s: tensor %q is left out: %s", t.File, t.Name, why))
	return nil
}

// Lookup returns one of Tensors by its name.
func (f *Folder) Lookup(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Bytes returns the elements of one of Tensors, as File.Bytes.
func (f *Folder) Bytes(t Tensor) []byte { return f.fileOf(t).Bytes(t) }

// Release lets go of the memory of one of Tensors, as File.Release.
func (f *Folder) Release(t Tensor) error { return f.fileOf(t).Release(t) }

func (f *Folder) fileOf(t Tensor) *File {
	for _, file := range f.weights.files {
		if file.Path == t.File {
			return file
		}
	}
	panic(fmt.Sprintf("model: tensor %s of %s is not in %s", t.Name, t.File, f.Dir))
}

// WeightBytes returns the bytes of all Tensors.
func (f *Folder) WeightBytes() int64 {
	total := int64(0)
	for _, t := range f.Tensors {
		total += t.Size
	}
	return total
}

// Close ends the mappings: nothing that Bytes returned may be looked at any more.
func (f *Folder) Close() error { return f.weights.close() }
