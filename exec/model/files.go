package model

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrNotRegular is the error for a folder, a pipe and the like where a file is wanted.
var ErrNotRegular = errors.New("no regular file")

// regular describes a file that is neither a folder nor, as opening one could block, a pipe.
func regular(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %w", path, ErrNotRegular)
	}
	return info, err
}

// ReadFile reads a regular file of at most bytesMax bytes. Errors name it, and both sizes if it is longer.
func ReadFile(path string, bytesMax int64) ([]byte, error) {
	info, err := regular(path)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > bytesMax:
		return nil, fmt.Errorf("%s has %d bytes, want at most %d", path, info.Size(), bytesMax)
	}
	return os.ReadFile(path)
}

// OpenRegular opens a regular file and says how many bytes it has; for others the error is ErrNotRegular.
// want is what it should be, for the error.
func OpenRegular(path, want string) (*os.File, int64, error) {
	_, err := regular(path)
	if errors.Is(err, ErrNotRegular) {
		return nil, 0, fmt.Errorf("%w, want %s", err, want)
	}
	if err != nil {
		return nil, 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	// Once more: the size must be that of the file that is open.
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// SHA256 is the hash of a regular file, 64 hexadecimal digits.
func SHA256(path string) (hash string, err error) {
	file, _, err := OpenRegular(path, "a file to hash")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ErrNotEmpty is the error for a folder that would have to be written over.
var ErrNotEmpty = errors.New("the folder is not empty")

// NewFolder makes the folder dir of what write puts into partial, a folder beside it. dir must not exist or
// be empty, or the error is ErrNotEmpty; it is there in full afterwards, or as before if write fails.
func NewFolder(dir string, write func(partial string) error) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = os.MkdirAll(filepath.Dir(filepath.Clean(dir)), 0o755)
	case err == nil && len(entries) > 0:
		err = notEmpty(dir, entries)
	}
	if err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".convert-")
	if err != nil {
		return err
	}
	if err := write(partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	// A rename does not take the place of a folder, not even of an empty one.
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, os.RemoveAll(partial))
	}
	if err := os.Rename(partial, dir); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

func notEmpty(dir string, entries []os.DirEntry) error {
	return fmt.Errorf("%w: %s has %s in it", ErrNotEmpty, dir, entries[0].Name())
}
