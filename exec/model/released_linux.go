package model

import "syscall"

// released gives back the memory behind part of a mapping, which begins at a page; the file has it still.
func released(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return syscall.Madvise(b, syscall.MADV_DONTNEED)
}
