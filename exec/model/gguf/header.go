package gguf

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Limits of the format (docs/gguf.md): bytes of a key, bytes of a tensor's name, a tensor's dimensions.
const (
	KeyBytesMax  = 65535
	NameBytesMax = 64
	RankMax      = 4
)

// alignmentDefault holds where general.alignment is absent.
const alignmentDefault = 32

// Tensor is one tensor of a file.
type Tensor struct {
	Name   string
	Type   Type
	Shape  []int64 // rows first, as everywhere but in GGUF
	Offset int64   // from the file's first byte
	Size   int64   // bytes
}

// Columns returns the number of elements of a row, those that lie next to one another.
func (t Tensor) Columns() int64 { return t.Shape[len(t.Shape)-1] }

// Rows returns the number of rows, 1 for a vector.
func (t Tensor) Rows() int64 {
	l := layouts[t.Type]
	return t.Size / (t.Columns() / l.blockElements * l.blockBytes)
}

func (f *File) readHeader(c *cursor) error {
	var magic [4]byte
	if err := c.read(magic[:]); err != nil {
		return err
	}
	if string(magic[:]) != "GGUF" {
		return fmt.Errorf("begins with %q, want GGUF", magic[:])
	}
	var err error
	if f.Version, err = c.uint32(); err != nil {
		return err
	}
	switch {
	case f.Version == 2 || f.Version == 3:
	case f.Version&0xffff == 0 && f.Version != 0:
		return fmt.Errorf("version %d: a big-endian file, want a little-endian one", bits.ReverseBytes32(f.Version))
	default:
		return fmt.Errorf("version %d, want 2 or 3", f.Version)
	}
	tensors, err := c.uint64()
	if err != nil {
		return err
	}
	entries, err := c.uint64()
	if err != nil {
		return err
	}
	// The least a tensor takes: its name's length, the number of dimensions, one, type and offset; and a key's
	// length, kind and one byte.
	if err := c.fits(tensors, 8+4+8+4+8, "tensors"); err != nil {
		return err
	}
	if err := c.fits(entries, 8+4+1, "keys"); err != nil {
		return err
	}
	if err := f.readMetadata(c, entries); err != nil {
		return err
	}
	return f.readTensors(c, tensors)
}

func (f *File) readMetadata(c *cursor, entries uint64) error {
	f.values = map[string]entry{}
	for i := range entries {
		key, err := c.text(KeyBytesMax)
		if err != nil {
			return fmt.Errorf("key %d: %w", i, err)
		}
		if _, twice := f.values[key]; twice || key == "" {
			return fmt.Errorf("key %d is %q, want one that is not empty and not given before", i, key)
		}
		number, err := c.uint32()
		if err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		v, err := c.value(Kind(number))
		if err != nil {
			return fmt.Errorf("key %s: %w", key, err)
		}
		f.values[key] = entry{Kind(number), v}
		f.keys = append(f.keys, key)
	}
	return nil
}

func (f *File) readTensors(c *cursor, count uint64) error {
	alignment, err := f.alignment()
	if err != nil {
		return err
	}
	f.byName = map[string]int{}
	for i := range count {
		name, err := c.text(NameBytesMax)
		if err != nil {
			return fmt.Errorf("tensor %d: name: %w", i, err)
		}
		if _, twice := f.byName[name]; twice || name == "" {
			return fmt.Errorf("tensor %d is %q, want a name that is not empty and not given before", i, name)
		}
		t, err := readTensor(c, name, alignment)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", name, err)
		}
		f.byName[name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
	begin := (c.at + alignment - 1) / alignment * alignment // c.at is a file's size at most: no overflow
	return f.place(begin, c.size)
}

func (f *File) alignment() (uint64, error) {
	if !f.Has("general.alignment") {
		return alignmentDefault, nil
	}
	n, err := f.Uint("general.alignment")
	if err != nil {
		return 0, err
	}
	if n < 8 || n > 1<<20 || n&(n-1) != 0 {
		return 0, fmt.Errorf("key general.alignment = %d, want a power of two from 8 to %d", n, 1<<20)
	}
	return n, nil
}

// readTensor reads what follows a tensor's name. The offset it gives is still that from the first tensor.
func readTensor(c *cursor, name string, alignment uint64) (Tensor, error) {
	t := Tensor{Name: name}
	rank, err := c.uint32()
	if err != nil {
		return t, err
	}
	if rank < 1 || rank > RankMax {
		return t, fmt.Errorf("%d dimensions, want 1 to %d", rank, RankMax)
	}
	dimensions := make([]uint64, rank)
	if err := c.read(dimensions); err != nil {
		return t, err
	}
	number, err := c.uint32()
	if err != nil {
		return t, err
	}
	t.Type = Type(number)
	l, ok := layouts[t.Type]
	if !ok {
		return t, fmt.Errorf("%s is not supported, want F32, F16, BF16, Q8_0, Q4_0 or Q4_1", t.Type)
	}
	elements := uint64(1)
	for _, n := range dimensions {
		high, low := bits.Mul64(elements, n)
		if n == 0 || high != 0 || low > math.MaxInt64/uint64(l.blockBytes) {
			return t, fmt.Errorf("shape %d, want numbers from 1 whose product fits", dimensions)
		}
		elements = low
		t.Shape = append(t.Shape, int64(n))
	}
	slices.Reverse(t.Shape)
	if t.Columns()%l.blockElements != 0 {
		return t, fmt.Errorf("rows of %d, want a multiple of %d, a block of %s",
			t.Columns(), l.blockElements, t.Type)
	}
	t.Size = int64(elements) / l.blockElements * l.blockBytes
	offset, err := c.uint64()
	if err != nil {
		return t, err
	}
	if offset%alignment != 0 || offset > math.MaxInt64 {
		return t, fmt.Errorf("offset %d, want a multiple of %d", offset, alignment)
	}
	t.Offset = int64(offset)
	return t, nil
}

// place turns the offsets into those from the file's first byte and checks that the tensors lie in the file,
// none over another. begin is where the first may lie.
func (f *File) place(begin, size uint64) error {
	for i := range f.tensors {
		t := &f.tensors[i]
		if begin > size || uint64(t.Offset) > size-begin || uint64(t.Size) > size-begin-uint64(t.Offset) {
			return fmt.Errorf("tensor %s: %d bytes at offset %d from byte %d of a file with %d bytes",
				t.Name, t.Size, t.Offset, begin, size)
		}
		t.Offset += int64(begin)
	}
	sorted := slices.Clone(f.tensors)
	slices.SortStableFunc(sorted, func(a, b Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(sorted); i++ {
		if before := sorted[i-1]; before.Offset+before.Size > sorted[i].Offset {
			return fmt.Errorf("tensor %s begins at byte %d, before %s ends at byte %d",
				sorted[i].Name, sorted[i].Offset, before.Name, before.Offset+before.Size)
		}
	}
	return nil
}
