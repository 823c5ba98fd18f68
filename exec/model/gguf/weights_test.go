package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBlocksByHand has one block of each type; the numbers follow from the layouts in ggml-common.h.
func TestBlocksByHand(t *testing.T) {
	counting := make([]byte, 16) // low halves 0..15, high halves 15..0
	signed := make([]byte, 32)   // -16..15
	for i := range 16 {
		counting[i] = byte(i | (15-i)<<4)
	}
	for i := range signed {
		signed[i] = byte(i - 16)
	}
	var q80, q40, q41 []float32
	for i := range 32 {
		q80 = append(q80, 0.5*float32(i-16))
		half := i
		if i >= 16 {
			half = 31 - i
		}
		q40 = append(q40, -2*float32(half-8))
		q41 = append(q41, 0.25*float32(half)-1)
	}
	cases := []struct {
		name string
		kind Type
		raw  []byte
		want []float32
	}{
		{"F32", F32, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, []float32{1, -2}},
		{"F16", F16, []byte{0, 0x3c, 0, 0xc0, 1, 0}, []float32{1, -2, 1.0 / (1 << 24)}},
		{"BF16", BF16, []byte{0x80, 0x3f, 0, 0xc0}, []float32{1, -2}},
		{"Q8_0, scale 0.5", Q8_0, append([]byte{0, 0x38}, signed...), q80},
		{"Q4_0, scale -2", Q4_0, append([]byte{0, 0xc0}, counting...), q40},
		{"Q4_1, scale 0.25, least -1", Q4_1, append([]byte{0, 0x34, 0, 0xbc}, counting...), q41},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := make([]float32, len(c.want))
			Dequantise(got, c.raw, c.kind)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBlocksOfPeer compares with gguf-py: testdata/TYPE.bin has 24 random blocks of NumPy's default generator
// (seed 7; scales normal, times 0.001, 1 and 60 in turn), then what gguf 0.19.0's quants.dequantize makes of
// them as float32.
func TestBlocksOfPeer(t *testing.T) {
	const blocks = 24
	for name, kind := range map[string]Type{"q8_0": Q8_0, "q4_0": Q4_0, "q4_1": Q4_1} {
		file, err := os.ReadFile("testdata/" + name + ".bin")
		if err != nil {
			t.Fatal(err)
		}
		raw := blocks * int(layouts[kind].blockBytes)
		want := make([]float32, blocks*32)
		if err := binary.Read(bytes.NewReader(file[raw:]), binary.LittleEndian, want); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, len(want))
		Dequantise(got, file[:raw], kind)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Errorf("%s: number %d = %g, want %g to the bit", name, i, got[i], want[i])
			}
		}
	}
}

func TestDequantisePanics(t *testing.T) {
	for name, call := range map[string]func(){
		"short":        func() { Dequantise(make([]float32, 32), make([]byte, 33), Q8_0) },
		"half a block": func() { Dequantise(make([]float32, 16), make([]byte, 17), Q8_0) },
		"unknown type": func() { Dequantise(make([]float32, 32), make([]byte, 18), 14) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
