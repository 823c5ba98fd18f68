package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec/model"
)

const goodSystem = `
[[models]]
dir = "small"
weights = "int8"
group = 64
processors = [0]

[[models]]
name = "big"
shape = "tiny,layers=2"
seed = 7
processors = [1]
rows_max = 4

[device]
memory = "8GiB"
kernels = "avx2"

[router]
algorithm = "citer"
dir = "router"
threshold = 0.95

[policy]
kind = "delayed"
thresholds = [1, 3]
max_wait = "50ms"

[scheduler]
concurrency = 4
queue = 2
admission = "optimistic"
context_max = 512
page_tokens = 32
token_budget = 128
`

// systemIn writes a system's file beside the folders that it names.
func systemIn(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"small", "large", "router"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return write(t, dir, "pair.toml", text)
}

func TestLoadSystem(t *testing.T) {
	path := systemIn(t, goodSystem)
	dir := filepath.Dir(path)
	got, err := LoadSystem(path)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := model.ParseShape("tiny,layers=2")
	if err != nil {
		t.Fatal(err)
	}
	want := &System{
		File: path,
		Models: []SystemModel{
			{Name: "small", Dir: filepath.Join(dir, "small"), Int8: true, Group: 64, Processors: []int{0}},
			{Name: "big", Shape: &shape, Seed: 7, RowsMax: 4, Processors: []int{1}},
		},
		Router: Router{Algorithm: "citer", Threshold: 0.95, HasThreshold: true,
			Dir: filepath.Join(dir, "router")},
		Backend: "cpu", MemoryBytes: 8 << 30, Kernels: "avx2",
		// B = (1, 3) holds at N = 4; below, sets are lowered until they are feasible.
		Policy:    Policy{Kind: "delayed", Table: [][]int{{1, 1}, {1, 2}, {1, 3}, {1, 3}}, MaxWaitNs: 50e6},
		Admission: core.Optimistic, Concurrency: 4, Queue: 2, ContextMax: 512, PageTokens: 32, Budget: 128,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLoadSystemDefaults(t *testing.T) {
	path := systemIn(t, "[[models]]\ndir = \"large\"\n")
	got, err := LoadSystem(path)
	if err != nil {
		t.Fatal(err)
	}
	want := NewSystem(SystemModel{Name: "large", Dir: filepath.Join(filepath.Dir(path), "large")})
	want.File, want.Router.Algorithm = path, "small"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSystemKeysAreAll: the readers ask for the keys that are listed.
func TestSystemKeysAreAll(t *testing.T) {
	seen := make(map[string]bool)
	for _, replaced := range [][]string{
		nil,
		{"processors = [0]", "threads = 1", "processors = [1]", "threads = 1",
			`kernels = "avx2"`, "shared = false", "thresholds = [1, 3]", "table.big = [1, 1, 1, 1]"},
		{"algorithm = \"citer\"\ndir = \"router\"\nthreshold = 0.95", "algorithm = \"me\"\nweights = [1, 3]"},
		{"weights = \"int8\"\ngroup = 64\nprocessors = [0]",
			"engine = \"vllm\"\nurl = \"http://127.0.0.1:8000\"\nmodel = \"m\"\ntimeout = \"30s\""},
	} {
		path := systemIn(t, strings.NewReplacer(replaced...).Replace(goodSystem))
		if _, problems := loadSystem(path, os.ReadFile, seen); len(problems) > 0 {
			t.Errorf("%q: %v", replaced, problems)
		}
	}
	compareKeys(t, SystemKeys, seen)
}

// TestSystemProblems changes lines of a good file; each must be one problem with its line, key and text.
func TestSystemProblems(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no such folder", `dir = "small"`, `dir = "smal"`,
			`pair.toml:3: models[0].dir = "smal", want a model folder: "`},
		{"both kinds", "seed = 7", `dir = "large"`,
			`:10: models[1].shape = "tiny,layers=2", want dir or shape, not both`},
		{"neither", `dir = "small"`, "", ":2: models[0].dir: missing, want dir, or shape for random weights"},
		{"no such shape", `"tiny,layers=2"`, `"tinny"`, `shape "tinny" is unknown, want tiny, qwen3-0.6b`},
		{"same name", `"big"`, `"small"`,
			":9: models[1].name = \"small\", want a name that no other model has"},
		{"weights", `"int8"`, `"int4"`,
			`:4: models[0].weights = "int4", want one of "bf16", "int8", the nearest is "int8"`},
		{"group", "group = 64", "group = 65", ":5: models[0].group = 65, want a multiple of 64"},
		{"group of bf16", "rows_max = 4", "group = 64",
			`models[1].group = 64, does not apply here: it is for weights "int8"`},
		{"no engine", "weights = \"int8\"\ngroup = 64\nprocessors = [0]", "engine = \"ollama\"\nurl = \"http://x\"",
			`models[0].engine = "ollama", want one of "llama.cpp", "vllm", "sglang"`},
		{"an engine's weights", "group = 64\nprocessors = [0]", "engine = \"sglang\"\nurl = \"http://x\"",
			`models[0].weights = "int8", does not apply here`},
		{"an engine of random weights", "seed = 7\nprocessors = [1]", "engine = \"vllm\"\nurl = \"http://x\"",
			`models[1].shape = "tiny,layers=2", want dir: a server runs the model`},
		{"own processors of one", "processors = [1]", "", "models = "},
		{"processor twice", "processors = [1]", "processors = [1, 1]", "processors = [1, 1], want each once"},
		{"negative seed", "seed = 7", "seed = -1", ":11: models[1].seed = -1, want an integer of at least 0"},
		{"no unit", `"8GiB"`, "8", ":16: device.memory = 8, want a size above 0 with its unit"},
		{"unknown key", `memory = "8GiB"`, `memmory = "8GiB"`,
			":16: device.memmory = \"8GiB\", unknown key, " +
				"the nearest known is device.memory"},
		{"key of a spec", "rows_max = 4", "latency = 3", ":13: models[1].latency = 3, unknown key"},
		{"algorithm", `"citer"`, `"ctier"`, `:20: router.algorithm = "ctier", want one of "r2r", "citer"`},
		{"needless network", `"citer"`, `"rstitch"`,
			`:21: router.dir = "router", want none: rstitch has no network`},
		{"no threshold", "algorithm = \"citer\"\ndir = \"router\"\nthreshold = 0.95", `algorithm = "rstitch"`,
			":19: router.threshold: missing, want a number: the entropy above"},
		{"threshold", "0.95", "nan", ":22: router.threshold = nan, want a number of -1 to 2"},
		{"no router folder", `dir = "router"`, "", ":19: router.dir: missing, want a router folder: none is given"},
		{"infeasible", "[1, 3]", "[2, 4]", ":26: policy.thresholds = [2, 4], want a feasible set"},
		{"planned", "[1, 3]", `"planned"`, "want integers: tokenrouter predict finds the best"},
		{"bare wait", `"50ms"`, "50", ":27: policy.max_wait = 50, want a duration with its unit"},
		{"page", "page_tokens = 32", "page_tokens = 40",
			":34: scheduler.page_tokens = 40, want a multiple of 16"},
		{"budget", "token_budget = 128", "token_budget = 63",
			":35: scheduler.token_budget = 63, want an integer of"},
		{"table", "queue = 2", "queues = 2", "unknown key, the nearest known is scheduler.queue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := systemIn(t, strings.Replace(goodSystem, c.old, c.new, 1))
			_, err := LoadSystem(path)
			var problems Problems
			if !errors.As(err, &problems) || len(problems) != 1 {
				t.Fatalf("error %v, want one problem", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "system ") || !strings.Contains(text, c.want) {
				t.Errorf("%s\nwant %q in it", text, c.want)
			}
		})
	}
}

// TestFaults: what flags can get wrong.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	small, large := Folder(dir), SystemModel{Name: "large", Shape: &model.Config{}}
	third := SystemModel{Name: "third", Shape: &model.Config{}}
	for _, c := range []struct {
		name   string
		models []SystemModel
		router Router
		want   []Fault
	}{
		{"nothing", nil, Router{}, []Fault{{"models", "want 1 to 8 models, not 0"}}},
		{"one", []SystemModel{small}, Router{Algorithm: "small"}, nil},
		{"router decides", []SystemModel{small, large}, Router{Dir: dir}, nil},
		{"no algorithm", []SystemModel{small, large}, Router{},
			[]Fault{{"router.algorithm", "want one of r2r, citer, collm, rstitch, me, query, small, large"}}},
		{"three of a pair", []SystemModel{small, large, third}, Router{Algorithm: "r2r", Dir: dir},
			[]Fault{{"router.algorithm", "want 2 models for it, the small and the large one, not 3"}}},
		{"three", []SystemModel{small, large, third}, Router{Algorithm: "me", Weights: []float64{5, 3, 2}}, nil},
		{"two weights", []SystemModel{small, large, third}, Router{Algorithm: "me", Weights: []float64{5, 3}},
			[]Fault{{"router.weights", "want 3 numbers, one for each model, not 2"}}},
		{"no weight", []SystemModel{small, large}, Router{Algorithm: "me", Weights: []float64{0, 0}},
			[]Fault{{"router.weights", "want a number above 0 among them"}}},
		{"weights of none", []SystemModel{small, large},
			Router{Algorithm: "r2r", Dir: dir, Weights: []float64{1, 1}},
			[]Fault{{"router.weights", "want none: only me has weights"}}},
		{"one of me", []SystemModel{small}, Router{Algorithm: "me"},
			[]Fault{{"router.algorithm", "want 2 models for it or more, not 1"}}},
		{"threshold of none", []SystemModel{small, large}, Router{Algorithm: "large", HasThreshold: true},
			[]Fault{{"router.threshold", "want none: large compares nothing"}}},
		{"lost router", []SystemModel{small, large}, Router{Algorithm: "r2r", Dir: "/none"},
			[]Fault{{"router.dir", `want a router folder: "/none" does not exist`}}},
	} {
		s := NewSystem(c.models...)
		s.Router = c.router
		if diff := cmp.Diff(c.want, s.Faults()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
