package model

import (
	"encoding/binary"
	"math"
	"testing"
)

// TestToBF16 has the pairs that common mistakes get wrong: ties away from even, cutting, NaN that becomes
// infinite or minus zero (gorse-io/gorse pull request 1244, dotnet/runtime pull request 130583).
func TestToBF16(t *testing.T) {
	for _, test := range []struct {
		name string
		bits uint32
		want uint16
	}{
		{"tie to even, down", 0x3f808000, 0x3f80},
		{"tie to even, up", 0x3f818000, 0x3f82},
		{"above a tie", 0x3f808001, 0x3f81},
		{"pi", 0x4048f5c3, 0x4049},
		{"subnormal tie", 0x00018000, 0x0002},
		{"largest float32", 0x7f7fffff, 0x7f80},
		{"signalling NaN", 0x7f800001, 0x7fc0},
		{"NaN of all ones", 0x7fffffff, 0x7fff},
		{"negative NaN of all ones", 0xffffffff, 0xffff},
		{"negative tie", 0xbf808000, 0xbf80},
		{"infinity", 0x7f800000, 0x7f80},
		{"minus infinity", 0xff800000, 0xff80},
		{"minus zero", 0x80000000, 0x8000},
	} {
		if got := ToBF16(math.Float32frombits(test.bits)); got != test.want {
			t.Errorf("%s: %08x -> %04x, want %04x", test.name, test.bits, got, test.want)
		}
	}
}

// TestToBF16Nearest looks for the nearest of the two neighbours in float64, for every upper half.
func TestToBF16Nearest(t *testing.T) {
	for upper := range uint32(1 << 16) {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x := math.Float32frombits(upper<<16 | lower)
			got := ToBF16(x)
			if x != x {
				if y := FromBF16(got); y == y {
					t.Fatalf("%04x%04x, a NaN, -> %04x", upper, lower, got)
				}
				continue
			}
			if want := nearestBF16(upper, x); got != want {
				t.Fatalf("%04x%04x -> %04x, want %04x", upper, lower, got, want)
			}
		}
	}
}

// nearestBF16 compares distances. Above the largest bfloat16 the next is taken to be 2^128, as IEEE 754 does.
func nearestBF16(upper uint32, x float32) uint16 {
	value := func(b uint32) float64 {
		if b&0x7fff == 0x7f80 {
			return math.Copysign(math.Ldexp(1, 128), float64(x))
		}
		return float64(FromBF16(uint16(b)))
	}
	if upper&0x7fff == 0x7f80 {
		return uint16(upper)
	}
	below, above := math.Abs(float64(x)-value(upper)), math.Abs(value(upper+1)-float64(x))
	if above < below || above == below && upper&1 == 1 {
		upper++
	}
	return uint16(upper)
}

func TestF16(t *testing.T) {
	for _, test := range []struct {
		name string
		x    float32
		want uint16
	}{
		{"one", 1, 0x3c00},
		{"minus two", -2, 0xc000},
		{"largest", 65504, 0x7bff},
		{"below the tie to infinity", math.Float32frombits(0x477fefff), 0x7bff},
		{"tie to infinity", 65520, 0x7c00},
		{"minus infinity", float32(math.Inf(-1)), 0xfc00},
		{"tie to even, down", 1 + 1.0/2048, 0x3c00},
		{"tie to even, up", 1 + 3.0/2048, 0x3c02},
		{"smallest normal", 1.0 / (1 << 14), 0x0400},
		{"rounds up to normal", float32(math.Ldexp(2047, -25)), 0x0400},
		{"smallest subnormal", 1.0 / (1 << 24), 0x0001},
		{"tie to zero", 1.0 / (1 << 25), 0},
		{"above the tie to zero", math.Float32frombits(0x33000001), 0x0001},
		{"tie of subnormals", 3.0 / (1 << 25), 0x0002},
		{"minus zero", float32(math.Copysign(0, -1)), 0x8000},
		{"smallest float32", math.SmallestNonzeroFloat32, 0},
		{"signalling NaN", math.Float32frombits(0x7f800001), 0x7e00},
	} {
		if got := ToF16(test.x); got != test.want {
			t.Errorf("%s: %v -> %04x, want %04x", test.name, test.x, got, test.want)
		}
	}
}

// TestF16RoundTrip takes every binary16 to float32 and back, and every midpoint of two to the even one.
func TestF16RoundTrip(t *testing.T) {
	for h := range uint32(1 << 16) {
		x := FromF16(uint16(h))
		want := uint16(h)
		if x != x {
			want |= 0x200
		}
		if got := ToF16(x); got != want {
			t.Fatalf("%04x -> %v -> %04x, want %04x", h, x, got, want)
		}
		if h&0x7fff >= 0x7bff {
			continue
		}
		middle := (x + FromF16(uint16(h+1))) / 2
		if got, even := ToF16(middle), uint16(h+h&1); got != even {
			t.Fatalf("%v, between %04x and the next, -> %04x, want %04x", middle, h, got, even)
		}
	}
}

func TestToFloat32(t *testing.T) {
	raw := binary.LittleEndian.AppendUint16(nil, 0x4049)
	raw = binary.LittleEndian.AppendUint16(raw, 0xbf80)
	got := make([]float32, 2)
	if ToFloat32(got, raw, BF16); got[0] != 3.140625 || got[1] != -1 {
		t.Errorf("BF16 gives %v, want [3.140625 -1]", got)
	}
	if ToFloat32(got, raw, F16); got[0] != 2.142578125 || got[1] != -1.875 {
		t.Errorf("F16 gives %v, want [2.142578125 -1.875]", got)
	}
	if ToFloat32(got[:1], raw, F32); got[0] != math.Float32frombits(0xbf804049) {
		t.Errorf("F32 gives %v, want bf804049", got[0])
	}
}
