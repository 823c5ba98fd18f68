package gguf

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	w := newWritten()
	w.key("a.u8", KindUint8, uint8(200)).key("a.i8", KindInt8, int8(-3)).
		key("a.u16", KindUint16, uint16(65535)).key("a.i16", KindInt16, int16(7)).
		key("a.u32", KindUint32, uint32(1<<31)).key("a.i32", KindInt32, int32(9)).
		key("a.f32", KindFloat32, float32(0.5)).key("a.yes", KindBool, uint8(1)).key("a.text", KindString, "Ġé").
		key("a.u64", KindUint64, uint64(math.MaxUint64)).key("a.i64", KindInt64, int64(1<<40)).
		key("a.f64", KindFloat64, 0.25).texts("a.list", "x", "", "yz").
		key("a.types", KindArray, uint32(KindInt32), uint64(2), []int32{3, 1})
	w.floats("m", []float32{1, 2, 3, 4, 5, 6}, 3, 2).floats("v", []float32{7}, 1)
	f := w.read(t)
	for key, want := range map[string]uint64{"a.u8": 200, "a.u16": 65535, "a.i16": 7, "a.u32": 1 << 31,
		"a.i32": 9, "a.u64": math.MaxUint64, "a.i64": 1 << 40} {
		if got, err := f.Uint(key); err != nil || got != want {
			t.Errorf("%s = %d, %v, want %d", key, got, err, want)
		}
	}
	half, errHalf := f.Float("a.f32")
	quarter, errQuarter := f.Float("a.f64")
	yes, errYes := f.Bool("a.yes")
	text, errText := f.Text("a.text")
	list, errList := f.Texts("a.list")
	types, errTypes := f.Ints("a.types")
	for _, err := range []error{errHalf, errQuarter, errYes, errText, errList, errTypes} {
		if err != nil {
			t.Error(err)
		}
	}
	got := []any{half, quarter, yes, text, list, types}
	want := []any{0.5, 0.25, true, "Ġé", []string{"x", "", "yz"}, []int32{3, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if kind, ok := f.Kind("a.i8"); !ok || kind != KindInt8 || f.Has("a.none") || len(f.Keys()) != 14 {
		t.Errorf("kind of a.i8 = %s, %t; a.none there: %t; %d keys, want int8, false, 14",
			kind, ok, f.Has("a.none"), len(f.Keys()))
	}
	m, ok := f.Lookup("m")
	if !ok || m.Rows() != 3 || m.Columns() != 2 || f.Tensors()[1].Offset-m.Offset != 32 {
		t.Errorf("m = %+v, %t, want 3 rows of 2 and 32 bytes to the next", m, ok)
	}
	rows := make([]float32, 4)
	if err := f.ReadRows(rows, m, 1); err != nil || !cmp.Equal(rows, []float32{3, 4, 5, 6}) {
		t.Errorf("rows 1 and 2 = %v, %v, want 3 4 5 6", rows, err)
	}
}

func TestVersion2AndAlignment(t *testing.T) {
	w := newWritten()
	w.version, w.alignment = 2, 64
	w.key("general.alignment", KindUint32, uint32(64)).floats("a", []float32{1}, 1).floats("b", []float32{2}, 1)
	f := w.read(t)
	b, _ := f.Lookup("b")
	if f.Version != 2 || b.Offset%64 != 0 || f.Tensors()[0].Offset != b.Offset-64 {
		t.Errorf("version %d, tensors %+v, want 2 and steps of 64", f.Version, f.Tensors())
	}
}

// TestWrongKind asks for each value by a kind that it does not have.
func TestWrongKind(t *testing.T) {
	f := newWritten().key("n", KindInt32, int32(-1)).key("s", KindString, "x").
		key("x", KindFloat32, float32(math.Inf(1))).read(t)
	_, errUint := f.Uint("n")
	_, errAbsent := f.Uint("none")
	_, errBool := f.Bool("s")
	_, errFloat := f.Float("x")
	_, errText := f.Text("n")
	_, errTexts := f.Texts("s")
	_, errInts := f.Ints("s")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errUint, "key n = -1 of kind int32, want a whole number from 0"},
		{errAbsent, "no key none, want a whole number from 0"},
		{errBool, "key s is of kind string, want a bool"},
		{errFloat, "key x = +Inf of kind float32, want a finite float"},
		{errText, "key n = -1 of kind int32, want a string"},
		{errTexts, "key s is of kind string, want an array of strings"},
		{errInts, "key s is of kind string, want an array of int32"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("error %v, want %s", c.err, c.want)
		}
	}
}

// one has one tensor, its name at byte 24, its rank at 33, its dimension at 37, type at 45, offset at 49.
func one() *written { return newWritten().floats("a", []float32{1, 2}, 2) }

// changed is a file with the bytes of number in another place.
func changed(w *written, at int, number any) []byte {
	b := w.bytes()
	var n bytes.Buffer
	put(&n, number)
	copy(b[at:], n.Bytes())
	return b
}

func cut(w *written, bytes int) []byte {
	b := w.bytes()
	return b[:len(b)-bytes]
}

// TestRefused breaks a file in each way once.
func TestRefused(t *testing.T) {
	cases := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "file of 0 bytes ends at byte 0, where 4 more are due"},
		{"another format", []byte("PK\x03\x04 and more"), `begins with "PK\x03\x04", want GGUF`},
		{"version 1", changed(one(), 4, uint32(1)), "version 1, want 2 or 3"},
		{"big-endian", changed(one(), 4, uint32(3<<24)), "version 3: a big-endian file"},
		{"tensor count", changed(one(), 8, uint64(1)<<60), "1152921504606846976 tensors at byte 24 of a file with"},
		{"key count", changed(one(), 16, uint64(math.MaxUint64)), "18446744073709551615 keys at byte 24"},
		{"long name", changed(one(), 24, uint64(65)), "tensor 0: name: string of 65 bytes at byte 32"},
		{"rank 0", changed(one(), 33, uint32(0)), "tensor a: 0 dimensions, want 1 to 4"},
		{"rank 5", changed(one(), 33, uint32(5)), "tensor a: 5 dimensions, want 1 to 4"},
		{"no elements", changed(one(), 37, uint64(0)), "tensor a: shape [0]"},
		{"shape overflows", changed(one(), 37, uint64(1)<<62), "tensor a: shape [4611686018427387904]"},
		{"shape beyond the file", changed(one(), 37, uint64(1)<<40), "tensor a: 4398046511104 bytes at offset 0"},
		{"known type", changed(one(), 45, uint32(14)), "tensor a: Q6_K is not supported, want F32"},
		{"unknown type", changed(one(), 45, uint32(999)), "tensor a: type 999 is not supported"},
		{"half a block", changed(one(), 45, uint32(Q8_0)), "tensor a: rows of 2, want a multiple of 32"},
		{"offset", changed(one(), 49, uint64(8)), "tensor a: offset 8, want a multiple of 32"},
		{"offset beyond the file", changed(one(), 49, uint64(1)<<40), "tensor a: 8 bytes at offset 1099511627776"},
		{"offset overflows", changed(one(), 49, uint64(1)<<63), "tensor a: offset 9223372036854775808"},
		{"cut tensor", cut(one(), 1), "tensor a: 8 bytes at offset 0 from byte 64 of a file with 71 bytes"},
		{"cut value", cut(newWritten().key("k", KindUint64, uint64(1)), 24),
			"key k: file of 40 bytes ends at byte 37, where 8 more are due"},
		{"overlap", func() []byte {
			w := one().floats("b", []float32{1}, 1)
			b := w.bytes()
			binary.LittleEndian.PutUint64(b[24+33+25:], 0) // b's offset, 25 bytes into its entry
			return b
		}(), "tensor b begins at byte 96, before a ends at byte 104"},
		{"tensor twice", one().floats("a", []float32{1}, 1).bytes(), `tensor 1 is "a", want a name`},
		{"key twice", newWritten().key("k", KindBool, uint8(0)).key("k", KindBool, uint8(0)).bytes(),
			`key 1 is "k", want one`},
		{"bool 2", newWritten().key("k", KindBool, uint8(2)).bytes(), "key k: bool = 2, want 0 or 1"},
		{"unknown kind", newWritten().key("k", 13, uint8(2)).bytes(), "key k: kind 13 is unknown"},
		{"long string", newWritten().key("k", KindString, uint64(1)<<50).bytes(),
			"key k: 1125899906842624 bytes of a string"},
		{"not UTF-8", newWritten().key("k", KindString, "\xff").bytes(),
			`key k: string "\xff" at byte 45 is not UTF-8`},
		{"array of arrays", newWritten().key("k", KindArray, uint32(KindArray), uint64(1)).bytes(),
			"key k: array of arrays"},
		{"array of unknown", newWritten().key("k", KindArray, uint32(99), uint64(1)).bytes(),
			"key k: array of kind 99, which is unknown"},
		{"long array", newWritten().key("k", KindArray, uint32(KindFloat64), uint64(1)<<61).bytes(),
			"key k: 2305843009213693952 float64 elements"},
		{"long array of strings", newWritten().key("k", KindArray, uint32(KindString), uint64(3), "a").bytes(),
			"key k: 3 string elements"},
		{"alignment", newWritten().key("general.alignment", KindUint32, uint32(48)).bytes(),
			"key general.alignment = 48, want a power of two"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file), int64(len(c.file)), "a.gguf")
			if err == nil || !strings.HasPrefix(err.Error(), "a.gguf: "+c.want) {
				t.Errorf("error %v, want a.gguf: %s", err, c.want)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.gguf")
	if err := os.WriteFile(path, newWritten().floats("a", []float32{5}, 1).bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 1)
	if err := f.ReadRows(got, f.Tensors()[0], 0); err != nil || got[0] != 5 {
		t.Errorf("a = %v, %v, want 5", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{filepath.Dir(path), path + ".none"} {
		if _, err := Open(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: error %v, want one that names it", bad, err)
		}
	}
}

// FuzzRead feeds the reader and the plan of a conversion broken files: they must neither panic nor give a
// tensor outside the file.
func FuzzRead(f *testing.F) {
	f.Add(newWritten().key("k", KindUint32, uint32(1)).texts("l", "a", "b").
		floats("t", []float32{1, 2}, 2).bytes())
	f.Add(newWritten().key("k", KindArray, uint32(KindUint8), uint64(2), []byte{1, 2}).
		tensor("q", Q8_0, make([]byte, 68), 2, 32).bytes())
	f.Add(tiny("llama", "smollm").bytes())
	f.Add(biased(tiny("qwen2", "qwen2")).bytes())
	f.Add(normed(tiny("qwen3", "llama-bpe")).bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(bytes.NewReader(b), int64(len(b)), "a.gguf")
		if err != nil {
			return
		}
		for _, tensor := range file.Tensors() {
			row := make([]float32, tensor.Columns())
			if err := file.ReadRows(row, tensor, tensor.Rows()-1); err != nil {
				t.Error(err)
			}
		}
		if err := (&conversion{f: file}).plan(); err != nil && strings.Contains(err.Error(), "%!") {
			t.Error(err)
		}
	})
}
