package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Finding is one place that breaks a rule.
type Finding struct {
	File    string // slash-separated, from the root
	Line    int    // from 1
	Message string
}

// String is FILE:LINE: MESSAGE, a form that editors can follow.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message) }

// file is one parsed Go file.
type file struct {
	name   string // from the root
	folder string // "" for the root
	test   bool
	lines  []string
	tree   *ast.File
	set    *token.FileSet
}

func (f *file) at(line int, format string, args ...any) Finding {
	return Finding{File: f.name, Line: line, Message: fmt.Sprintf(format, args...)}
}

func (f *file) line(p token.Pos) int { return f.set.Position(p).Line }

func (f *file) place() string {
	if f.folder == "" {
		return "the root"
	}
	return f.folder
}

// Check applies every rule to all Go files below root, testdata and hidden folders left out, and returns the
// findings by file and line. It fails for a file that can not be read or is not Go.
func Check(root fs.FS) ([]Finding, error) {
	files, err := read(root)
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, f := range files {
		for _, rule := range []func(*file) []Finding{sizes, skips, documentation, imports, goroutines, names} {
			found = append(found, rule(f)...)
		}
	}
	found = append(found, packageDocs(files)...)
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].File != found[j].File {
			return found[i].File < found[j].File
		}
		return found[i].Line < found[j].Line
	})
	return found, nil
}

func read(root fs.FS) ([]*file, error) {
	var files []*file
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := path.Dir(name)
		if folder == "." {
			folder = ""
		}
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		files = append(files, &file{name: name, folder: folder, test: strings.HasSuffix(name, "_test.go"),
			lines: lines, tree: tree, set: set})
		return nil
	})
	return files, err
}

// names reports folders whose name says nothing.
func names(f *file) []Finding {
	switch path.Base(f.folder) {
	case "util", "utils", "common", "helper", "helpers", "misc", "shared":
		return []Finding{f.at(1, "folder %s says nothing about what is in it", f.folder)}
	}
	return nil
}

// packageDocs reports packages without a comment that says what they are for.
func packageDocs(files []*file) []Finding {
	first := map[string]*file{}
	documented := map[string]bool{}
	for _, f := range files {
		if f.test {
			continue
		}
		if first[f.folder] == nil {
			first[f.folder] = f
		}
		documented[f.folder] = documented[f.folder] || f.tree.Doc != nil
	}
	var found []Finding
	for folder, f := range first {
		if !documented[folder] {
			found = append(found, f.at(1, "package %s has no package comment", f.tree.Name.Name))
		}
	}
	return found
}
