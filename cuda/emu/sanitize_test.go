package emu

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSanitized compiles kernels, device and emulation under sanitizers of the C++ compiler, with a program
// that checks all kernels against their references, one that makes the device's steps and the one that
// measures them on a card, and runs all.
func TestSanitized(t *testing.T) {
	flags := strings.Fields("-std=c++17 -O1 -g1 -Wall -Wextra -Wno-unknown-pragmas -DTOKENROUTER_EMULATED" +
		" -Iinclude -fno-sanitize-recover=all")
	sanitizer := "-fsanitize=address,undefined"
	if output, err := build(t, []string{sanitizer}, "int main() {}\n"); err != nil {
		t.Logf("%s is unavailable on this machine: %v: %s", sanitizer, err, output)
		sanitizer = "-g1"
	}
	flags = append(flags, sanitizer)
	dir := t.TempDir()
	compile := func(sources []string) (objects []string) {
		for _, source := range sources {
			object := filepath.Join(dir, strings.ReplaceAll(source, "/", "-")+".o")
			args := append(flags[:len(flags):len(flags)], "-c", "-x", "c++", source, "-o", object)
			if output, err := exec.Command(compiler(), args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", source, err, output)
			}
			objects = append(objects, object)
		}
		return objects
	}
	watch(t, sources(t, "../kernels/*", "../device/*", "../check/*.h", "../../exec/native/*.h"))
	shared := compile(sources(t, "*.cpp"))
	for _, program := range []struct {
		name string
		of   []string
		args [][]string
	}{
		{"kernels", sources(t, "../check/*.cpp"), [][]string{{"device"}, {"own", "1", "20"}, {"library", "1"}}},
		{"steps", sources(t, "check/steps.cpp"), [][]string{nil}},
		{"bench", sources(t, "../check/bench/bench.cpp"), [][]string{
			{"copy"}, {"steps", "tiny", "graphs", "1e9"}, {"steps", "tiny", "eager", "1e9"},
			{"steps", "tiny", "own", "1e9"}, {"pair", "tiny", "tiny", "whole"}, {"pair", "tiny", "tiny", "parts"},
		}},
	} {
		path := filepath.Join(dir, program.name)
		args := append([]string{sanitizer, "-o", path}, compile(program.of)...)
		if output, err := exec.Command(compiler(), append(args, shared...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", program.name, err, output)
		}
		for _, args := range program.args {
			output, err := exec.Command(path, args...).CombinedOutput()
			if err != nil || !slices.Contains(strings.Split(string(output), "\n"), "ok") {
				t.Errorf("%s %v: %v: %s", program.name, args, err, output)
			}
		}
	}
}

// sources are all files of some patterns.
func sources(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, error %v", pattern, len(files), err)
		}
		all = append(all, files...)
	}
	watch(t, all)
	return all
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

// watch looks at files, so that Go runs the test anew when one of them changes.
func watch(t *testing.T, files []string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
}
