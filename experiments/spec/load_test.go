package spec

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good is a spec that loads. Tests change lines of it.
const good = `name = "small"
seed = 0
models = [
  { name = "SLM", latency = { kind = "constant", step = "6.0ms" } },
  { name = "LLM", latency = { kind = "constant", step = "27.9ms" } },
]
[router]
algorithm = "r2r"
p = 0.35
[workload]
kind = "closed"
concurrency = 4
requests = 10
prompt = 10
output = 20
[policy]
kind = "delayed"
thresholds = [1, 3]
`

// problemsOf parses a text and returns its problems, a line each, without "spec t.toml:".
func problemsOf(t *testing.T, text string) []string {
	t.Helper()
	_, err := Parse("t.toml", text)
	if err == nil {
		return nil
	}
	var problems Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error of type %T, want Problems: %v", err, err)
	}
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "spec t.toml:")
	}
	return lines
}

func TestGoodSpec(t *testing.T) {
	s, err := Parse("t.toml", good)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Points[0]
	if len(s.Points) != 1 || p.Concurrency != 4 || p.ContextMax != 30 || p.Key != "point" {
		t.Errorf("points %d, concurrency %d, context %d, key %q; want 1, 4, 30, point",
			len(s.Points), p.Concurrency, p.ContextMax, p.Key)
	}
	if got := p.Policy.Table[3]; !slices.Equal(got, []int{1, 3}) {
		t.Errorf("thresholds at N = 4: %v, want [1 3]", got)
	}
	if got := p.Models[1].ByRows; !slices.Equal(got, []int64{27900000, 27900000, 27900000, 27900000}) {
		t.Errorf("LLM steps by rows %v, want 27.9 ms four times", got)
	}
}

// oneLine holds changes of one line of the good spec, and all that Load then says.
var oneLine = []struct{ name, old, new, want string }{
	{"unknown key", "p = 0.35", "p = 0.35\npp = 1",
		"10: router.pp = 1, unknown key, the nearest known is router.p"},
	{"wrong case", "concurrency = 4", "Concurrency = 4",
		"10: workload.concurrency: missing, want how many requests may be in flight\n" +
			"12: workload.Concurrency = 4, unknown key, the nearest known is workload.concurrency"},
	{"unknown table", "[policy]", "[polcy]",
		"1: policy: missing, want a table with the kind\n" +
			`16: polcy = { kind = "delayed", thresholds = [1, 3] }, unknown key, the nearest known is policy`},
	{"bare duration", `step = "6.0ms"`, `step = 6`,
		`4: models[0].latency.step = 6, want a duration with its unit, such as "6.0ms"`},
	{"duration without unit", `step = "6.0ms"`, `step = "6"`,
		`4: models[0].latency.step = "6", want a duration with its unit, such as "6.0ms"`},
	{"negative duration", `step = "6.0ms"`, `step = "-6.0ms"`,
		`4: models[0].latency.step = "-6.0ms", want a duration of at least 1ns`},
	{"no time at all", `step = "6.0ms"`, `step = "0ms"`,
		`4: models[0].latency.step = "0ms", want a duration of at least 1ns`},
	{"nan", "p = 0.35", "p = nan", "9: router.p = nan, want a number of 0 to 1"},
	{"infinite", "p = 0.35", "p = +inf", "9: router.p = inf, want a number of 0 to 1"},
	{"probability above 1", "p = 0.35", "p = 1.5", "9: router.p = 1.5, want a number of 0 to 1"},
	{"text for a number", "p = 0.35", `p = "0.35"`, `9: router.p = "0.35", want a number, not a string`},
	{"float for an integer", "concurrency = 4", "concurrency = 4.0",
		"12: workload.concurrency = 4.0, want an integer of 1 to 65536"},
	{"negative into unsigned", "requests = 10", "requests = -1",
		"13: workload.requests = -1, want an integer of at least 1"},
	{"negative seed", "seed = 0", "seed = -1", "2: seed = -1, want an integer of at least 0"},
	{"seed too large", "seed = 0", "seed = 9223372036854775808",
		"2: seed: not TOML: 9223372036854775808 is out of range for int64"},
	{"syntax", "seed = 0", "seed = ", "2: seed: not TOML: expected value but found '\\n' instead"},
	{"key twice", "seed = 0", "seed = 0\nseed = 1", "3: seed: not TOML: Key 'seed' has already been defined."},
	{"no such kind", `kind = "closed"`, `kind = "close"`,
		`11: workload.kind = "close", want one of "closed", "poisson", "gamma", "trace", "recorded",` +
			` "task", the nearest is "closed"`},
	{"key of another kind", "prompt = 10", "prompt = 10\nrate = 3.0",
		"15: workload.rate = 3.0, does not apply here: it is for poisson and gamma"},
	{"thresholds for eager", `kind = "delayed"`, `kind = "eager"`,
		"18: policy.thresholds = [1, 3], does not apply here: it is for policy delayed"},
	{"as many thresholds as models", "thresholds = [1, 3]", "thresholds = [1, 3, 1]",
		"18: policy.thresholds = [1, 3, 1], want 2 integers, one for each model, not 3"},
	{"threshold 0", "thresholds = [1, 3]", "thresholds = [0, 3]",
		"18: policy.thresholds[0] = 0, want an integer of at least 1"},
	{"name as a path", `name = "small"`, `name = "../x"`,
		`1: name = "../x", want small letters, digits and hyphens only`},
	{"no requests and no end", "requests = 10\n", "",
		"10: workload.requests: missing, want requests or until: something must end the run"},
	{"all is warm-up", "requests = 10", "requests = 10\nwarmup_requests = 10",
		"14: workload.warmup_requests = 10, want fewer than the 10 requests, or nothing is measured"},
	{"small and large model only", `algorithm = "r2r"`, `algorithm = "single"`,
		"7: router.model: missing, want one of \"SLM\", \"LLM\"\n" +
			"9: router.p = 0.35, does not apply here: it is for r2r, citer, collm and rstitch"},
	{"two models of one name", `name = "LLM"`, `name = "SLM"`,
		`5: models[1].name = "SLM", want a name that no other model has`},
	{"table with a hole", `{ kind = "constant", step = "6.0ms" }`,
		`{ kind = "table", rows = [1, 2, 4], steps = ["1ms", "2ms"] }`,
		`4: models[0].latency.steps = ["1ms", "2ms"], want 3 durations,` +
			" one for every combination of the axes, not 2"},
	{"table that does not rise", `{ kind = "constant", step = "6.0ms" }`,
		`{ kind = "table", rows = [1, 1], steps = ["1ms", "2ms"] }`,
		`4: models[0].latency.rows = [1, 1], want rising integers`},
	{"no such shape", `{ kind = "constant", step = "6.0ms" }`,
		`{ kind = "roofline", shape = "Qwen3-7B", device = "A100" }`,
		`4: models[0].latency.shape = "Qwen3-7B", want one of "Qwen3-0.6B", "Qwen3-1.7B", "Qwen3-4B",` +
			` "Qwen3-8B", "Qwen3-14B", "Qwen3-32B"`},
	{"two nodes, no link", `{ name = "LLM",`, `{ name = "LLM", node = 1,`,
		"1: links: missing, want a link between nodes 0 and 1"},
	{"pool smaller than nothing", `{ name = "LLM",`, `{ name = "LLM", kv = { pages = 0 },`,
		"5: models[1].kv.pages = 0, want an integer of 1 to 268435456"},
	{"axis twice the same", "[policy]", "[sweep]\nconcurrency = [4, 4]\n[policy]",
		"17: sweep.concurrency[1] = 4, want no value twice"},
	{"infeasible at one point", "[policy]", "[sweep]\nconcurrency = [2, 4]\n[policy]",
		"20: policy.thresholds = [1, 3], want a feasible set: threshold of model 1 is 3, want at most N = 2"},
	{"axis that the workload has not", "[policy]", "[sweep]\nrate = [1.0]\n[policy]",
		"17: workload.rate = 1.0, does not apply here: it is for poisson and gamma"},
	{"figure without its axis", "[policy]", "[[figure]]\nkind = \"threshold\"\n[policy]",
		"17: figure[0].kind = \"threshold\", want an axis sweep.concurrency for this figure\n" +
			"17: figure[0].kind = \"threshold\", want an axis sweep.thresholds for this figure"},
	{"line figure without a sweep", "[policy]", "[[figure]]\nkind = \"line\"\nx = \"p\"\n[policy]",
		`17: figure[0].kind = "line", want an axis of numbers in [sweep] for this figure`},
	{"max_wait as a number", "thresholds = [1, 3]", "thresholds = [1, 3]\nmax_wait = 5",
		`19: policy.max_wait = 5, want a duration with its unit, such as "6.0ms"`},
}

func TestOneLine(t *testing.T) {
	for _, test := range oneLine {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(good, test.old) < 1 {
				t.Fatalf("%q is not in the good spec", test.old)
			}
			got := problemsOf(t, strings.Replace(good, test.old, test.new, 1))
			if diff := cmp.Diff(strings.Split(test.want, "\n"), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCase28 is the input of a public report word for word: each line is its own error with file, line and
// key, the typo with the nearest known key.
func TestCase28(t *testing.T) {
	got := problemsOf(t, `[router]
treshold_large = 3        # typo
kv_blocks = -1            # into uint64
max_wait = 5              # meant: seconds? ms?
small_latency = "-5ms"
rate = nan
p = 1.5
`)
	want := []string{
		"1: models: missing, want an array of tables, small model first",
		"1: name: missing, want a name for the folder of the results",
		"1: policy: missing, want a table with the kind",
		`1: router.algorithm: missing, want one of "r2r", "citer", "collm", "rstitch", "me", "matrix",` +
			` "recorded", "single", "query"`,
		"1: workload: missing, want a table with kind, concurrency and lengths",
		"2: router.treshold_large = 3, unknown key, the nearest known is router.threshold",
		"3: router.kv_blocks = -1, unknown key, the nearest known is models[].kv.pages",
		"4: router.max_wait = 5, unknown key, the nearest known is policy.max_wait",
		`5: router.small_latency = "-5ms", unknown key, the nearest known is models[].latency`,
		"6: router.rate = nan, unknown key, the nearest known is workload.rate",
		"7: router.p = 1.5, want a number of 0 to 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestCase28InPlace has the same faults at keys that exist: all are found at once.
func TestCase28InPlace(t *testing.T) {
	got := problemsOf(t, `name = "x"
[[models]]
name = "SLM"
latency = { kind = "constant", step = "-5ms" }
kv = { pages = -1 }
[[models]]
name = "LLM"
latency = { kind = "constant", step = "5ms" }
[router]
algorithm = "r2r"
p = 1.5
[workload]
kind = "poisson"
rate = nan
concurrency = 4
requests = 10
prompt = 10
output = 10
[policy]
kind = "delayed"
tresholds = [1, 3]
max_wait = 5
`)
	want := []string{
		`4: models[0].latency.step = "-5ms", want a duration of at least 1ns`,
		"5: models[0].kv.pages = -1, want an integer of 1 to 268435456",
		"11: router.p = 1.5, want a number of 0 to 1",
		"14: workload.rate = nan, want a number above 0 and at most 1e+07",
		`19: policy.thresholds: missing, want one integer for each model, or "planned", or table`,
		"21: policy.tresholds = [1, 3], unknown key, the nearest known is policy.thresholds",
		`22: policy.max_wait = 5, want a duration with its unit, such as "6.0ms"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// TestCase1 is the threshold sets of a public report: feasible is sum (B - 1) < N.
func TestCase1(t *testing.T) {
	two, three := "", `  { name = "XL", latency = { kind = "constant", step = "50ms" } },`+"\n"
	tests := []struct {
		name, models, thresholds, n, want string
	}{
		{"[2,4] at 4", two, "[2, 4]", "4", "18: policy.thresholds = [2, 4], want a feasible set: thresholds [2 4]" +
			" with N = 4: sum of (B - 1) is 4, want below 4 or all can wait for ever"},
		{"[2,3] at 4", two, "[2, 3]", "4", ""},
		{"[1,4] at 4", two, "[1, 4]", "4", ""},
		{"[2,2,2] at 4", three, "[2, 2, 2]", "4", ""},
		{"[2,2,3] at 4", three, "[2, 2, 3]", "4", "18: policy.thresholds = [2, 2, 3], want a feasible set:" +
			" thresholds [2 2 3] with N = 4: sum of (B - 1) is 4, want below 4 or all can wait for ever"},
		{"[1,1] at 1", two, "[1, 1]", "1", ""},
		{"[1,2] at 1", two, "[1, 2]", "1", "18: policy.thresholds = [1, 2], want a feasible set:" +
			" threshold of model 1 is 2, want at most N = 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(good, "]\n[router]", test.models+"]\n[router]", 1)
			text = strings.Replace(text, "[1, 3]", test.thresholds, 1)
			text = strings.Replace(text, "concurrency = 4", "concurrency = "+test.n, 1)
			want := test.want
			if test.models != "" {
				text = strings.Replace(text, `algorithm = "r2r"`+"\np = 0.35",
					`algorithm = "me"`+"\nweights = [5, 3, 2]", 1)
				want = strings.Replace(want, "18:", "19:", 1)
			}
			if got := strings.Join(problemsOf(t, text), "\n"); got != want {
				t.Errorf("problems\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestCase1Table: a table of length 3 with N = 1, 3 and 4; N beyond it is refused, N = 0 does not exist.
func TestCase1Table(t *testing.T) {
	base := strings.Replace(good, "thresholds = [1, 3]\n", "[policy.table]\nLLM = [1, 2, 2]\n", 1)
	for n, want := range map[string]string{
		"0": "12: workload.concurrency = 0, want an integer of 1 to 65536",
		"1": "", "3": "",
		"4": "19: policy.table.LLM = [1, 2, 2], want a threshold for each N = 1 to 4" +
			" (workload.concurrency), not 3 of them",
	} {
		text := strings.Replace(base, "concurrency = 4", "concurrency = "+n, 1)
		if got := strings.Join(problemsOf(t, text), "\n"); got != want {
			t.Errorf("N = %s: problems\n%s\nwant\n%s", n, got, want)
		}
	}
	s, err := Parse("t.toml", strings.Replace(base, "concurrency = 4", "concurrency = 3", 1))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{1, 1}, {1, 2}, {1, 2}}, s.Points[0].Policy.Table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	got := problemsOf(t, strings.Replace(base, "LLM = [1, 2, 2]", "large = [1, 2, 2, 2]", 1))
	want := []string{`19: policy.table.large = [1, 2, 2, 2], unknown model, the models are "SLM", "LLM"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a table for a model that is not there (-want +got):\n%s", diff)
	}
}

// TestCase1WordForWord: the report's own file has sections that ours does not, and says where they are.
func TestCase1WordForWord(t *testing.T) {
	got := problemsOf(t, `[router]
n = 4
thresholds = [2, 4]          # also [2,3], [1,4]; three models [2,2,2] and [2,2,3]; n=1 with [1,2]
[router.table]               # per-N table of length 3, run with n = 0, 1, 3, 4
large = [1, 2, 2]
`)
	want := []string{
		"2: router.n = 4, unknown key, the nearest known is workload.concurrency",
		"3: router.thresholds = [2, 4], unknown key, the nearest known is policy.thresholds",
		"4: router.table = { large = [1, 2, 2] }, unknown key, the nearest known is policy.table",
	}
	if diff := cmp.Diff(want, got[len(got)-3:]); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExtends(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "base.toml", good)
	path := write(t, dir, "other.toml", "extends = \"base.toml\"\nname ="+
		" \"other\"\n[workload]\nconcurrency = 8\n")
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := write(t, t.TempDir(), "far.toml", "extends = \""+path+"\"\nname = \"far\"\n")
	if far, err := Load(elsewhere); err != nil || far.Points[0].Concurrency != 8 {
		t.Errorf("by an absolute path: %v", err)
	}
	if p := s.Points[0]; s.Name != "other" || p.Concurrency != 8 || p.Workload.Requests != 10 {
		t.Errorf("name %q, concurrency %d, requests %d; want other, 8, 10", s.Name, p.Concurrency,
			p.Workload.Requests)
	}
	straight := strings.Replace(strings.Replace(good, "concurrency = 4", "concurrency = 8", 1), "small",
		"other", 1)
	whole, err := Parse("t.toml", straight)
	if err != nil {
		t.Fatal(err)
	}
	if s.Hash != whole.Hash {
		t.Errorf("hash %s, want %s of the same spec in one file", s.Hash, whole.Hash)
	}
}

// TestExtendsTakesOut: an empty array takes a key of the other spec out, so that another policy or router can
// be tried; without it the problem says how.
func TestExtendsTakesOut(t *testing.T) {
	dir := t.TempDir()
	base := write(t, dir, "base.toml", good)
	text := "extends = \"base.toml\"\n[policy]\nkind = \"eager\"\n"
	path := write(t, dir, "t.toml", text)
	_, err := Load(path)
	want := "policy.thresholds = [1, 3], does not apply here: it is for policy delayed; thresholds = [] in " +
		path + " takes it out"
	if err == nil || !strings.HasPrefix(err.Error(), "spec "+base) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
	s, err := Load(write(t, dir, "t.toml", text+"thresholds = []\n"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(s.Resolved), "thresholds") || s.Points[0].Policy.Kind != "eager" {
		t.Errorf("policy %q of the spec\n%s", s.Points[0].Policy.Kind, s.Resolved)
	}
	if _, err := Parse("t.toml", string(s.Resolved)); err != nil {
		t.Errorf("the resolved spec: %v", err)
	}
}

func TestExtendsProblems(t *testing.T) {
	dir := t.TempDir()
	base := write(t, dir, "base.toml", strings.Replace(good, "p = 0.35", "p = 3.5", 1))
	here := func(name string) string { return filepath.Join(dir, name) }
	tests := []struct{ name, text, want string }{
		{"fault in the other file", "extends = \"base.toml\"\n[workload]\nconcurrency = 0\n",
			"spec " + base + ":9: router.p = 3.5, want a number of 0 to 1\n" +
				"spec " + here("t.toml") + ":3: workload.concurrency = 0, want an integer of 1 to 65536"},
		{"no such file", "extends = \"none.toml\"\n",
			"spec " + here("t.toml") + ":1: extends = \"none.toml\", want a spec that can be read: no such file"},
		{"itself", "extends = \"t.toml\"\n", "spec " + here("t.toml") +
			":1: extends = \"t.toml\", want no circle: " +
			here("t.toml") + " -> " + here("t.toml")},
		{"a number", "extends = 3\n",
			"spec " + here("t.toml") + ":1: extends = 3, want the name of a spec file, as a string"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(write(t, dir, "t.toml", test.text))
			if err == nil || err.Error() != test.want {
				t.Errorf("error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
	write(t, dir, "a.toml", "extends = \"b.toml\"\n")
	write(t, dir, "b.toml", "extends = \"a.toml\"\n")
	if _, err := Load(here("a.toml")); err == nil || !strings.Contains(err.Error(), "want no circle: "+
		here("a.toml")+" -> "+here("b.toml")+" -> "+here("a.toml")) {
		t.Errorf("circle of two: %v", err)
	}
}

// TestDeviceProblems: each fault is told once and brings no other with it.
func TestDeviceProblems(t *testing.T) {
	shared := strings.Replace(good, `step = "6.0ms" }`,
		`step = "6.0ms" }, kv = { device = "gpu", shape = "Qwen3-0.6B" }`, 1)
	const memory = "[[devices]]\nname = \"gpu\"\nmemory = \"80GiB\"\n"
	tests := []struct{ name, text, want string }{
		{"no fault", shared + memory, ""},
		{"a fault elsewhere", strings.Replace(shared, "p = 0.35", "p = 3.5", 1) + memory,
			"9: router.p = 3.5, want a number of 0 to 1"},
		{"no such device", shared, "3: models"},
		{"two of one name", shared + memory + memory,
			`23: devices[1].name = "gpu", want a name that no other device has`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := problemsOf(t, test.text)
			if all := strings.Join(got, "\n"); !strings.HasPrefix(all, test.want) || len(got) > 1 ||
				len(got) > 0 && test.want == "" {
				t.Errorf("problems %q, want %q", got, test.want)
			}
		})
	}
}

// TestLinkProblems: no link is dropped silently.
func TestLinkProblems(t *testing.T) {
	two := strings.Replace(good, `{ name = "LLM",`, `{ name = "LLM", node = 1,`, 1)
	link := func(ends string) string { return "[[links]]\nbetween = " + ends + "\nlatency = \"9us\"\n" }
	tests := []struct{ name, links, want string }{
		{"one", link("[0, 1]"), ""},
		{"the other way too", link("[0, 1]") + link("[1, 0]"),
			"23: links[1].between = [1, 0], want one link between two nodes, which works in both directions"},
		{"to nowhere", link("[0, 1]") + link("[0, 7]"),
			"23: links[1].between = [0, 7], want nodes of models[].node, which go up to 1"},
		{"to itself", link("[0, 1]") + link("[1, 1]"), "23: links[1].between = [1, 1], want two different nodes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(problemsOf(t, two+test.links), "\n"); got != test.want {
				t.Errorf("problems %q, want %q", got, test.want)
			}
		})
	}
}
