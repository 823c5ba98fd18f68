package gguf

import "fmt"

// Kind is the type of a metadata value, numbered as in the file.
type Kind uint32

// The kinds of metadata.
const (
	KindUint8 Kind = iota
	KindInt8
	KindUint16
	KindInt16
	KindUint32
	KindInt32
	KindFloat32
	KindBool
	KindString
	KindArray
	KindUint64
	KindInt64
	KindFloat64
	kinds // their number
)

// kindNames and kindBytes have a row a kind; an element of an array takes at least kindBytes in the file.
var kindNames = [kinds]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool",
	"string", "array", "uint64", "int64", "float64"}

var kindBytes = [kinds]uint64{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

// String returns the name of a kind, or "kind N" for a number that the format does not have.
func (k Kind) String() string {
	if k >= kinds {
		return fmt.Sprintf("kind %d", uint32(k))
	}
	return kindNames[k]
}

// Type is the type of a tensor's elements, numbered as in the file.
type Type uint32

// The types that can be read.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2 // blocks of 32: a float16 scale, 32 numbers of 4 bits less 8
	Q4_1 Type = 3 // blocks of 32: a float16 scale and least value, 32 numbers of 4 bits
	Q8_0 Type = 8 // blocks of 32: a float16 scale, 32 numbers of 8 bits
	BF16 Type = 30
)

// layout is how the elements of a type lie in the file.
type layout struct {
	blockElements int64
	blockBytes    int64
}

var layouts = map[Type]layout{
	F32: {1, 4}, F16: {1, 2}, BF16: {1, 2}, Q4_0: {32, 18}, Q4_1: {32, 20}, Q8_0: {32, 34},
}

// typeNames has the types of ggml.h, to refuse the others by name.
var typeNames = map[Type]string{
	F32: "F32", F16: "F16", Q4_0: "Q4_0", Q4_1: "Q4_1", 6: "Q5_0", 7: "Q5_1", Q8_0: "Q8_0", 9: "Q8_1",
	10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K",
	16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
	19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64",
	28: "F64", 29: "IQ1_M",
	BF16: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}

// String returns the name that ggml has for a type, or "type N" for a number it does not have.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}
