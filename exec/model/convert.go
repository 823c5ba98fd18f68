package model

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ToBF16 rounds to the nearest bfloat16, to the even one of two that are equally near. What is too large
// becomes an infinity; a NaN stays one, made quiet.
func ToBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if bits&0x7fffffff > 0x7f800000 {
		// Rounding up could carry a NaN into the sign; cutting could leave an infinity.
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// FromBF16 returns the number that a bfloat16 stands for; it is exact.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// ToF16 rounds to the nearest binary16, to the even one of two that are equally near. What is too large
// becomes an infinity; a NaN stays one, made quiet.
func ToF16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	case bits >= 0x477ff000: // 65520, half-way from the largest to the next power of two
		return sign | 0x7c00
	case bits >= 0x38800000: // 2^-14, the smallest normal one
		bits -= 112 << 23
		return sign | uint16((bits+0xfff+bits>>13&1)>>13)
	case bits < 0x33000000: // below 2^-25, half of the smallest one
		return sign
	}
	// Subnormal: the significand in units of 2^-24.
	shift := 126 - bits>>23 // 14 to 24
	significand := bits&0x7fffff | 0x800000
	half := uint32(1) << (shift - 1)
	rounded := significand >> shift
	if rest := significand & (half<<1 - 1); rest > half || rest == half && rounded&1 == 1 {
		rounded++
	}
	return sign | uint16(rounded)
}

// FromF16 returns the number that a binary16 stands for; it is exact. A NaN is made quiet.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.Float32frombits(sign | 0x7fc00000 | fraction<<13)
	case exponent == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent == 0:
		magnitude := float32(fraction) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ToFloat32 converts little-endian elements of a type that weights may have into dst, which takes one number
// an element. It panics if raw is not of that many elements or the type is another.
func ToFloat32(dst []float32, raw []byte, d DType) {
	if !d.weight() || int64(len(raw)) != int64(len(dst))*d.Bytes() {
		panic(fmt.Sprintf("model: %d bytes of %s for %d numbers", len(raw), d, len(dst)))
	}
	for i := range dst {
		switch d {
		case BF16:
			dst[i] = FromBF16(binary.LittleEndian.Uint16(raw[2*i:]))
		case F16:
			dst[i] = FromF16(binary.LittleEndian.Uint16(raw[2*i:]))
		default:
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
}
