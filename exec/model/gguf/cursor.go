package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// cursor reads the header of a file from its first byte on. It knows how much is left, so that no count in
// the file can ask for more memory than the file's own size accounts for.
type cursor struct {
	from *bufio.Reader
	at   uint64 // bytes read
	size uint64 // of the file
}

func newCursor(r io.ReaderAt, size int64) *cursor {
	return &cursor{from: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16), size: uint64(size)}
}

func (c *cursor) left() uint64 { return c.size - c.at }

// fits reports an error unless count things of at least bytesMin each fit into the rest of the file.
func (c *cursor) fits(count, bytesMin uint64, what string) error {
	if count > c.left()/bytesMin {
		return fmt.Errorf("%d %s at byte %d of a file with %d bytes", count, what, c.at, c.size)
	}
	return nil
}

// read fills v, a pointer to a number or a slice of numbers whose size the caller has checked.
func (c *cursor) read(v any) error {
	n := uint64(binary.Size(v))
	if n > c.left() {
		return fmt.Errorf("file of %d bytes ends at byte %d, where %d more are due", c.size, c.at, n)
	}
	if err := binary.Read(c.from, binary.LittleEndian, v); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("at byte %d: %w", c.at, err)
	}
	c.at += n
	return nil
}

func (c *cursor) uint32() (uint32, error) {
	var n uint32
	err := c.read(&n)
	return n, err
}

func (c *cursor) uint64() (uint64, error) {
	var n uint64
	err := c.read(&n)
	return n, err
}

// text reads a string of at most bytesMax bytes.
func (c *cursor) text(bytesMax uint64) (string, error) {
	n, err := c.uint64()
	if err != nil {
		return "", err
	}
	if n > bytesMax {
		return "", fmt.Errorf("string of %d bytes at byte %d, want at most %d", n, c.at, bytesMax)
	}
	if err := c.fits(n, 1, "bytes of a string"); err != nil {
		return "", err
	}
	b := make([]byte, n)
	if err := c.read(b); err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", fmt.Errorf("string %q at byte %d is not UTF-8", b[:min(n, 40)], c.at-n)
	}
	return string(b), nil
}

// value reads a metadata value of a kind.
func (c *cursor) value(k Kind) (any, error) {
	switch k {
	case KindBool:
		return c.truth()
	case KindString:
		return c.text(math.MaxUint64)
	case KindArray:
		return c.array()
	default:
		if k >= kinds {
			return nil, fmt.Errorf("%s is unknown", k)
		}
		numbers, err := c.numbers(k, 1)
		if err != nil {
			return nil, err
		}
		return first(numbers), nil
	}
}

func (c *cursor) truth() (bool, error) {
	var b uint8
	if err := c.read(&b); err != nil {
		return false, err
	}
	if b > 1 {
		return false, fmt.Errorf("bool = %d, want 0 or 1", b)
	}
	return b == 1, nil
}

func (c *cursor) array() (any, error) {
	number, err := c.uint32()
	if err != nil {
		return nil, err
	}
	length, err := c.uint64()
	if err != nil {
		return nil, err
	}
	k := Kind(number)
	switch {
	case k >= kinds:
		return nil, fmt.Errorf("array of %s, which is unknown", k)
	case k == KindArray:
		return nil, errors.New("array of arrays, want strings, numbers or bools")
	}
	if err := c.fits(length, kindBytes[k], k.String()+" elements"); err != nil {
		return nil, err
	}
	switch k {
	case KindString:
		return elements(length, func() (string, error) { return c.text(math.MaxUint64) })
	case KindBool:
		return elements(length, c.truth)
	default:
		return c.numbers(k, length)
	}
}

// elements reads length elements one by one. What it holds grows as they come.
func elements[T any](length uint64, next func() (T, error)) ([]T, error) {
	list := make([]T, 0, min(length, 1024))
	for i := range length {
		v, err := next()
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// numbers reads length numbers of a kind as a slice of Go's type for it.
func (c *cursor) numbers(k Kind, length uint64) (any, error) {
	var list any
	switch k {
	case KindUint8:
		list = make([]uint8, length)
	case KindInt8:
		list = make([]int8, length)
	case KindUint16:
		list = make([]uint16, length)
	case KindInt16:
		list = make([]int16, length)
	case KindUint32:
		list = make([]uint32, length)
	case KindInt32:
		list = make([]int32, length)
	case KindFloat32:
		list = make([]float32, length)
	case KindUint64:
		list = make([]uint64, length)
	case KindInt64:
		list = make([]int64, length)
	case KindFloat64:
		list = make([]float64, length)
	default:
		panic(fmt.Sprintf("gguf: numbers of %s", k))
	}
	return list, c.read(list)
}

// first is the first element of what numbers gives.
func first(list any) any {
	switch l := list.(type) {
	case []uint8:
		return l[0]
	case []int8:
		return l[0]
	case []uint16:
		return l[0]
	case []int16:
		return l[0]
	case []uint32:
		return l[0]
	case []int32:
		return l[0]
	case []float32:
		return l[0]
	case []uint64:
		return l[0]
	case []int64:
		return l[0]
	case []float64:
		return l[0]
	default:
		panic(fmt.Sprintf("gguf: numbers as %T", list))
	}
}
