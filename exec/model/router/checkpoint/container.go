package checkpoint

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"tokenrouter/exec/model"
)

// pickleBytesMax bounds the pickle, the only part that is held in memory. Published ones have some 10 kB.
const pickleBytesMax = 1 << 20

// FileError says what is wrong with a file, or what of it is not supported.
type FileError struct {
	Path string
	Err  error
}

// Error begins with the path.
func (e *FileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FileError) Unwrap() error { return e.Err }

// container is the zip file: NAME/data.pkl, NAME/data/KEY for each storage, and what says how to read them.
type container struct {
	size    int64 // of the file
	prefix  string
	entries map[string]*zip.File
}

// openContainer reads the directory of a zip file of size bytes.
func openContainer(r io.ReaderAt, size int64) (*container, error) {
	var first [4]byte
	if _, err := r.ReadAt(first[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.Equal(first[:2], []byte{proto, 2}):
		return nil, errors.New("is a pickle and no zip file (PyTorch before 1.6 wrote those), want a zip file")
	case !bytes.Equal(first[:], []byte("PK\x03\x04")):
		return nil, fmt.Errorf("begins with %q, want a zip file, as torch.save writes", first[:])
	}
	read, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("is no whole zip file: %w", err)
	}
	c := &container{size: size, entries: map[string]*zip.File{}}
	pickles := 0
	for _, entry := range read.File {
		if c.entries[entry.Name] != nil {
			return nil, fmt.Errorf("has %q twice", entry.Name)
		}
		c.entries[entry.Name] = entry
		if prefix, ok := strings.CutSuffix(entry.Name, "data.pkl"); ok {
			c.prefix = prefix
			pickles++
		}
	}
	if pickles != 1 {
		return nil, fmt.Errorf("has %d files data.pkl, want one", pickles)
	}
	return c, c.checkOrder()
}

// checkOrder refuses tensors of a machine that writes the large end first.
func (c *container) checkOrder() error {
	if c.entries[c.prefix+"byteorder"] == nil {
		return nil // written before there was a choice
	}
	order, err := c.content("byteorder", 16)
	if err == nil && string(order) != "little" {
		err = fmt.Errorf("byteorder is %q, want \"little\"", order)
	}
	return err
}

// entry finds a part of the file and refuses one that is not as torch.save writes it.
func (c *container) entry(name string) (*zip.File, error) {
	entry := c.entries[c.prefix+name]
	switch {
	case entry == nil:
		return nil, fmt.Errorf("has no %s", c.prefix+name)
	case entry.Method != zip.Store:
		return nil, fmt.Errorf("%s is compressed (method %d), want it as it is", entry.Name, entry.Method)
	case entry.UncompressedSize64 != entry.CompressedSize64 || entry.UncompressedSize64 > uint64(c.size):
		return nil, fmt.Errorf("%s has %d bytes that take %d in a file of %d", entry.Name,
			entry.UncompressedSize64, entry.CompressedSize64, c.size)
	}
	return entry, nil
}

// content reads a part of at most most bytes.
func (c *container) content(name string, most uint64) ([]byte, error) {
	entry, err := c.entry(name)
	if err != nil {
		return nil, err
	}
	if entry.UncompressedSize64 > most {
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", entry.Name, entry.UncompressedSize64, most)
	}
	from, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	}
	content, err := io.ReadAll(from)
	if err := errors.Join(err, from.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", entry.Name, err)
	}
	return content, nil
}

// storage is the bytes of tensors, of one type.
type storage struct {
	key      string
	dtype    model.DType
	elements int64
}

// storage checks that a part of the file has that many elements.
func (c *container) storage(key string, dtype model.DType, elements int64) (*storage, error) {
	if key == "" || strings.Trim(key, "0123456789") != "" || len(key) > 9 {
		return nil, fmt.Errorf("storage %s, want a number", shown(key))
	}
	entry, err := c.entry("data/" + key)
	if err != nil {
		return nil, err
	}
	// Compared by division: a product could wrap.
	if width := uint64(dtype.Bytes()); elements < 0 || entry.UncompressedSize64%width != 0 ||
		entry.UncompressedSize64/width != uint64(elements) {
		return nil, fmt.Errorf("%s has %d bytes, want %d elements of %s", entry.Name, entry.UncompressedSize64,
			elements, dtype)
	}
	return &storage{key, dtype, elements}, nil
}

// write copies a tensor's bytes to w.
func (c *container) write(w io.Writer, t *tensor) error {
	entry, err := c.entry("data/" + t.from.key)
	if err != nil {
		return err
	}
	from, err := entry.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	width := t.from.dtype.Bytes()
	_, err = io.CopyN(io.Discard, from, t.offset*width)
	if err == nil {
		_, err = io.CopyN(w, from, t.elements*width)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, from) // the sum is compared at the end
	}
	if err := errors.Join(err, from.Close()); err != nil {
		return fmt.Errorf("%s: %w", entry.Name, err)
	}
	return nil
}

// file is a checkpoint that has been parsed.
type file struct {
	*container
	root any
}

// read parses a checkpoint of size bytes. Nothing of the tensors is read.
func read(r io.ReaderAt, size int64) (*file, error) {
	c, err := openContainer(r, size)
	if err != nil {
		return nil, err
	}
	code, err := c.content("data.pkl", pickleBytesMax)
	if err != nil {
		return nil, err
	}
	root, err := (&machine{code: code, storages: c.storage}).run()
	if err != nil {
		return nil, fmt.Errorf("%sdata.pkl: %w", c.prefix, err)
	}
	return &file{c, root}, nil
}
