package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/experiments/spec"
)

// textBetween returns the text after from and before to.
func textBetween(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, from)
	part, _, closed := strings.Cut(rest, to)
	if !found || !closed {
		t.Fatalf("the README has no text between %q and %q", from, to)
	}
	return part
}

// TestReadmePredict: what the README shows of predict is what predict prints.
func TestReadmePredict(t *testing.T) {
	block := textBetween(t, readText(t, "../../README.md"), "    $ bin/tokenrouter ", "    ...\n")
	command, shown, _ := strings.Cut(block, "\n")
	var want strings.Builder
	for line := range strings.Lines(shown) {
		want.WriteString(strings.TrimPrefix(line, "    "))
	}
	if got := mustRun(t, strings.Fields(command)...); !strings.HasPrefix(got, want.String()) {
		t.Errorf("%s prints\n%s\nthe README says\n%s", command, got, want.String())
	}
}

// TestReadmeSpec: the README's own spec has five lines and is valid.
func TestReadmeSpec(t *testing.T) {
	text := textBetween(t, readText(t, "../../README.md"), "```toml\n", "```")
	if lines := strings.Count(text, "\n"); lines != 5 {
		t.Errorf("%d lines, the README says five", lines)
	}
	dir := t.TempDir()
	for _, name := range []string{"threshold.toml", "threshold-measured.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(readText(t, "../"+name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "mine.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := spec.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Points) != 9 || len(s.Figures) != 1 {
		t.Errorf("%d points and %d figures, want 9 and 1", len(s.Points), len(s.Figures))
	}
}

// TestReadmeSystem: the README's system is valid where its folders exist.
func TestReadmeSystem(t *testing.T) {
	_, after, _ := strings.Cut(readText(t, "../../README.md"), "## Real models")
	dir := t.TempDir()
	for _, name := range []string{"qwen3-0.6b", "qwen3-8b", "router"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "pair.toml")
	if err := os.WriteFile(path, []byte(textBetween(t, after, "```toml\n", "```")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := spec.LoadSystem(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Models) != 2 || !s.Models[1].Int8 || s.Policy.Kind != "delayed" {
		t.Errorf("%+v, want two models, the second int8, and the policy delayed", s)
	}
}

// TestReadmeCommands: the README lists every command, and the folders that it names exist.
func TestReadmeCommands(t *testing.T) {
	text := readText(t, "../../README.md")
	for _, c := range newRoot().Commands() {
		if name := c.Name(); name != "help" && !strings.Contains(text, "`"+name) {
			t.Errorf("the README does not name the command %s", name)
		}
	}
	for _, name := range []string{"core", "sim", "exec", "experiments", "experiments/spec/KEYS.md", "plots",
		"lint", "docs/threshold.png", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"} {
		if _, err := os.Stat(filepath.Join("../..", name)); err != nil {
			t.Errorf("the README names %s: %v", name, err)
		}
	}
}
