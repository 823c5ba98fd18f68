package model

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPublishedFile reads a file that the published library wrote; its own metadata names the versions. The
// numbers are those that PyTorch shows for 1, -2.5, 3.140625, 65504, 1e-7 and 0.1 in each type.
func TestPublishedFile(t *testing.T) {
	f, err := OpenFile("testdata/published.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Metadata["format"] != "pt" {
		t.Errorf("metadata %v", f.Metadata)
	}
	for name, want := range map[string]struct {
		d       DType
		shape   []int64
		numbers []float32
	}{
		"z.bf16": {BF16, []int64{2, 3}, []float32{1, -2.5, 3.140625, 65536, 1.00117176771164e-07, 0.10009765625}},
		"a.f16":  {F16, []int64{6}, []float32{1, -2.5, 3.140625, 65504, 1.1920928955078125e-07, 0.0999755859375}},
		"m.f32":  {F32, []int64{3, 2}, []float32{1, -2.5, 3.140625, 65504, 1e-7, 0.1}},
		"scalar": {F32, []int64{}, []float32{7}},
		"empty":  {F32, []int64{0, 4}, []float32{}},
	} {
		tensor, ok := f.Lookup(name)
		if !ok || tensor.DType != want.d || !cmp.Equal(tensor.Shape, want.shape) {
			t.Errorf("%s is %+v, want %s of %d", name, tensor, want.d, want.shape)
			continue
		}
		numbers := make([]float32, tensor.Elements())
		ToFloat32(numbers, f.Bytes(tensor), tensor.DType)
		if diff := cmp.Diff(want.numbers, numbers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if ids, _ := f.Lookup("ids"); ids.DType != "I64" || ids.Elements() != 3 {
		t.Errorf("ids are %+v", ids)
	}
}
