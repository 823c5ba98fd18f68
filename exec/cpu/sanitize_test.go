package cpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSanitizers compiles the C++ code with the programs of testdata under sanitizers of the C++ compiler
// and runs the results.
func TestSanitizers(t *testing.T) {
	kernels, err := filepath.Glob("*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	watchTestdata(t)
	for _, c := range []struct {
		kind, program string
		sources       []string
	}{
		{"address,undefined", "check_kernels.cpp", kernels},
		{"address,undefined", "check_workers.cpp", []string{"workers.cpp"}},
		{"thread", "check_workers.cpp", []string{"workers.cpp"}},
	} {
		t.Run(c.kind+" "+c.program, func(t *testing.T) {
			t.Parallel()
			if why := cannot(t, c.kind); why != "" {
				t.Logf("-fsanitize=%s is unavailable on this machine: %s", c.kind, why)
				return
			}
			program := filepath.Join("testdata", c.program)
			output, err := build(t, c.kind, append([]string{program}, c.sources...))
			if err != nil || output != "ok\n" {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// watchTestdata looks at every file of testdata, so that Go runs the test anew when one of them changes.
func watchTestdata(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
}

// cannot says why an empty program can not be built or run under that sanitizer, "" if it can.
func cannot(t *testing.T, kind string) string {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "empty.cpp")
	if err := os.WriteFile(empty, []byte("int main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := build(t, kind, []string{empty}); err != nil {
		return err.Error() + ": " + output
	}
	return ""
}

// build makes a program of sources under a sanitizer, runs it and returns all that compiler and program
// wrote.
func build(t *testing.T, kind string, sources []string) (string, error) {
	t.Helper()
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	program := filepath.Join(t.TempDir(), "check")
	args := append(strings.Fields("-std=c++17 -O1 -g1 -pthread -Wall -Wextra -Wno-uninitialized"+
		" -Wno-maybe-uninitialized -Wno-psabi -fno-sanitize-recover=all -fsanitize="+kind), "-o", program)
	if output, err := exec.Command(compiler, append(args, sources...)...).CombinedOutput(); err != nil {
		return string(output), err
	}
	output, err := exec.Command(program).CombinedOutput()
	return string(output), err
}
