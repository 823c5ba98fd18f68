package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// HeaderBytesMax is the largest header that the format allows (safetensors README, "Format").
const HeaderBytesMax = 100_000_000

// lengthBytes is the size of the number before the header that says how long it is.
const lengthBytes = 8

// Tensor is one tensor of a file.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int64 // rows first; empty for a scalar
	File   string  // path of the file
	Offset int64   // from the file's first byte
	Size   int64   // bytes
}

// Elements returns the number of elements, 1 for a scalar.
func (t Tensor) Elements() int64 { return t.Size / t.DType.Bytes() }

// File is a mapped safetensors file. Its tensors stay valid until Close. Like every mapping it must not be
// cut by others meanwhile: a read beyond the new end kills the process.
type File struct {
	Path     string
	Metadata map[string]string // "__metadata__", nil if there is none
	tensors  []Tensor          // by offset
	byName   map[string]int
	mapping  []byte
}

// OpenFile maps the safetensors file at path and checks its header in full: the format's rules (no holes, no
// overlap, no name twice, at most HeaderBytesMax) and that the file is as long as the header says. Errors
// name the file and the tensor.
func OpenFile(path string) (*File, error) {
	file, size, err := OpenRegular(path, "a safetensors file")
	if err != nil {
		return nil, err
	}
	defer file.Close() // the mapping stays
	if size < lengthBytes {
		return nil, fmt.Errorf("%s has %d bytes, want at least the %d of a header's length",
			path, size, lengthBytes)
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%s has %d bytes, too many for this machine's addresses", path, size)
	}
	mapping, err := mapped(file, int(size))
	if err != nil {
		return nil, fmt.Errorf("%s: mapping %d bytes: %w", path, size, err)
	}
	f := &File{Path: path, mapping: mapping}
	if err := f.readHeader(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), unmapped(mapping))
	}
	return f, nil
}

func (f *File) readHeader() error {
	length := binary.LittleEndian.Uint64(f.mapping)
	rest := uint64(len(f.mapping) - lengthBytes)
	switch {
	case length > HeaderBytesMax:
		return fmt.Errorf("header of %d bytes, want at most %d", length, HeaderBytesMax)
	case length > rest:
		return fmt.Errorf("header of %d bytes in a file with %d after its length", length, rest)
	}
	begin := lengthBytes + int64(length)
	entries, metadata, err := parseHeader(f.mapping[lengthBytes:begin])
	if err != nil {
		return err
	}
	if err := checkLayout(entries, int64(len(f.mapping))-begin); err != nil {
		return err
	}
	f.Metadata = metadata
	f.tensors = make([]Tensor, len(entries))
	f.byName = make(map[string]int, len(entries))
	for i, e := range entries {
		f.tensors[i] = Tensor{Name: e.name, DType: e.dtype, Shape: e.shape, File: f.Path,
			Offset: begin + e.begin, Size: e.end - e.begin}
		f.byName[e.name] = i
	}
	return nil
}

// Tensors returns all tensors in the order of their places in the file.
func (f *File) Tensors() []Tensor { return f.tensors }

// Lookup returns the tensor of that name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// Bytes returns the elements of a tensor of this file, little-endian, rows first. They may start at any
// address and must not be written to. It panics if t is not of this file.
func (f *File) Bytes(t Tensor) []byte {
	if t.File != f.Path || t.Offset < 0 || t.Size < 0 || t.Offset > int64(len(f.mapping))-t.Size {
		panic(fmt.Sprintf("model: tensor %s of %s is not in %s", t.Name, t.File, f.Path))
	}
	return f.mapping[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// Release lets go of the memory that a tensor of this file takes once its bytes have been looked at. It stays
// valid: what is looked at again is read again. It panics as Bytes does.
func (f *File) Release(t Tensor) error {
	f.Bytes(t)
	page := int64(os.Getpagesize())
	first := t.Offset / page * page
	if err := released(f.mapping[first : t.Offset+t.Size]); err != nil {
		return fmt.Errorf("%s: tensor %s: %w", f.Path, t.Name, err)
	}
	return nil
}

// Close ends the mapping: nothing that Bytes returned may be looked at any more.
func (f *File) Close() error {
	mapping := f.mapping
	f.mapping = nil
	if mapping == nil {
		return nil
	}
	if err := unmapped(mapping); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(f.Path), err)
	}
	return nil
}
