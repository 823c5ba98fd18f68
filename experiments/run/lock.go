package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Locks are files, each with a line that says who has it. The system lets go of a lock when a process ends,
// however it ends.
const (
	runLock     = "run.lock"                     // among the parts of a results folder: of the run in it
	machineLock = "tokenrouter-measurement.lock" // in the folder for temporary files: of this machine
)

// lockPoll is how long is waited between two looks at a lock that another has.
const lockPoll = 100 * time.Millisecond

// lock waits until no other process gathers the results of the folder: two shards may finish at
// the same instant.
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

// taken is the error of a lock that another has.
type taken struct{ by string }

func (t *taken) Error() string { return t.by + " has it" }

// take takes the lock of a file, which it makes, in a way of flock(2), and says in it who has it. It fails
// with a *taken if another has it.
func take(path string, how int, who string) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	}
	if errors.Is(err, os.ErrPermission) { // another user's
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		by, _ := os.ReadFile(path)
		if by = []byte(strings.TrimSpace(string(by))); len(by) == 0 {
			by = []byte("another process")
		}
		return nil, errors.Join(&taken{string(by)}, f.Close())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// Who has it is for people: a lock without is as good.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(who+"\n"), 0)
	return func() { f.Close() }, nil
}

// own keeps other runs out of the results folder: all of them, or, of a shard, those that are no other shard.
func (r *runner) own(o *Options) (release func(), err error) {
	path := filepath.Join(r.parts(), runLock)
	who := fmt.Sprintf("process %d", os.Getpid())
	if o.Shards == 1 {
		release, err = take(path, syscall.LOCK_EX, who)
	} else if release, err = take(path, syscall.LOCK_SH, "shards"); err == nil {
		name := fmt.Sprintf("shard-%d-%d.lock", o.Shard, o.Shards)
		shard, failed := take(filepath.Join(r.parts(), name), syscall.LOCK_EX, who)
		all := release
		if release, err = func() { shard(); all() }, failed; err != nil {
			all()
		}
	}
	if by := (*taken)(nil); errors.As(err, &by) {
		return nil, fmt.Errorf("%s: another run is going on in this folder (%s): wait for it, or give another"+
			" folder", r.dir, by.by)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", r.dir, err)
	}
	return release, nil
}

// ownMachine waits until no other run measures on this machine: each would spoil the other.
func (r *runner) ownMachine(ctx context.Context, o *Options) (release func(), err error) {
	path := filepath.Join(os.TempDir(), machineLock)
	dir, err := filepath.Abs(r.dir)
	if err != nil {
		return nil, err
	}
	who := fmt.Sprintf("process %d, which measures for %s", os.Getpid(), dir)
	for told := false; ; told = true {
		release, err := take(path, syscall.LOCK_EX, who)
		by := (*taken)(nil)
		if err == nil || !errors.As(err, &by) {
			return release, err
		}
		if !told && o.Doing != nil {
			o.Doing(fmt.Sprintf("waiting for %s: two runs at a time would slow each other", by.by))
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
