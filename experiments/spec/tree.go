package spec

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// node is a value of a document and where it stands. Value is a string, int64, float64, bool, time.Time,
// list or table.
type node struct {
	value any
	file  string
	line  int
}

type list []*node

type table map[string]*node

// keys returns the keys in order of their lines, then by name.
func (t table) keys() []string {
	keys := slices.Collect(maps.Keys(t))
	slices.SortFunc(keys, func(a, b string) int {
		if t[a].line != t[b].line {
			return t[a].line - t[b].line
		}
		return strings.Compare(a, b)
	})
	return keys
}

// text shows a value as it would stand in a document.
func (n *node) text() string {
	var b strings.Builder
	writeValue(&b, n.value)
	const bytesMax = 80
	if s := b.String(); len(s) > bytesMax {
		return s[:bytesMax] + "..."
	}
	return b.String()
}

// kind names the type of a value in the words of TOML.
func (n *node) kind() string {
	switch n.value.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case list:
		return "an array"
	case table:
		return "a table"
	default:
		return "a date"
	}
}

// parseDocument decodes a document into nodes. File is its name in problems.
func parseDocument(file, text string) (*node, Problems) {
	var raw map[string]any
	if _, err := toml.Decode(text, &raw); err != nil {
		problem := Problem{File: file, Text: err.Error()}
		var parse toml.ParseError
		if errors.As(err, &parse) {
			problem.Line, problem.Text = parse.Position.Line, "not TOML: "+parse.Message
			problem.Key = parse.LastKey
		}
		return nil, Problems{problem}
	}
	return grow(raw, file, nil, indexLines(text), 1), nil
}

// grow makes nodes of decoded values. A value whose line is unknown takes that of what holds it.
func grow(value any, file string, path []string, index lineIndex, line int) *node {
	if own := index[joinPath(path)]; own > 0 {
		line = own
	}
	n := &node{value: value, file: file, line: line}
	switch v := value.(type) {
	case map[string]any:
		t := make(table, len(v))
		for key, inner := range v {
			t[key] = grow(inner, file, append(slices.Clone(path), key), index, line)
		}
		n.value = t
	case []map[string]any:
		l := make(list, len(v))
		for i, inner := range v {
			l[i] = grow(inner, file, append(slices.Clone(path), strconv.Itoa(i)), index, line)
		}
		n.value = l
	case []any:
		l := make(list, len(v))
		for i, inner := range v {
			l[i] = grow(inner, file, append(slices.Clone(path), strconv.Itoa(i)), index, line)
		}
		n.value = l
	}
	return n
}

// readTree reads a document and what it extends: the keys of the file itself are laid over those of the other
// (merger).
func readTree(path string, read func(string) ([]byte, error), above []string) (*node, Problems) {
	raw, err := read(path)
	if err != nil {
		text := err.Error()
		if errors.Is(err, os.ErrNotExist) {
			text = "no such file"
		}
		return nil, Problems{{File: path, Text: text}}
	}
	root, problems := parseDocument(path, string(raw))
	if problems != nil {
		return nil, problems
	}
	own := root.value.(table)
	extends, ok := own["extends"]
	if !ok {
		return root, nil
	}
	delete(own, "extends")
	name, ok := extends.value.(string)
	if !ok || name == "" {
		return nil, Problems{extends.problem("extends", "want the name of a spec file, as a string")}
	}
	chain := append(slices.Clone(above), filepath.Clean(path))
	other := beside(path, name)
	if slices.Contains(chain, filepath.Clean(other)) {
		return nil, Problems{extends.problem("extends",
			"want no circle: "+strings.Join(append(chain, other), " -> "))}
	}
	base, problems := readTree(other, read, chain)
	if problems != nil {
		if len(problems) == 1 && problems[0].Line == 0 && problems[0].File == other {
			return nil, Problems{extends.problem("extends", "want a spec that can be read: "+problems[0].Text)}
		}
		return nil, problems
	}
	var m merger
	merged := m.merge(base, root, "")
	if len(m.problems) > 0 {
		return nil, m.problems.sorted()
	}
	return merged, nil
}

// beside is the path of a file that a spec names: relative to the spec's folder, or absolute.
func beside(specPath, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(filepath.Dir(specPath), name)
}

func (n *node) problem(key, text string) Problem {
	return Problem{File: n.file, Line: n.line, Key: key, Value: n.text(), Text: text}
}

// with returns a copy of the tree in which the path has another value; tables that are missing on the way
// are made. Everything off the path is shared.
func (n *node) with(path []string, value *node) *node {
	if len(path) == 0 {
		return value
	}
	out := *n
	switch v := n.value.(type) {
	case list:
		at, err := strconv.Atoi(path[0])
		if err != nil || at < 0 || at >= len(v) {
			return n
		}
		l := slices.Clone(v)
		l[at] = v[at].with(path[1:], value)
		out.value = l
	case table:
		t := maps.Clone(v)
		inner, ok := v[path[0]]
		if !ok {
			inner = &node{value: make(table), file: value.file, line: value.line}
		}
		t[path[0]] = inner.with(path[1:], value)
		out.value = t
	default:
		return n // a wrong type, which the reader reports
	}
	return &out
}

// writeDocument writes a tree as TOML: plain keys first, then a header a table and an element of an array of
// tables; keys are sorted and what lies deeper is written inline. The same tree gives the same bytes.
func writeDocument(root table) []byte {
	var b strings.Builder
	var tables []string
	for _, key := range slices.Sorted(maps.Keys(root)) {
		if holdsTables(root[key]) {
			tables = append(tables, key)
			continue
		}
		writeKey(&b, key, root[key])
	}
	for _, key := range tables {
		elements, header := list{root[key]}, "\n["+quoteKey(key)+"]\n"
		if l, ok := root[key].value.(list); ok {
			elements, header = l, "\n[["+quoteKey(key)+"]]\n"
		}
		for _, n := range elements {
			b.WriteString(header)
			t := n.value.(table)
			for _, inner := range slices.Sorted(maps.Keys(t)) {
				writeKey(&b, inner, t[inner])
			}
		}
	}
	return []byte(b.String())
}

// holdsTables reports whether a node is a table or an array of nothing but tables.
func holdsTables(n *node) bool {
	switch v := n.value.(type) {
	case table:
		return true
	case list:
		return len(v) > 0 && !slices.ContainsFunc(v, func(e *node) bool { _, ok := e.value.(table); return !ok })
	default:
		return false
	}
}

func writeKey(b *strings.Builder, key string, n *node) {
	b.WriteString(quoteKey(key) + " = ")
	writeValue(b, n.value)
	b.WriteByte('\n')
}

func quoteKey(key string) string {
	bare := key != "" && strings.Trim(key,
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if bare {
		return key
	}
	return quote(key)
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func writeValue(b *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		b.WriteString(quote(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(formatFloat(v))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case time.Time:
		b.WriteString(v.Format(time.RFC3339Nano))
	case list:
		b.WriteByte('[')
		for i, n := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeValue(b, n.value)
		}
		b.WriteByte(']')
	case table:
		b.WriteString("{ ")
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quoteKey(key) + " = ")
			writeValue(b, v[key].value)
		}
		b.WriteString(" }")
	default:
		fmt.Fprintf(b, "%v", v)
	}
}

// formatFloat writes a float so that it reads back as one.
func formatFloat(f float64) string {
	s := strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64))
	s = strings.TrimPrefix(s, "+")
	if strings.ContainsAny(s, ".en") {
		return s
	}
	return s + ".0"
}
