//go:build unix

package model

import (
	"os"
	"syscall"
)

// mapped maps size bytes of a file for reading. No byte is read before it is looked at.
func mapped(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapped(b []byte) error { return syscall.Munmap(b) }
