package model

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOpenRegular opens what is a file and refuses the rest without waiting: opening a pipe that nobody
// writes to would block.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, size, err := OpenRegular(path, "a safetensors file")
	if err != nil || size != 5 {
		t.Fatalf("OpenRegular: %d bytes, error %v, want 5 and none", size, err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"folder":  {dir, dir + " is no regular file, want a safetensors file"},
		"pipe":    {pipe, pipe + " is no regular file, want a safetensors file"},
		"nothing": {filepath.Join(dir, "none"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := OpenRegular(c.path, "a safetensors file")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
