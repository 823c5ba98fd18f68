package model

import "fmt"

// DType is the type of a tensor's elements, as safetensors names them.
type DType string

// The types that weights may have.
const (
	BF16 DType = "BF16" // upper half of a float32
	F16  DType = "F16"  // IEEE 754 binary16
	F32  DType = "F32"
)

// elementBytes has the size of an element of every whole-byte type of the format (safetensors 0.8,
// tensor.rs, enum Dtype). Only those of weight can be computed with.
var elementBytes = map[DType]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1,
	"I16": 2, "U16": 2, F16: 2, BF16: 2, "I32": 4, "U32": 4, F32: 4, "C64": 8, "F64": 8, "I64": 8, "U64": 8,
}

// Bytes returns the size of one element. It panics for a type that no reader of this package gives.
func (d DType) Bytes() int64 {
	size, ok := elementBytes[d]
	if !ok {
		panic(fmt.Sprintf("model: no type %q", string(d)))
	}
	return size
}

// weight reports whether weights may have the type.
func (d DType) weight() bool { return d == BF16 || d == F16 || d == F32 }
