package gguf

import (
	"fmt"
	"io"
	"math"

	"tokenrouter/exec/model"
)

// File is a GGUF file whose header has been read. It is safe for concurrent use until Close.
type File struct {
	Path    string
	Version uint32
	from    io.ReaderAt
	keys    []string
	values  map[string]entry
	tensors []Tensor
	byName  map[string]int
}

// entry is one metadata value; value has Go's type for kind, for an array a slice of it.
type entry struct {
	kind  Kind
	value any
}

// FileError says what is wrong with a file, or what of it is not supported: key or tensor, value, and what
// was expected.
type FileError struct {
	Path string
	Err  error
}

// Error begins with the path.
func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FileError) Unwrap() error { return e.Err }

// Open opens the file at path and reads its header. It returns a *FileError for one that is broken or not
// supported.
func Open(path string) (*File, error) {
	opened, size, err := model.OpenRegular(path, "a GGUF file")
	if err != nil {
		return nil, err
	}
	f, err := Read(opened, size, path)
	if err != nil {
		opened.Close()
		return nil, err
	}
	return f, nil
}

// Read reads the header of a GGUF file of size bytes, as Open does; path is its name for errors. The File
// reads from r.
func Read(r io.ReaderAt, size int64, path string) (*File, error) {
	f := &File{Path: path, from: r}
	if err := f.readHeader(newCursor(r, size)); err != nil {
		return nil, &FileError{path, err}
	}
	return f, nil
}

// Close closes what the file is read from, if that can be closed.
func (f *File) Close() error {
	if c, ok := f.from.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Keys returns the metadata keys in the order of the file.
func (f *File) Keys() []string { return f.keys }

// Has reports whether the metadata have a key.
func (f *File) Has(key string) bool {
	_, ok := f.values[key]
	return ok
}

// Kind returns the kind of a key's value, and false if the key is absent.
func (f *File) Kind(key string) (Kind, bool) {
	e, ok := f.values[key]
	return e.kind, ok
}

// Tensors returns the tensors in the order of the file.
func (f *File) Tensors() []Tensor { return f.tensors }

// Lookup returns the tensor of that name.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// wrong is the error of a key that is absent or has another kind of value.
func (f *File) wrong(key, want string) error {
	e, ok := f.values[key]
	switch {
	case !ok:
		return fmt.Errorf("no key %s, want %s", key, want)
	case e.kind == KindString || e.kind == KindArray:
		return fmt.Errorf("key %s is of kind %s, want %s", key, e.kind, want)
	default:
		return fmt.Errorf("key %s = %v of kind %s, want %s", key, e.value, e.kind, want)
	}
}

// Uint returns a whole number that is not negative, of any integer kind.
func (f *File) Uint(key string) (uint64, error) {
	n, whole := wholeNumber(f.values[key].value)
	if u, ok := f.values[key].value.(uint64); ok {
		return u, nil
	}
	if !whole || n < 0 {
		return 0, f.wrong(key, "a whole number from 0")
	}
	return uint64(n), nil
}

// Float returns a finite float32 or float64.
func (f *File) Float(key string) (float64, error) {
	x := math.NaN()
	switch v := f.values[key].value.(type) {
	case float32:
		x = float64(v)
	case float64:
		x = v
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, f.wrong(key, "a finite float")
	}
	return x, nil
}

// Bool returns a bool.
func (f *File) Bool(key string) (bool, error) {
	b, ok := f.values[key].value.(bool)
	if !ok {
		return false, f.wrong(key, "a bool")
	}
	return b, nil
}

// Text returns a string.
func (f *File) Text(key string) (string, error) {
	s, ok := f.values[key].value.(string)
	if !ok {
		return "", f.wrong(key, "a string")
	}
	return s, nil
}

// Texts returns an array of strings, which must not be changed.
func (f *File) Texts(key string) ([]string, error) {
	list, ok := f.values[key].value.([]string)
	if !ok {
		return nil, f.wrong(key, "an array of strings")
	}
	return list, nil
}

// Ints returns an array of int32, the kind that token types have; it must not be changed.
func (f *File) Ints(key string) ([]int32, error) {
	list, ok := f.values[key].value.([]int32)
	if !ok {
		return nil, f.wrong(key, "an array of int32")
	}
	return list, nil
}

// wholeNumber returns a number of any integer kind but uint64.
func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case uint8:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	default:
		return 0, false
	}
}
