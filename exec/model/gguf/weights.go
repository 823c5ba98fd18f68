package gguf

import (
	"encoding/binary"
	"fmt"

	"tokenrouter/exec/model"
)

// ReadRows reads rows of a tensor of this file, beginning with row from, into dst as float32; dst takes whole
// rows. Errors name the file and the tensor. It panics for rows that the tensor does not have.
func (f *File) ReadRows(dst []float32, t Tensor, from int64) error {
	l := layouts[t.Type]
	columns, elements := t.Columns(), int64(len(dst))
	if elements%columns != 0 || from < 0 || from > t.Rows()-elements/columns {
		panic(fmt.Sprintf("gguf: %d numbers from row %d of %s, which has %d rows of %d",
			elements, from, t.Name, t.Rows(), columns))
	}
	rowBytes := columns / l.blockElements * l.blockBytes
	raw := make([]byte, elements/columns*rowBytes)
	if _, err := f.from.ReadAt(raw, t.Offset+from*rowBytes); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", f.Path, t.Name, err)
	}
	Dequantise(dst, raw, t.Type)
	return nil
}

// Dequantise turns whole blocks of a type into float32, the formulas being those of ggml-quants.c with each
// product rounded to float32. It panics if raw is not of len(dst) elements or the type can not be read.
func Dequantise(dst []float32, raw []byte, t Type) {
	l, ok := layouts[t]
	if !ok || int64(len(dst))%l.blockElements != 0 ||
		int64(len(raw)) != int64(len(dst))/l.blockElements*l.blockBytes {
		panic(fmt.Sprintf("gguf: %d bytes of %s for %d numbers", len(raw), t, len(dst)))
	}
	switch t {
	case F32:
		model.ToFloat32(dst, raw, model.F32)
	case F16:
		model.ToFloat32(dst, raw, model.F16)
	case BF16:
		model.ToFloat32(dst, raw, model.BF16)
	default:
		for len(dst) > 0 {
			dequantiseBlock(dst[:l.blockElements], raw[:l.blockBytes], t)
			dst, raw = dst[l.blockElements:], raw[l.blockBytes:]
		}
	}
}

// dequantiseBlock reads one block. The low halves of a 4-bit block's bytes are its first 16 numbers, the high
// halves its last 16.
func dequantiseBlock(dst []float32, raw []byte, t Type) {
	scale := model.FromF16(binary.LittleEndian.Uint16(raw))
	switch t {
	case Q8_0:
		for i, b := range raw[2:] {
			dst[i] = scale * float32(int8(b))
		}
	case Q4_0:
		for i, b := range raw[2:] {
			dst[i] = scale * float32(int(b&15)-8)
			dst[i+16] = scale * float32(int(b>>4)-8)
		}
	case Q4_1:
		least := model.FromF16(binary.LittleEndian.Uint16(raw[2:]))
		for i, b := range raw[4:] {
			// The conversions keep compilers from fusing product and sum.
			dst[i] = float32(scale*float32(b&15)) + least
			dst[i+16] = float32(scale*float32(b>>4)) + least
		}
	default:
		panic(fmt.Sprintf("gguf: blocks of %s", t))
	}
}
