package model

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// raw makes the bytes of a safetensors file of a header and dataBytes zeros.
func raw(header string, dataBytes int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, dataBytes)...)
}

// put writes a file of the test's own folder and returns its path.
func put(t testing.TB, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// bad is a file that must be refused.
type bad struct {
	name    string
	content []byte
	want    []string // parts of the error
}

// one is a file of a header with a single tensor, w.
func one(entry string, dataBytes int) []byte { return raw(`{"w":`+entry+`}`, dataBytes) }

// badHeaders are files whose header can not be read.
func badHeaders() []bad {
	length := func(n uint64, rest int) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, n), make([]byte, rest)...)
	}
	return []bad{
		{"empty", nil, []string{"0 bytes"}},
		{"seven bytes", make([]byte, 7), []string{"7 bytes"}},
		{"length 2^63", length(1<<63, 8), []string{"header of 9223372036854775808 bytes", "at most 100000000"}},
		{"length beyond 100 MB", length(100_000_001, 8), []string{"header of 100000001 bytes"}},
		{"length beyond the file", length(17, 16), []string{"header of 17 bytes", "16 after"}},
		{"no header", length(0, 0), []string{"does not begin with {"}},
		{"space first", raw(` {}`, 0), []string{"does not begin with {"}},
		{"not JSON", raw(`{"w":}`, 0), []string{"not JSON"}},
		{"comma too many", raw(`{"__metadata__":{},}`, 0), []string{"not JSON"}},
		{"cut JSON", raw(`{"w":{"dtype":"F32"`, 0), []string{"not JSON"}},
		{"two documents", raw(`{}{}`, 0), []string{"2 bytes after the JSON document"}},
		{"not UTF-8", raw("{\"\xff\":1}", 0), []string{"not UTF-8"}},
		{"deep", raw(`{"w":`+strings.Repeat("[", 5000), 0), []string{"nested more than"}},
	}
}

// badEntries are files whose header does not describe the data.
func badEntries() []bad {
	f32 := func(offsets string) string { return `{"dtype":"F32","shape":[2],"data_offsets":` + offsets + `}` }
	return []bad{
		{"offsets [16,8]", one(f32("[16,8]"), 16), []string{`"w"`, "[16, 8] end before they begin"}},
		{"offsets [-16,0]", one(f32("[-16,0]"), 16), []string{`"w"`, "-16", "whole number"}},
		{"offset 2^63", one(f32("[0,9223372036854775808]"), 8), []string{`"w"`, "9223372036854775808"}},
		{"offset 8.0", one(f32("[0,8.0]"), 8), []string{`"w"`, "8.0"}},
		{"one offset", one(f32("[8]"), 8), []string{`"w"`, "1 numbers, want 2"}},
		{"three offsets", one(f32("[0,8,8]"), 8), []string{`"w"`, "3 numbers, want 2"}},
		{"offsets null", one(f32("null"), 8), []string{`"w"`, "null, want a list"}},
		{"end past the file", one(f32("[0,8]"), 7), []string{`"w"`, "[0, 8] in a file with 7 bytes"}},
		{"trailing bytes", one(f32("[0,8]"), 9), []string{"1 bytes after the last tensor"}},
		{"data of no tensor", raw(`{}`, 4), []string{"4 bytes after the last tensor"}},
		{"hole before", one(f32("[8,16]"), 16), []string{`"w"`, "no hole"}},
		{"hole between", raw(`{"a":`+f32("[0,8]")+`,"b":`+f32("[9,17]")+`}`, 17), []string{`"b"`, "no hole"}},
		{"overlap", raw(`{"a":`+f32("[0,8]")+`,"b":`+f32("[4,12]")+`}`, 12), []string{`"b"`, `overlaps "a"`}},
		{"same place", raw(`{"a":`+f32("[0,8]")+`,"b":`+f32("[0,8]")+`}`, 8), []string{`"b"`, `overlaps "a"`}},
		{"empty inside another", raw(`{"a":`+f32("[0,8]")+
			`,"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`, 8), []string{`"b"`, `overlaps "a"`}},
		{"shape larger than range", one(`{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}`, 4),
			[]string{`"w"`, "4000000 bytes", "have 4"}},
		{"shape overflows", one(`{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}`, 0),
			[]string{`"w"`, "[4294967296 4294967296] of F32 overflows"}},
		{"shape overflows by its type", one(`{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}`,
			0), []string{`"w"`, "overflows"}},
		{"negative shape", one(`{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}`, 4), []string{`"w"`, "-1"}},
		{"shape of text", one(`{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}`, 4), []string{`"w"`, `"1"`}},
		{"dtype F99", one(`{"dtype":"F99","shape":[2],"data_offsets":[0,8]}`, 8), []string{`"w"`, `"F99"`}},
		{"dtype in small letters", one(`{"dtype":"f32","shape":[2],"data_offsets":[0,8]}`, 8), []string{`"f32"`}},
		{"dtype number", one(`{"dtype":1,"shape":[2],"data_offsets":[0,8]}`, 8), []string{"dtype = 1"}},
		{"no dtype", one(`{"shape":[2],"data_offsets":[0,8]}`, 8), []string{`"w"`, "no dtype"}},
		{"key too many", one(`{"dtype":"F32","shape":[2],"data_offsets":[0,8],"stride":[1]}`, 8),
			[]string{`"w"`, "keys other than"}},
		{"tensor null", one(`null`, 0), []string{`"w"`, "null, want an object"}},
		{"name twice", raw(`{"w":`+f32("[0,8]")+`,"w":`+f32("[8,16]")+`}`, 16), []string{`"w" is given twice`}},
		{"name twice, escaped", raw(`{"w":`+f32("[0,8]")+`,"\u0077":`+f32("[8,16]")+`}`, 16),
			[]string{`"w" is given twice`}},
		{"dtype twice", one(`{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}`, 8),
			[]string{`"dtype" is given twice`}},
		{"metadata of numbers", raw(`{"__metadata__":{"a":1}}`, 0), []string{"want an object of strings"}},
	}
}

func TestOpenFileRefuses(t *testing.T) {
	for _, test := range append(badHeaders(), badEntries()...) {
		t.Run(test.name, func(t *testing.T) {
			path := put(t, t.TempDir(), "model.safetensors", test.content)
			f, err := OpenFile(path)
			if err == nil {
				f.Close()
				t.Fatalf("opened, with %v", f.Tensors())
			}
			for _, part := range append(test.want, path) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q, want %q in it", err, part)
				}
			}
		})
	}
}

func TestOpenFileOfNone(t *testing.T) {
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("error %v, want one of a file that does not exist", err)
	}
	dir := t.TempDir()
	if _, err := OpenFile(dir); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("error %v, want one of a folder", err)
	}
}

// TestOpenFile has what is rare and valid: an empty tensor, a scalar, spaces after the header, data at odd
// addresses, places in another order than the names.
func TestOpenFile(t *testing.T) {
	header := `{"z":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},` +
		`"scalar":{"data_offsets":[3,7],"shape":[],"dtype":"F32"},"__metadata__":{"format":"pt"},` +
		`"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[7,11]},` +
		`"empty":{"dtype":"F32","shape":[0,4],"data_offsets":[7,7]}}   `
	content := raw(header, 0)
	begin := int64(len(content))
	content = append(content, 1, 2, 3, 0, 0, 0x80, 0x3f, 5, 6, 7, 8)
	path := put(t, t.TempDir(), "w.safetensors", content)
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []Tensor{
		{"z", "U8", []int64{3}, path, begin, 3},
		{"scalar", F32, []int64{}, path, begin + 3, 4},
		{"empty", F32, []int64{0, 4}, path, begin + 7, 0},
		{"b", BF16, []int64{1, 2}, path, begin + 7, 4},
	}
	if diff := cmp.Diff(want, f.Tensors()); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"format": "pt"}, f.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	for name, bytes := range map[string][]byte{"z": {1, 2, 3}, "scalar": {0, 0, 0x80, 0x3f}, "empty": {},
		"b": {5, 6, 7, 8}} {
		tensor, ok := f.Lookup(name)
		if got := f.Bytes(tensor); !ok || string(got) != string(bytes) {
			t.Errorf("%s has the bytes %v, want %v", name, got, bytes)
		}
	}
	scalar, _ := f.Lookup("scalar")
	empty, _ := f.Lookup("empty")
	if scalar.Elements() != 1 || empty.Elements() != 0 {
		t.Errorf("%d and %d elements, want 1 and 0", scalar.Elements(), empty.Elements())
	}
	if _, ok := f.Lookup("none"); ok {
		t.Error("found a tensor that is not there")
	}
}

func filled(b ...byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

func TestWriteFile(t *testing.T) {
	tensors := []Declared{
		{"b.weight", BF16, []int64{1, 2}, filled(1, 2, 3, 4)},
		{`a"quoted"`, F32, nil, filled(5, 6, 7, 8)},
	}
	metadata := map[string]string{"x": "1", "format": "pt", "seed": "7"}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := WriteFile(b, metadata, tensors); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two files of the same tensors differ")
	}
	f, err := OpenFile(put(t, t.TempDir(), "w.safetensors", first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(metadata, f.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	begin := f.Tensors()[0].Offset
	if begin%64 != 0 {
		t.Errorf("data begins at %d, want a multiple of 64", begin)
	}
	want := []Tensor{{"b.weight", BF16, []int64{1, 2}, f.Path, begin, 4},
		{`a"quoted"`, F32, []int64{}, f.Path, begin + 4, 4}}
	if diff := cmp.Diff(want, f.Tensors()); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if got := f.Bytes(want[1]); string(got) != "\x05\x06\x07\x08" {
		t.Errorf("bytes %v, want 5 to 8", got)
	}
}

func TestWriteFileRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		tensors []Declared
		want    string
	}{
		{"name twice", []Declared{{"w", F32, nil, filled(1, 2, 3, 4)}, {"w", F32, nil, filled(1, 2, 3, 4)}},
			"tensor w is given twice"},
		{"too few bytes", []Declared{{"w", F32, nil, filled(1)}}, "tensor w: 3 of its 4 bytes were not written"},
		{"too many bytes", []Declared{{"w", BF16, nil, filled(1, 2, 3)}}, "tensor w: 1 bytes more"},
		{"overflow", []Declared{{"w", F32, []int64{1 << 40, 1 << 40}, filled()}}, "overflows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := WriteFile(io.Discard, nil, test.tensors)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

// FuzzHeader: whatever the header says, it is refused or every tensor lies within the data, as long as its
// shape, and the tensors fill the data.
func FuzzHeader(f *testing.F) {
	f.Add([]byte(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`), int64(8))
	f.Add([]byte(`{"__metadata__":{"a":"b"},"w":{"dtype":"I8","shape":[],"data_offsets":[0,1]}}`), int64(1))
	f.Add([]byte(`{"w":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}`), int64(0))
	f.Fuzz(func(t *testing.T, header []byte, dataBytes int64) {
		entries, _, err := parseHeader(header)
		if err != nil || dataBytes < 0 || checkLayout(entries, dataBytes) != nil {
			return
		}
		total := int64(0)
		names := map[string]bool{}
		for _, e := range entries {
			if e.begin < 0 || e.end < e.begin || e.end > dataBytes || names[e.name] {
				t.Fatalf("%+v in %d bytes, accepted from %q", e, dataBytes, header)
			}
			names[e.name] = true
			total += e.end - e.begin
			elements := int64(1)
			for _, n := range e.shape {
				elements *= n
			}
			if elements*e.dtype.Bytes() != e.end-e.begin {
				t.Fatalf("%+v has %d elements, accepted from %q", e, elements, header)
			}
		}
		if total != dataBytes {
			t.Fatalf("tensors have %d of %d bytes, accepted from %q", total, dataBytes, header)
		}
	})
}
