package lint

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestProject(t *testing.T) {
	found, err := Check(os.DirFS(".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// TestRules breaks each rule once and looks for exactly that finding.
func TestRules(t *testing.T) {
	const doc = "// Package p is p.\npackage p\n\n"
	long := strings.Repeat("\tx++\n", FunctionLinesMax-1)
	cases := []struct {
		name, file, text string
		want             string // "" for none
	}{
		{"clean", "core/a.go", doc + "import \"fmt\"\n\nvar _ = fmt.Sprint\n", ""},
		{"line of 110", "core/a.go", doc + "//" + strings.Repeat("é", 108) + "\n", ""},
		{"line of 111", "core/a.go", doc + "//" + strings.Repeat("é", 109) + "\n",
			"core/a.go:4: line has 111 columns, want at most 110"},
		{"file of 500", "core/a.go", doc + strings.Repeat("//\n", 497), ""},
		{"file of 501", "core/a.go", doc + strings.Repeat("//\n", 498),
			"core/a.go:501: file has 501 lines, want at most 500"},
		{"function of 70", "core/a.go", doc + "func f() {\n" + long[:len(long)-5] + "}\n", ""},
		{"function of 71", "core/a.go", doc + "func f() {\n" + long + "}\n",
			"core/a.go:4: function f has 71 lines, want at most 70"},
		{"skip", "core/a_test.go", "package p\n\nfunc f(t T) {\n\tt.Skip()\n}\n",
			"core/a_test.go:4: t.Skip: want a test that always runs"},
		{"no package comment", "core/a.go", "package p\n", "core/a.go:1: package p has no package comment"},
		{"exported type", "core/a.go", doc + "type T int\n", "core/a.go:4: exported type T has no comment"},
		{"exported constant", "core/a.go", doc + "const C = 1\n", "core/a.go:4: exported const C has no comment"},
		{"group with a comment", "core/a.go", doc + "// All.\nconst (\n\tC = 1\n\tD = 2\n)\n", ""},
		{"exported method", "core/a.go", doc + "// T is t.\ntype T int\n\nfunc (t *T) F() {}\n",
			"core/a.go:7: exported function F has no comment"},
		{"method of a hidden type", "core/a.go", doc + "type t int\n\nfunc (t) F() {}\n", ""},
		{"core imports a package", "core/a.go", doc + "import _ \"tokenrouter/core/chain\"\n",
			"core/a.go:4: core imports core/chain, want only the standard library"},
		{"core has a clock", "core/a.go", doc + "import _ \"time\"\n",
			"core/a.go:4: core imports time (a clock), want none: the core is passive"},
		{"core below may have one", "core/meter/a.go", doc + "import _ \"time\"\n", ""},
		{"core uses a module", "core/a.go", doc + "import _ \"gonum.org/v1/gonum/mat\"\n",
			`core/a.go:4: core imports gonum.org/v1/gonum/mat, want none of others but []`},
		{"chain uses gonum", "core/chain/a.go", doc + "import _ \"gonum.org/v1/gonum/mat\"\n", ""},
		{"core points back", "core/meter/a.go", doc + "import _ \"tokenrouter/sim\"\n",
			"core/meter/a.go:4: core/meter imports sim, want only core"},
		{"sim points sideways", "sim/a.go", doc + "import _ \"tokenrouter/exec\"\n",
			"sim/a.go:4: sim imports exec, want only core"},
		{"exec imports sim", "exec/a.go", doc + "import _ \"tokenrouter/sim\"\n",
			"exec/a.go:4: exec imports sim, want only core"},
		{"exec's test imports sim", "exec/a_test.go", "package p\n\nimport _ \"tokenrouter/sim\"\n", ""},
		{"exec imports cuda", "exec/a.go", doc + "import _ \"tokenrouter/cuda\"\n",
			"exec/a.go:4: exec imports cuda, want only core"},
		{"plots knows no world", "plots/a.go", doc + "import _ \"tokenrouter/core\"\n",
			"plots/a.go:4: plots imports core, want only the standard library"},
		{"sim reads the clock", "sim/a.go", doc + "import \"time\"\n\nvar _ = time.Now\n",
			"sim/a.go:6: time.Now in sim, want no wall clock"},
		{"goroutine in core", "core/a.go", doc + "func f() { go f() }\n",
			"core/a.go:4: go statement in core, want none: the core is passive"},
		{"empty word", "sim/util/a.go", doc, "sim/util/a.go:1: folder sim/util says nothing about what is in it"},
		{"testdata is not ours", "core/testdata/a.go", "package p\n", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found, err := Check(fstest.MapFS{c.file: {Data: []byte(c.text)}})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, f := range found {
				lines = append(lines, f.String())
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestNotGo(t *testing.T) {
	_, err := Check(fstest.MapFS{"core/a.go": {Data: []byte("package")}})
	if err == nil || !strings.Contains(err.Error(), "core/a.go:1:8") {
		t.Errorf("error %v, want one that names core/a.go:1:8", err)
	}
}
