package lint

import (
	"go/ast"
	"strconv"
	"strings"
)

// module is the path that all packages of the project begin with.
const module = "tokenrouter"

// layer says what the packages of one folder may import.
type layer struct {
	folder string // the package in it and all below, unless a longer folder matches
	own    []string
	tests  []string // further folders for test files
	public []string // modules of others, by prefix; nil: the standard library only
}

// layers is the direction of imports: main -> experiments -> {sim, exec, plots, cuda} -> core. A package may
// always import its own folder's packages. The longest folder that matches counts.
var layers = []layer{
	{folder: "core", tests: []string{"core"}, public: []string{}},
	{folder: "core/", own: []string{"core"}, public: []string{"gonum.org/v1/gonum"}},
	{folder: "sim", own: []string{"core"}, public: []string{"gonum.org/v1/gonum"}},
	{folder: "exec", own: []string{"core"}, tests: []string{"sim"}},
	{folder: "exec/model/chat", own: []string{"exec/model"}, public: []string{"github.com/ardanlabs/jinja"}},
	{folder: "exec/model/query", own: []string{"exec/model"}, public: []string{"gonum.org/v1/gonum"}},
	{folder: "exec/replan", own: []string{"core"}, tests: []string{"exec"},
		public: []string{"golang.org/x/sys"}},
	{folder: "exec/serve", own: []string{"core", "exec"},
		public: []string{"github.com/prometheus/client_golang"}},
	{folder: "cuda", own: []string{"core", "exec"}},
	{folder: "plots", public: []string{"gonum.org/v1/plot", "golang.org/x/image"}},
	{folder: "experiments/cli", own: []string{"core", "sim", "exec", "plots", "cuda", "experiments"},
		public: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/schollz/progressbar/v3",
			"golang.org/x/term"}},
	{folder: "experiments", own: []string{"core", "sim", "exec", "plots", "cuda", "experiments"},
		public: []string{"github.com/BurntSushi/toml", "github.com/parquet-go/parquet-go", "gonum.org/v1/gonum"}},
	{folder: "lint"},
	{folder: "", own: []string{"experiments"}},
}

// testModules are the modules that any test may import.
var testModules = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "gonum.org/v1/gonum",
	"github.com/openai/openai-go", "github.com/prometheus/client_golang"}

// impure are the packages that the scheduler core must not touch, by the reason.
var impure = map[string]string{
	"time": "a clock", "math/rand": "randomness", "math/rand/v2": "randomness", "crypto/rand": "randomness",
	"os": "input and output", "io": "input and output", "net": "input and output",
	"net/http": "input and output",
	"log":      "logging", "log/slog": "logging", "sync": "concurrency", "sync/atomic": "concurrency",
	"context": "concurrency", "runtime": "the machine", "unsafe": "memory that is not its own",
}

// imports reports imports that point back, and modules that a folder has no leave to use.
func imports(f *file) []Finding {
	rule := layerOf(f.folder)
	var found []Finding
	for _, spec := range f.tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		line := f.line(spec.Pos())
		folder, own := strings.CutPrefix(path, module+"/")
		switch {
		case own && !mayImport(rule, f, folder):
			found = append(found, f.at(line, "%s imports %s, want only %s",
				f.place(), folder, rule.allowed(f.test)))
		case own || path == "C" || !strings.Contains(strings.Split(path, "/")[0], "."):
			if reason := impure[path]; reason != "" && f.folder == "core" && !f.test {
				found = append(found, f.at(line, "core imports %s (%s), want none: the core is passive",
					path, reason))
			}
		case !within(path, rule.public) && !(f.test && within(path, testModules)):
			found = append(found, f.at(line, "%s imports %s, want none of others but %q",
				f.place(), path, rule.public))
		}
	}
	return found
}

// goroutines reports go statements in the scheduler core, and looks at the clock where results must not
// depend on it.
func goroutines(f *file) []Finding {
	if f.test {
		return nil
	}
	timeless := within(f.folder, []string{"core", "sim", "plots"})
	var found []Finding
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if f.folder == "core" {
				found = append(found, f.at(f.line(n.Pos()), "go statement in core, want none: the core is passive"))
			}
		case *ast.SelectorExpr:
			name := n.Sel.Name
			x, ok := n.X.(*ast.Ident)
			if timeless && ok && x.Name == "time" && (name == "Now" || name == "Since" || name == "Sleep") {
				found = append(found, f.at(f.line(n.Pos()), "time.%s in %s, want no wall clock", name, f.place()))
			}
		}
		return true
	})
	return found
}

func layerOf(folder string) layer {
	best := layers[len(layers)-1]
	for _, l := range layers {
		matches := folder == l.folder || strings.HasPrefix(folder+"/", strings.TrimSuffix(l.folder, "/")+"/")
		if strings.HasSuffix(l.folder, "/") && folder+"/" == l.folder {
			matches = false
		}
		if l.folder != "" && matches && len(l.folder) > len(best.folder) {
			best = l
		}
	}
	return best
}

func mayImport(rule layer, f *file, folder string) bool {
	if rule.folder == "core" && !f.test {
		return false
	}
	home := strings.TrimSuffix(rule.folder, "/")
	if rule.folder != "core" && home != "" && within(folder, []string{home}) {
		return true
	}
	return within(folder, rule.own) || f.test && within(folder, rule.tests)
}

// within reports whether path is one of the roots or below one.
func within(path string, roots []string) bool {
	for _, root := range roots {
		if path == root || strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

func (l layer) allowed(test bool) string {
	folders := append([]string(nil), l.own...)
	if test {
		folders = append(folders, l.tests...)
	}
	if len(folders) == 0 {
		return "the standard library"
	}
	return strings.Join(folders, ", ")
}
