// Package notebooks_test checks what is stored of the notebooks; `make notebooks` executes them.
package notebooks_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A notebook is what a test looks at of nbformat 4.
type notebook struct {
	Cells []struct {
		ID             string          `json:"id"`
		Kind           string          `json:"cell_type"`
		Source         []string        `json:"source"`
		Outputs        []any           `json:"outputs"`
		ExecutionCount any             `json:"execution_count"`
		Metadata       json.RawMessage `json:"metadata"`
	} `json:"cells"`
	Metadata map[string]any `json:"metadata"`
	Format   int            `json:"nbformat"`
}

func notebooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.ipynb")
	if err != nil || len(files) == 0 {
		t.Fatalf("no notebooks: %v", err)
	}
	texts := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}

// TestStripped: no outputs, counts or cell metadata are stored, so that a change shows as a change of text.
func TestStripped(t *testing.T) {
	for file, text := range notebooks(t) {
		var n notebook
		if err := json.Unmarshal([]byte(text), &n); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if n.Format != 4 || len(n.Metadata) != 2 || len(n.Cells) == 0 {
			t.Errorf("%s: nbformat %d, metadata %v, %d cells; want 4, kernelspec and language_info, some",
				file, n.Format, n.Metadata, len(n.Cells))
			continue
		}
		if first := n.Cells[0]; first.Kind != "markdown" || !strings.HasPrefix(first.Source[0], "# ") {
			t.Errorf("%s: begins with %q, want a heading", file, first.Source[0])
		}
		seen := make(map[string]bool)
		for _, c := range n.Cells {
			if len(c.Outputs) > 0 || c.ExecutionCount != nil || string(c.Metadata) != "{}" {
				t.Errorf("%s, cell %s: %d outputs, count %v, metadata %s, want none", file, c.ID,
					len(c.Outputs), c.ExecutionCount, c.Metadata)
			}
			if c.ID == "" || seen[c.ID] {
				t.Errorf("%s: cell id %q, want one that no other cell has", file, c.ID)
			}
			seen[c.ID] = true
		}
	}
}

// TestNoMachine: nothing names a folder of the machine that a notebook was written on, or a server.
func TestNoMachine(t *testing.T) {
	place := regexp.MustCompile(`(?i)(/(work|root|home|users|tmp|mnt|usr)/|[a-z]:\\\\users|https?://)[^\s"]*`)
	for file, text := range notebooks(t) {
		if found := place.FindString(text); found != "" {
			t.Errorf("%s names %q", file, found)
		}
	}
}

// TestLinked: the README links to each notebook.
func TestLinked(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for file := range notebooks(t) {
		if !strings.Contains(string(readme), "(notebooks/"+file+")") {
			t.Errorf("README.md has no link to notebooks/%s", file)
		}
	}
}

// TestPinned: the environment is the same tomorrow.
func TestPinned(t *testing.T) {
	text, err := os.ReadFile("requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") && !regexp.MustCompile(`^[A-Za-z0-9_.-]+==[0-9.]+$`).MatchString(line) {
			t.Errorf("requirements.txt: %q, want name==version", line)
		}
	}
}
