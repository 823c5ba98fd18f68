package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernels compiles all kernels for the processor with the program that checks them against their
// references, under sanitizers of the C++ compiler, and runs it with two seeds.
func TestKernels(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"../check/*.cpp", "*.cu", "../emu/emu.cpp", "../emu/fiber.cpp",
		"../emu/runtime.cpp"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		sources = append(sources, files...)
	}
	watch(t, append(sources, "../check/check.h"))
	const flags = "-std=c++17 -O1 -g1 -Wall -Wextra -Wno-unknown-pragmas -DTOKENROUTER_EMULATED" +
		" -I../emu/include -fno-sanitize-recover=all"
	program := filepath.Join(t.TempDir(), "check")
	sanitizer := "-fsanitize=address,undefined"
	if output, err := build(t, []string{sanitizer}, "int main() {}\n"); err != nil {
		t.Logf("%s is unavailable on this machine: %v: %s", sanitizer, err, output)
		sanitizer = "-g1"
	}
	args := append(strings.Fields(flags), sanitizer, "-o", program, "-x", "c++")
	if output, err := exec.Command(compiler(), append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, seed := range []string{"1", "20"} {
		if output, err := exec.Command(program, seed).CombinedOutput(); err != nil || string(output) != "ok\n" {
			t.Errorf("seed %s: %v: %s", seed, err, output)
		}
	}
}

func compiler() string {
	if c := os.Getenv("CXX"); c != "" {
		return c
	}
	return "g++"
}

// build makes and runs a program of a text.
func build(t *testing.T, flags []string, text string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.cpp"), filepath.Join(dir, "main")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := exec.Command(compiler(), append(flags, source, "-o", program)...).CombinedOutput()
	if err != nil {
		return string(output), err
	}
	output, err = exec.Command(program).CombinedOutput()
	return string(output), err
}

// watch looks at files, so that Go runs the test anew when one of them changes. Those of this folder are
// embedded.
func watch(t *testing.T, files []string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
}
