package cpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSanitizers compiles the kernels with testdata/check.cpp under the address, undefined-behaviour and
// thread sanitizers of the C++ compiler and runs the result.
func TestSanitizers(t *testing.T) {
	for _, kind := range []string{"address,undefined", "thread"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			if why := cannot(t, kind); why != "" {
				t.Logf("-fsanitize=%s is unavailable on this machine: %s", kind, why)
				return
			}
			output, err := build(t, kind, checkSources(t))
			if err != nil || output != "ok\n" {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// checkSources are the kernels and the program that checks them. Looking at all of testdata makes Go run the
// test anew when a file there changes.
func checkSources(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob("*.cpp")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range ours {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".cpp" {
			sources = append(sources, file)
		}
	}
	return sources
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
	args := append(strings.Fields("-std=c++17 -O1 -g -pthread -Wall -Wextra -Wno-uninitialized"+
		" -Wno-maybe-uninitialized -Wno-psabi -fno-sanitize-recover=all -fsanitize="+kind), "-o", program)
	if output, err := exec.Command(compiler, append(args, sources...)...).CombinedOutput(); err != nil {
		return string(output), err
	}
	output, err := exec.Command(program).CombinedOutput()
	return string(output), err
}
