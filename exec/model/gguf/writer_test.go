package gguf

import (
	"bytes"
	"testing"
)

// written makes GGUF files for tests.
type written struct {
	version   uint32
	alignment int
	keys      int
	metadata  bytes.Buffer
	tensors   int
	infos     bytes.Buffer
	elements  bytes.Buffer
}

func newWritten() *written { return &written{version: 3, alignment: alignmentDefault} }

// key adds a key; value follows kind as it is to lie in the file.
func (w *written) key(key string, kind Kind, value ...any) *written {
	w.keys++
	put(&w.metadata, key, uint32(kind))
	put(&w.metadata, value...)
	return w
}

// texts adds an array of strings.
func (w *written) texts(key string, list ...string) *written {
	w.key(key, KindArray, uint32(KindString), uint64(len(list)))
	for _, s := range list {
		put(&w.metadata, s)
	}
	return w
}

// tensor adds a tensor; the shape is rows first.
func (w *written) tensor(name string, t Type, raw []byte, shape ...int64) *written {
	for w.elements.Len()%w.alignment != 0 {
		w.elements.WriteByte(0)
	}
	w.tensors++
	put(&w.infos, name, uint32(len(shape)))
	for i := range shape {
		put(&w.infos, shape[len(shape)-1-i])
	}
	put(&w.infos, uint32(t), uint64(w.elements.Len()))
	w.elements.Write(raw)
	return w
}

// floats adds a tensor of F32.
func (w *written) floats(name string, numbers []float32, shape ...int64) *written {
	var b bytes.Buffer
	put(&b, numbers)
	return w.tensor(name, F32, b.Bytes(), shape...)
}

func (w *written) bytes() []byte {
	var b bytes.Buffer
	put(&b, []byte("GGUF"), w.version, uint64(w.tensors), uint64(w.keys), w.metadata.Bytes(), w.infos.Bytes())
	for b.Len()%w.alignment != 0 {
		b.WriteByte(0)
	}
	b.Write(w.elements.Bytes())
	return b.Bytes()
}

func (w *written) read(t testing.TB) *File {
	t.Helper()
	b := w.bytes()
	f, err := Read(bytes.NewReader(b), int64(len(b)), "a.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
