package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// TestOneRunAFolder: a run that goes on keeps all others out of its folder, but shards go together.
func TestOneRunAFolder(t *testing.T) {
	dir := t.TempDir()
	begin := func(shard, shards int) (func(), error) {
		o := Options{Out: dir, Shard: shard, Shards: shards}
		r, err := newRunner(parse(t, tiny), &o)
		if err != nil {
			t.Fatal(err)
		}
		return r.begin(&o)
	}
	refused := func(what string, shard, shards int) {
		t.Helper()
		_, err := begin(shard, shards)
		if err == nil || !strings.Contains(err.Error(), dir+": another run is going on in this folder (") {
			t.Errorf("%s: error %v, want a refusal that names the folder", what, err)
		}
	}
	release, err := begin(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	refused("a second run", 1, 1)
	refused("a shard beside a whole run", 1, 2)
	release()
	first, err := begin(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := begin(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	refused("a whole run beside shards", 1, 1)
	refused("the same shard", 2, 2)
	first()
	second()
	if release, err = begin(1, 1); err != nil {
		t.Fatal(err)
	}
	release()
}

// TestOneMeasurementAMachine: a run that measures waits for another, and says for whom; it need not.
func TestOneMeasurementAMachine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := onFake(t.TempDir())
	r, err := newRunner(realSpec(t, real), &o)
	if err != nil {
		t.Fatal(err)
	}
	o.Doing = func(text string) { t.Errorf("nobody is there, but: %s", text) }
	release, err := r.ownMachine(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	said := ""
	o.Doing = func(text string) { said = text; stop() }
	_, err = r.ownMachine(ctx, &o)
	if !errors.Is(err, context.Canceled) || !strings.Contains(said, "waiting for process ") ||
		!strings.Contains(said, r.dir) {
		t.Errorf("error %v after %q; want to wait for a process, and for whose folder", err, said)
	}
	again := make(chan error)
	o.Doing = func(string) { release() }
	go func() {
		last, err := r.ownMachine(t.Context(), &o)
		if err == nil {
			last()
		}
		again <- err
	}()
	if err := <-again; err != nil {
		t.Error(err)
	}
}

// TestLockOfAnotherUser: a lock is one even where who has it can not be written down.
func TestLockOfAnotherUser(t *testing.T) {
	path := t.TempDir() + "/lock"
	if err := os.WriteFile(path, []byte("process 1\n"), 0o444); err != nil {
		t.Fatal(err)
	}
	release, err := take(path, 2, "us") // LOCK_EX
	if err != nil {
		t.Fatal(err)
	}
	var by *taken
	if _, err := take(path, 2, "others"); !errors.As(err, &by) {
		t.Errorf("error %v, want that the lock is taken", err)
	}
	release()
}
