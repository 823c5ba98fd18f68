package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asProgram, set in the environment, makes the test binary behave as tokenrouter itself, so that tests see
// a real process: its exit code, its streams and its signals.
const asProgram = "TOKENROUTER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	c = exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	c.Stdout, c.Stderr = stdout, stderr
	return c, stdout, stderr
}

// code is the exit code of a process that has ended.
func code(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestExitCodes(t *testing.T) {
	r2r := []string{"predict", "-n", "4", "--p", "0.35", "--latency", "6.0ms,27.9ms", "--thresholds"}
	cases := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string // what they hold; "" for nothing at all
	}{
		// 207.954041 tok/s: TokenRouter, arXiv 2610.12242, appendix D.
		{"done", append(r2r, "1,3", "--json"), 0,
			`"best":{"thresholds":[1,3],"throughput_tok_s":207.954041`, ""},
		{"infeasible", append(r2r, "2,4"), 2, "", "1 + 3 = 4 is not below 4"},
		{"misuse", []string{"nonsense"}, 2, "", `no command "nonsense"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, stdout, stderr := program(t, c.args...)
			if got := code(t, p.Run()); got != c.code {
				t.Errorf("exit %d, want %d", got, c.code)
			}
			for _, s := range []struct{ name, got, want string }{
				{"stdout", stdout.String(), c.stdout}, {"stderr", stderr.String(), c.stderr},
			} {
				if !strings.Contains(s.got, s.want) || (s.want == "") != (s.got == "") {
					t.Errorf("%s is %q, want %q", s.name, s.got, s.want)
				}
			}
		})
	}
}

// TestInterrupt: Ctrl-C ends a run in order, keeps the finished points and says how to go on.
func TestInterrupt(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	p, stdout, stderr := program(t, "run", "experiments/threshold.toml", "--workers", "1", "--out", out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, filepath.Join(out, "parts", "*.json"))
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := code(t, p.Wait()); got != 1 {
		t.Errorf("exit %d, want 1", got)
	}
	if stdout.Len() != 0 || !strings.Contains(stderr.String(), "jobs are finished and kept in "+out) ||
		!strings.Contains(stderr.String(), "tokenrouter run experiments/threshold.toml --resume --out "+out) {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
	kept, err := filepath.Glob(filepath.Join(out, "parts", "*.json"))
	if err != nil || len(kept) == 0 {
		t.Errorf("no finished job is kept: %v", err)
	}
}

// waitForFile waits until a file of that pattern is there.
func waitForFile(t *testing.T, pattern string) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
				return
			}
		case <-end:
			t.Fatalf("no file %s after a minute", pattern)
		}
	}
}
