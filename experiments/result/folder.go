package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Names in a results folder.
const (
	SpecFile        = "spec.toml"
	EnvironmentFile = "environment.json"
	SummaryJSON     = "summary.json"
	SummaryCSV      = "summary.csv"
	MetricsFile     = "metrics.md"
	RequestsFile    = "requests.parquet"
	AnswersFile     = "answers.jsonl"
	TriesFile       = "tries.csv" // of a run on hardware: every measurement of every seed
)

// WriteFile writes a file as a whole or not at all: under another name first.
func WriteFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("result: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Write puts all of a summary into its folder: JSON, CSV and dictionary.
func (s *Summary) Write(dir string) error {
	text, err := s.JSON()
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	table, err := s.CSV()
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return errors.Join(WriteFile(filepath.Join(dir, SummaryCSV), table),
		WriteFile(filepath.Join(dir, MetricsFile), s.Markdown()),
		WriteFile(filepath.Join(dir, SummaryJSON), text))
}

// Read reads the summary of a results folder. The error names the file and what is wrong with it.
func Read(dir string) (*Summary, error) {
	path := filepath.Join(dir, SummaryJSON)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, other := os.Stat(filepath.Join(dir, "parts")); other == nil {
			return nil, fmt.Errorf("results %s: the run is not finished: continue it with --resume", dir)
		}
		return nil, fmt.Errorf("results %s: no %s, want a folder that a run has written", dir, SummaryJSON)
	}
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	s, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("results %s: damaged: %w", path, place(text, err))
	}
	return s, nil
}

// place adds the line to an error of the decoder.
func place(text []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}

// Environment is the machine and program that made results.
type Environment struct {
	Commit    string            `json:"commit"` // "unknown" if the program was built without it
	Modified  bool              `json:"modified"`
	Go        string            `json:"go"`
	System    string            `json:"system"`
	Processor string            `json:"processor"`
	Cores     int               `json:"cores"`
	Modules   map[string]string `json:"modules"`
	// Models are the SHA-256 of the files of models and routers that were run, by path; nil: none were.
	Models map[string]string `json:"models,omitempty"`
}

// ThisEnvironment describes the running program.
func ThisEnvironment() Environment {
	e := Environment{
		Commit: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Processor: processor(), Cores: runtime.NumCPU(), Modules: make(map[string]string),
	}
	if commit, modified := Source(); commit != "" {
		e.Commit, e.Modified = commit, modified
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			e.Modules[m.Path] = m.Version
		}
	}
	return e
}

// Source is the commit that the running program was built from, "" if the build does not know it, and whether
// files were modified since.
func Source() (commit string, modified bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return commit, modified
}

// processor is the name that Linux gives it; elsewhere the architecture.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), ":"))
		}
	}
	return runtime.GOARCH
}

// Write writes environment.json.
func (e *Environment) Write(dir string) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return WriteFile(filepath.Join(dir, EnvironmentFile), append(text, '\n'))
}
