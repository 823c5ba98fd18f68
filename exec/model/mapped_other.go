//go:build !unix

package model

import (
	"io"
	"os"
)

// mapped reads size bytes of a file: this system has no mmap.
func mapped(f *os.File, size int) ([]byte, error) {
	b := make([]byte, size)
	_, err := io.ReadFull(f, b)
	return b, err
}

func unmapped([]byte) error { return nil }
