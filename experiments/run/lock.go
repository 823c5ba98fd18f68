package run

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits until no other process gathers the results of the folder: two shards may finish at
// the same instant. The system lets go of the lock when a process ends, however it ends.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return nil, fmt.Errorf("locking the results: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}
