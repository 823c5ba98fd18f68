package lint

import (
	"fmt"
	"go/ast"
	"unicode/utf8"
)

// Limits of a file, a function (from its first line to its closing brace) and a line. A tab is one column.
const (
	FileLinesMax     = 500
	FunctionLinesMax = 70
	LineColumnsMax   = 110
)

// sizes reports files, functions and lines that are too long.
func sizes(f *file) []Finding {
	var found []Finding
	if len(f.lines) > FileLinesMax {
		found = append(found, f.at(FileLinesMax+1, "file has %d lines, want at most %d",
			len(f.lines), FileLinesMax))
	}
	for i, line := range f.lines {
		if columns := utf8.RuneCountInString(line); columns > LineColumnsMax {
			found = append(found, f.at(i+1, "line has %d columns, want at most %d", columns, LineColumnsMax))
		}
	}
	for _, declaration := range f.tree.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := f.line(function.Pos()), f.line(function.End())
		if lines := last - first + 1; lines > FunctionLinesMax {
			found = append(found, f.at(first, "function %s has %d lines, want at most %d",
				function.Name.Name, lines, FunctionLinesMax))
		}
	}
	return found
}

// skips reports tests that can be skipped: a test that does not run proves nothing.
func skips(f *file) []Finding {
	if !f.test {
		return nil
	}
	var found []Finding
	ast.Inspect(f.tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch selector.Sel.Name {
		case "Skip", "Skipf", "SkipNow":
			if receiver, ok := selector.X.(*ast.Ident); ok {
				found = append(found, f.at(f.line(call.Pos()), "%s.%s: want a test that always runs",
					receiver.Name, selector.Sel.Name))
			}
		}
		return true
	})
	return found
}

// documentation reports exported names of non-test files that have no comment.
func documentation(f *file) []Finding {
	if f.test || f.tree.Name.Name == "main" {
		return nil
	}
	var found []Finding
	missing := func(n ast.Node, kind, name string) {
		found = append(found, f.at(f.line(n.Pos()), "exported %s %s has no comment", kind, name))
	}
	for _, declaration := range f.tree.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && ast.IsExported(d.Name.Name) && exportedReceiver(d) && !wellKnown[d.Name.Name] {
				missing(d, "function", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				undocumented(d, spec, missing)
			}
		}
	}
	return found
}

// undocumented calls missing for an exported type, constant or variable that neither has a comment nor
// stands in a group that has one.
func undocumented(d *ast.GenDecl, spec ast.Spec, missing func(n ast.Node, kind, name string)) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && d.Doc == nil && s.Comment == nil {
			missing(s, "type", s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && s.Doc == nil && d.Doc == nil && s.Comment == nil {
				missing(s, d.Tok.String(), name.Name)
				return
			}
		}
	}
}

// wellKnown are methods whose interface of the standard library says all there is to say.
var wellKnown = map[string]bool{
	"String": true, "Error": true, "Unwrap": true, "Len": true, "Less": true, "Swap": true,
}

// exportedReceiver reports whether d is a function, or a method of an exported type.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	kind := d.Recv.List[0].Type
	for {
		switch k := kind.(type) {
		case *ast.StarExpr:
			kind = k.X
		case *ast.IndexExpr:
			kind = k.X
		case *ast.IndexListExpr:
			kind = k.X
		case *ast.Ident:
			return k.IsExported()
		default:
			panic(fmt.Sprintf("lint: receiver of %s is a %T", d.Name.Name, kind))
		}
	}
}
