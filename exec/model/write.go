package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// alignment is where the data of a written file begins: a multiple of it, the size of a cache line.
const alignment = 64

// Declared is a tensor to be written.
type Declared struct {
	Name  string
	DType DType
	Shape []int64
	Fill  func(w io.Writer) error // writes all elements, little-endian, rows first
}

// WriteFile writes a safetensors file to w: the tensors one after another as given, the header padded so that
// they begin at a multiple of 64 bytes. The same input gives the same bytes. Nothing is held in memory but
// the header. It fails for a name given twice, a size that overflows, and for a Fill that writes more or less
// than its tensor.
func WriteFile(w io.Writer, metadata map[string]string, tensors []Declared) error {
	header, sizes, err := writtenHeader(metadata, tensors)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for i, t := range tensors {
		counted := &counter{to: w, room: sizes[i]}
		if err := t.Fill(counted); err != nil {
			return fmt.Errorf("tensor %s: %w", t.Name, err)
		}
		if counted.room != 0 {
			return fmt.Errorf("tensor %s: %d of its %d bytes were not written", t.Name, counted.room, sizes[i])
		}
	}
	return nil
}

func writtenHeader(metadata map[string]string, tensors []Declared) ([]byte, []int64, error) {
	header := bytes.NewBuffer(make([]byte, lengthBytes))
	header.WriteString("{")
	if len(metadata) > 0 {
		header.WriteString(`"__metadata__":{`)
		for i, key := range sortedKeys(metadata) {
			if i > 0 {
				header.WriteString(",")
			}
			header.Write(quoted(key))
			header.WriteString(":")
			header.Write(quoted(metadata[key]))
		}
		header.WriteString("}")
	}
	seen := map[string]bool{"__metadata__": true}
	sizes := make([]int64, len(tensors))
	at := int64(0)
	for i, t := range tensors {
		size, fits := shapeBytes(t.Shape, t.DType)
		switch {
		case seen[t.Name]:
			return nil, nil, fmt.Errorf("tensor %s is given twice", t.Name)
		case !fits || at+size < at:
			return nil, nil, fmt.Errorf("tensor %s: shape %d of %s overflows", t.Name, t.Shape, t.DType)
		}
		seen[t.Name] = true
		sizes[i] = size
		if header.Len() > lengthBytes+1 {
			header.WriteString(",")
		}
		header.Write(quoted(t.Name))
		fmt.Fprintf(header, `:{"dtype":%q,"shape":[`, string(t.DType))
		for j, n := range t.Shape {
			if j > 0 {
				header.WriteString(",")
			}
			header.WriteString(strconv.FormatInt(n, 10))
		}
		fmt.Fprintf(header, `],"data_offsets":[%d,%d]}`, at, at+size)
		at += size
	}
	header.WriteString("}")
	for header.Len()%alignment != 0 {
		header.WriteByte(' ')
	}
	length := header.Len() - lengthBytes
	if length > HeaderBytesMax {
		return nil, nil, fmt.Errorf("header of %d bytes, want at most %d", length, HeaderBytesMax)
	}
	binary.LittleEndian.PutUint64(header.Bytes(), uint64(length))
	return header.Bytes(), sizes, nil
}

// quoted is s as JSON.
func quoted(s string) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("model: %q as JSON: %v", s, err)) // strings always can
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// counter lets no more through than room.
type counter struct {
	to   io.Writer
	room int64
}

func (c *counter) Write(b []byte) (int, error) {
	if int64(len(b)) > c.room {
		return 0, fmt.Errorf("%d bytes more than its shape has", int64(len(b))-c.room)
	}
	n, err := c.to.Write(b)
	c.room -= int64(n)
	return n, err
}
