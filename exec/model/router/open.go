package router

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"tokenrouter/exec/model"
)

// The files of a folder.
const (
	metadataFile = "router.json"
	weightsFile  = "router.safetensors"
)

// published is a tensor of a folder under the name that the public code gives it.
type published struct {
	name  string
	shape []int64
	part  Part // 0: CITER's, which are folded first
	block int
}

// blockPrefix is the name of R2R's blocks.
const blockPrefix = "backbone.blocks."

// table returns all tensors that a folder must have.
func (s Shape) table() []published {
	hidden, width := int64(s.Hidden), int64(s.Width)
	switch s.Algorithm {
	case R2R:
		return s.tableR2R()
	case CITER:
		list := []published{{name: "mlp.0.weight", shape: []int64{width, hidden}}}
		for _, name := range []string{"mlp.0.bias", "mlp.1.weight", "mlp.1.bias", "mlp.1.running_mean",
			"mlp.1.running_var"} {
			list = append(list, published{name: name, shape: []int64{width}})
		}
		return append(list, published{name: "mlp.4.weight", shape: []int64{hidden, width}},
			published{name: "mlp.4.bias", shape: []int64{hidden}},
			published{name: "linear.weight", shape: []int64{1, hidden}},
			published{name: "linear.bias", shape: []int64{1}})
	case CoLLM:
		return []published{{"defer.weight", []int64{hidden}, Output, 0}}
	}
	panic(fmt.Sprintf("router: no tensors of %v", s.Algorithm))
}

func (s Shape) tableR2R() []published {
	hidden, width, top, expanded := int64(s.Hidden), int64(s.Width), int64(s.Top), int64(s.Expanded)
	var list []published
	// A bias follows its weight, among the names as among the parts.
	add := func(name string, part Part, block int, shape ...int64) {
		list = append(list, published{name + ".weight", shape, part, block},
			published{name + ".bias", shape[:1], part + 1, block})
	}
	add("logits_projection", Top, 0, hidden, top)
	add("combined_projection", Combined, 0, width, 3*hidden)
	add("backbone.input_projection", Input, 0, width, width)
	for block := range s.Blocks {
		prefix := fmt.Sprint(blockPrefix, block)
		add(prefix+".layer_norm", Norm, block, width)
		add(prefix+".mlp.0", First, block, expanded, width)
		add(prefix+".mlp.3", Second, block, width, expanded)
	}
	add("backbone.output_layer.0", OutputNorm, 0, width)
	add("backbone.output_layer.1", Output, 0, 1, width)
	return list
}

// leftOut has the tensors of state_dicts that no score depends on, with the reason, or "" where nobody needs
// to know.
var leftOut = map[string]string{
	"token_embeddings.weight":   "the small model's own table is used",
	"mlp.1.num_batches_tracked": "",
}

// Open reads the router folder dir in full. What doc.go does not describe is refused: a key, a tensor, a
// shape, a type other than BF16, F16 and F32, NaN and infinite numbers. Errors name file and tensor, what is
// there and what was wanted.
func Open(dir string) (*Router, error) {
	m, err := readMetadata(filepath.Join(dir, metadataFile))
	if err != nil {
		return nil, err
	}
	r := &Router{Dir: dir, Threshold: m.threshold, HasThreshold: m.hasThreshold, Text: m.text}
	f, err := model.OpenFile(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only: nothing can be lost
	if err := r.read(f, m.shape); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return r, nil
}

func (r *Router) read(f *model.File, given Shape) error {
	var err error
	if r.Shape, err = complete(f, given); err != nil {
		return err
	}
	if err := r.Shape.check(); err != nil {
		return err
	}
	raw := map[string][]float32{} // CITER's
	known := map[string]bool{}
	for _, p := range r.Shape.table() {
		data, err := p.read(f)
		if err != nil {
			return err
		}
		known[p.name] = true
		if p.part == 0 {
			raw[p.name] = data
			continue
		}
		columns := int(p.shape[len(p.shape)-1])
		r.Tensors = append(r.Tensors, Tensor{p.part, p.block, len(data) / columns, columns, data})
	}
	for _, t := range f.Tensors() {
		reason, ok := leftOut[t.Name]
		switch {
		case known[t.Name]:
		case !ok:
			return fmt.Errorf("tensor %q is unknown to %v", t.Name, r.Shape)
		case reason != "":
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: tensor %s is left out: %s", f.Path, t.Name, reason))
		}
	}
	if r.Shape.Algorithm == CITER {
		return r.fold(raw)
	}
	return nil
}

// complete fills in the sizes that router.json leaves to the tensors.
func complete(f *model.File, s Shape) (Shape, error) {
	side := func(size *int, name string, dimension int) error {
		if *size != 0 {
			return nil
		}
		t, ok := f.Lookup(name)
		if !ok {
			return fmt.Errorf("has no tensor %s", name)
		}
		if len(t.Shape) != 2 || t.Shape[dimension] > sizeMax {
			return fmt.Errorf("tensor %s has the shape %d, want two sizes up to %d", name, t.Shape, sizeMax)
		}
		*size = int(t.Shape[dimension])
		return nil
	}
	var err error
	switch s.Algorithm {
	case CITER:
		err = side(&s.Width, "mlp.0.weight", 0)
	case R2R:
		if s.Blocks == 0 {
			s.Blocks = blocksOf(f)
		}
		err = errors.Join(side(&s.Top, "logits_projection.weight", 1),
			side(&s.Width, "combined_projection.weight", 0), side(&s.Expanded, blockPrefix+"0.mlp.0.weight", 0))
	}
	return s, err
}

// blocksOf counts R2R's blocks without a gap.
func blocksOf(f *model.File) int {
	for block := 0; ; block++ {
		if _, ok := f.Lookup(fmt.Sprint(blockPrefix, block, ".layer_norm.weight")); !ok {
			return block
		}
	}
}

// read returns the numbers of a tensor.
func (p published) read(f *model.File) ([]float32, error) {
	t, ok := f.Lookup(p.name)
	switch {
	case !ok:
		return nil, fmt.Errorf("has no tensor %s", p.name)
	case t.DType != model.BF16 && t.DType != model.F16 && t.DType != model.F32:
		return nil, fmt.Errorf("tensor %s has type %s, want BF16, F16 or F32", p.name, t.DType)
	case !slices.Equal(t.Shape, p.shape):
		return nil, fmt.Errorf("tensor %s has the shape %d, want %d", p.name, t.Shape, p.shape)
	}
	data := make([]float32, t.Elements())
	model.ToFloat32(data, f.Bytes(t), t.DType)
	return data, finite(p.name, data)
}

// finite refuses numbers that bf16 can not have.
func finite(name string, data []float32) error {
	for i, x := range data {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 || model.ToBF16(x)&0x7f80 == 0x7f80 {
			return fmt.Errorf("tensor %s has %v at place %d, want finite numbers that fit bf16", name, x, i)
		}
	}
	return nil
}
