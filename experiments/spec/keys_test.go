package spec

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/sim/outcome/trace"
)

// specs are the repository's experiments and those of testdata; together they use every key. Systems are left
// out, and experiments on trained models, whose folders TestTrained makes up.
func specs(t *testing.T) []string {
	t.Helper()
	inside, err := filepath.Glob("testdata/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	outside, err := filepath.Glob("../*.toml")
	if err != nil || len(outside) < 3 {
		t.Fatalf("experiments: %v, %v; want at least 3", outside, err)
	}
	outside = slices.DeleteFunc(outside, func(path string) bool {
		root, problems := readTree(path, os.ReadFile, nil)
		if problems != nil {
			return false
		}
		keys := root.value.(table)
		return keys["workload"] == nil || keys["routing"] != nil
	})
	return append(append(inside, outside...), signalSpec(t))
}

// signalSpec writes a trace with scores and a spec that decides on them.
func signalSpec(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	w, err := trace.NewWriter(&b, trace.Header{Models: []string{"SLM", "LLM"},
		Signals: []trace.Signals{trace.Score, 0}})
	if err != nil {
		t.Fatal(err)
	}
	scores := make([]trace.Result, 2)
	for i := range scores {
		scores[i].Score, scores[i].Has = 0.25+0.5*float64(i), trace.Score
	}
	err = w.Write(&trace.Request{PromptTokens: 5, OutputTokens: 2, End: trace.EndOfSequence,
		Results: [][]trace.Result{scores, make([]trace.Result, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "scores.jsonl", b.String())
	return write(t, dir, "signals.toml", strings.NewReplacer(
		"p = 0.35", "outcome = \"trace\"\ntrace = \"scores.jsonl\"\nthreshold = 0.5",
		"requests = 10\nprompt = 10\noutput = 20\n", "").Replace(good))
}

// TestKeysAreAll: every key that the readers ask for is in Keys, and the specs use or ask for every one of
// Keys.
func TestKeysAreAll(t *testing.T) {
	seen := make(map[string]bool)
	for _, path := range specs(t) {
		root, problems := readTree(path, os.ReadFile, nil)
		if problems != nil {
			t.Fatal(problems)
		}
		l := newLoader(path, root, os.ReadFile)
		l.seen = seen
		l.build()
		if problems := l.problems.sorted(); len(problems) > 0 {
			t.Errorf("%s: %v", path, problems)
		}
	}
	compareKeys(t, Keys, seen)
}

// compareKeys checks that the keys that were asked for are those that are listed.
func compareKeys(t *testing.T, listed []Key, seen map[string]bool) {
	t.Helper()
	got := map[string]bool{"extends": true}
	for path := range seen {
		if !strings.HasPrefix(path, "policy.table.") {
			got[path] = true
		}
	}
	want := make(map[string]bool)
	for _, k := range listed {
		want[k.Path] = true
		parts := strings.Split(k.Path, ".")
		for i := range parts[1:] {
			want[strings.TrimSuffix(strings.Join(parts[:i+1], "."), "[]")] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("keys (-listed +asked for):\n%s", diff)
	}
}

// TestManual: KEYS.md is what Manual writes. Write it anew with: go test ./experiments/spec -update
func TestManual(t *testing.T) {
	if *update {
		if err := os.WriteFile("KEYS.md", Manual(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("KEYS.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(Manual()), string(got)); diff != "" {
		t.Errorf("KEYS.md (-want +got):\n%s", diff)
	}
}

// TestLinesOfAllKeys: every key and array element of the specs has a line of its own in the index.
func TestLinesOfAllKeys(t *testing.T) {
	for _, path := range specs(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		root, problems := parseDocument(path, string(text))
		if problems != nil {
			t.Fatal(problems)
		}
		index := indexLines(string(text))
		each(root, nil, func(p []string, _ *node) {
			if index[joinPath(p)] == 0 {
				t.Errorf("%s: no line for %v", path, p)
			}
		})
	}
}

// each calls f for every node below root.
func each(n *node, path []string, f func([]string, *node)) {
	switch v := n.value.(type) {
	case table:
		for key, inner := range v {
			p := append(slices.Clone(path), key)
			f(p, inner)
			each(inner, p, f)
		}
	case list:
		for i, inner := range v {
			p := append(slices.Clone(path), string(rune('0'+i)))
			if i > 9 {
				continue
			}
			f(p, inner)
			each(inner, p, f)
		}
	}
}

func TestLines(t *testing.T) {
	const text = "# x = 1\n" + // 1
		"a = \"\"\"one\n" + // 2
		"b = 2\"\"\" # c = 3\n" + // 3
		"\"d.e\".f = 'g = 1'\n" + // 4
		"h = [\n" + // 5
		"  1, # [2]\n" + // 6
		"  { i = ']', j = [\n" + // 7
		"     3 ] },\n" + // 8
		"]\n" + // 9
		"[k . l]\n" + // 10
		"m = 4\r\n" + // 11
		"[[n]]\n" + // 12
		"o = 1\n" + // 13
		"[n.p]\n" + // 14
		"q = 2\n" + // 15
		"[[n]]\n" + // 16
		"o = 3\n" // 17
	if _, problems := parseDocument("t.toml", text); problems != nil {
		t.Fatal(problems)
	}
	index := indexLines(text)
	for path, want := range map[string]int{
		"a": 2, "d.e|f": 4, "h": 5, "h|0": 6, "h|1": 7, "h|1|i": 7, "h|1|j": 7, "h|1|j|0": 8, "k|l": 10,
		"k|l|m": 11,
		"n":     12, "n|0": 12, "n|0|o": 13, "n|0|p": 14, "n|0|p|q": 15, "n|1": 16, "n|1|o": 17,
		"b": 0, "c": 0, "x": 0,
	} {
		if got := index[strings.ReplaceAll(path, "|", "\x00")]; got != want {
			t.Errorf("line of %s: %d, want %d", path, got, want)
		}
	}
}

// TestResolvedReadsBack: the resolved spec is a spec that resolves to itself.
func TestResolvedReadsBack(t *testing.T) {
	for _, path := range specs(t) {
		s, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(filepath.Join(filepath.Dir(path), "again.toml"), string(s.Resolved))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if string(again.Resolved) != string(s.Resolved) {
			t.Errorf("%s resolves to\n%s\nand that to\n%s", path, s.Resolved, again.Resolved)
		}
	}
}

// FuzzLoad: no text panics, and every problem has a file and says something.
func FuzzLoad(f *testing.F) {
	f.Add(good)
	paths, err := filepath.Glob("testdata/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := load("t.toml", func(path string) ([]byte, error) {
			if path == "t.toml" {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		}, calibrated{})
		if err == nil {
			if len(s.Points) == 0 || s.Run() == "" {
				t.Errorf("%d points, run %q", len(s.Points), s.Run())
			}
			return
		}
		problems, ok := err.(Problems) //nolint:errorlint // Load returns nothing else
		if !ok || len(problems) == 0 {
			t.Fatalf("error %T, want Problems", err)
		}
		for _, p := range problems {
			if p.File == "" || p.Text == "" {
				t.Errorf("problem without file or text: %+v", p)
			}
		}
	})
}
