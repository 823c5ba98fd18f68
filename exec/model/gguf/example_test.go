package gguf_test

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"tokenrouter/exec/model/gguf"
)

// A file of one key and one tensor of two rows, read.
func ExampleRead() {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
				panic(err)
			}
		}
	}
	put([]byte("GGUF"), uint32(3), uint64(1), uint64(1)) // version, tensors, keys
	put(uint64(4), []byte("name"), uint32(gguf.KindString), uint64(3), []byte("two"))
	put(uint64(1), []byte("w"), uint32(2), uint64(3), uint64(2), uint32(gguf.F32), uint64(0))
	put(make([]byte, 32-b.Len()%32), []float32{1, 2, 3, 4, 5, 6})

	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "two.gguf")
	if err != nil {
		panic(err)
	}
	name, err := f.Text("name")
	if err != nil {
		panic(err)
	}
	w, _ := f.Lookup("w")
	row := make([]float32, w.Columns())
	if err := f.ReadRows(row, w, 1); err != nil {
		panic(err)
	}
	fmt.Println(name, w.Type, w.Shape, row)
	_, err = f.Uint("name")
	fmt.Println(err)
	// Output:
	// two F32 [2 3] [4 5 6]
	// key name is of kind string, want a whole number from 0
}
