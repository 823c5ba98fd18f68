package model

import (
	"context"
	"encoding/binary"
	"math"
)

// Fault tells of numbers in a tensor that can not be computed with.
type Fault struct {
	Tensor Tensor
	Count  int64   // how many are NaN or infinite
	First  int64   // place of the first, from 0, rows first
	Value  float32 // of the first
}

// Check reads every weight and returns a fault for each tensor with NaN or infinite numbers, in the order of
// Tensors. It ends early with the error of ctx. progress, unless nil, is told how many of all bytes are read.
func (f *Folder) Check(ctx context.Context, progress func(done, total int64)) ([]Fault, error) {
	var faults []Fault
	done, total := int64(0), f.WeightBytes()
	for _, t := range f.Tensors {
		fault := Fault{Tensor: t}
		raw, size := f.Bytes(t), int(t.DType.Bytes())
		for start := 0; start < len(raw); start += chunkBytes {
			chunk := raw[start:min(start+chunkBytes, len(raw))]
			fault.scan(chunk, int64(start/size))
			done += int64(len(chunk))
			if progress != nil {
				progress(done, total)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		if fault.Count > 0 {
			faults = append(faults, fault)
		}
	}
	return faults, nil
}

// scan counts what is bad in a chunk whose first number is at place start.
func (fault *Fault) scan(chunk []byte, start int64) {
	bad := func(place int, value float32) {
		if fault.Count == 0 {
			fault.First, fault.Value = start+int64(place), value
		}
		fault.Count++
	}
	switch fault.Tensor.DType {
	case BF16:
		for i := 0; i < len(chunk); i += 2 {
			if b := binary.LittleEndian.Uint16(chunk[i:]); b&0x7f80 == 0x7f80 {
				bad(i/2, FromBF16(b))
			}
		}
	case F16:
		for i := 0; i < len(chunk); i += 2 {
			if h := binary.LittleEndian.Uint16(chunk[i:]); h&0x7c00 == 0x7c00 {
				bad(i/2, FromF16(h))
			}
		}
	case F32:
		for i := 0; i < len(chunk); i += 4 {
			if b := binary.LittleEndian.Uint32(chunk[i:]); b&0x7f800000 == 0x7f800000 {
				bad(i/4, math.Float32frombits(b))
			}
		}
	default:
		panic("model: weights of type " + string(fault.Tensor.DType))
	}
}
