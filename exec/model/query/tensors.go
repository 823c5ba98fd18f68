package query

import (
	"fmt"
	"math"
	"slices"

	"tokenrouter/exec/model"
)

// tensors takes the tensors of a file one by one. The first error stays.
type tensors struct {
	file  *model.File
	taken map[string]bool
	err   error
}

// take returns a tensor's numbers, which must have the shape; none after an error.
func (t *tensors) take(name string, shape ...int64) []float32 {
	if t.err != nil {
		return nil
	}
	found, ok := t.file.Lookup(name)
	switch {
	case !ok:
		t.err = fmt.Errorf("has no tensor %s", name)
	case found.DType != model.BF16 && found.DType != model.F16 && found.DType != model.F32:
		t.err = fmt.Errorf("tensor %s has type %s, want BF16, F16 or F32", name, found.DType)
	case !slices.Equal(found.Shape, shape):
		t.err = fmt.Errorf("tensor %s has the shape %d, want %d", name, found.Shape, shape)
	}
	if t.err != nil {
		return nil
	}
	t.taken[name] = true
	data := make([]float32, found.Elements())
	model.ToFloat32(data, t.file.Bytes(found), found.DType)
	for i, x := range data {
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			t.err = fmt.Errorf("tensor %s has %v at place %d, want finite numbers", name, x, i)
			return nil
		}
	}
	return data
}

// done returns the first error; a tensor that nobody took is one.
func (t *tensors) done() error {
	for _, found := range t.file.Tensors() {
		if t.err == nil && !t.taken[found.Name] {
			t.err = fmt.Errorf("tensor %q is unknown", found.Name)
		}
	}
	return t.err
}
