package spec

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/core"
	"tokenrouter/experiments/result"
	"tokenrouter/sim/latency"
)

// TestVariants: the spec with parts changed, by fragments, by whole arrays and by name.
func TestVariants(t *testing.T) {
	s, err := Load("testdata/variants.toml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"variant=ours concurrency=2", "variant=ours concurrency=4",
		"variant=eager, with host time concurrency=2", "variant=eager, with host time concurrency=4",
		"variant=two nodes concurrency=2", "variant=two nodes concurrency=4",
		"variant=LLM only concurrency=2", "variant=LLM only concurrency=4",
	}
	if diff := cmp.Diff(want, keysOf(s)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	names := []string{"ours", "eager, with host time", "two nodes", "LLM only"}
	axes := []Axis{{VariantAxis, names}, {"concurrency", []string{"2", "4"}}}
	if diff := cmp.Diff(axes, s.Axes); diff != "" {
		t.Errorf("axes (-want +got):\n%s", diff)
	}
	if got := s.ModelNames(); !slices.Equal(got, []string{"SLM", "LLM"}) {
		t.Errorf("models %v, want SLM, LLM", got)
	}
	ours, eager, nodes, alone := s.Points[1], s.Points[3], s.Points[5], s.Points[7]
	stepMs := func(p Point, m, rows int) float64 {
		ns, ok := p.Models[m].Latency.StepNs(latency.Shape{Rows: rows, FreshTokens: rows, Returns: rows})
		if !ok {
			t.Errorf("%s: model %d has no step of %d rows", p.Key, m, rows)
		}
		return float64(ns) / 1e6
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"ours: policy", ours.Policy.Kind, "delayed"},
		{"ours: LLM", stepMs(ours, 1, 4), 27.9},
		{"eager: policy", eager.Policy.Kind, "eager"},
		{"eager: thresholds, of another kind", eager.Policy.Table, [][]int(nil)},
		{"eager: SLM as below", stepMs(eager, 0, 4), 6.0},
		{"eager: LLM 27.0 + 4 x 0.2 + 3 ms of host", stepMs(eager, 1, 4), 27.0 + 0.8 + 3},
		{"eager: twice the memory", eager.Models[0].Pages > 2*ours.Models[0].Pages, true},
		{"nodes: LLM", nodes.Models[1].Node, 1},
		{"nodes: SLM", nodes.Models[0].Node, 0},
		{"nodes: links", len(nodes.Links), 2},
		{"nodes: page", nodes.PageTokens, 32},
		{"nodes: own pools for 4 requests of 30 tokens", nodes.Models[1].Pages, 4},
		{"alone: models", len(alone.Models), 1},
		{"alone: step", stepMs(alone, 0, 4), 25.0},
		{"alone: policy", alone.Policy.Kind, "eager"},
		{"alone: prompt and output", alone.ContextMax, 32},
		{"ours: admission", ours.Admission, core.Reserve},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	checkViews(t, s)
}

// checkViews looks at what is drawn of the variants and what they are compared to.
func checkViews(t *testing.T, s *Spec) {
	t.Helper()
	figures := []result.Figure{{Kind: "bars", Name: "bars", Title: "variants", X: "concurrency",
		Y: "throughput_tok_s", By: []string{"variant"}, LogY: true}}
	if diff := cmp.Diff(figures, s.Figures); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	at := func(variant, n string) map[string]string {
		return map[string]string{"variant": variant, "concurrency": n}
	}
	checks := []result.Check{
		{Name: "growth", Source: "a test", Metric: "throughput_tok_s", Of: at("ours", "4"),
			Over: []map[string]string{at("ours", "2")}, Low: 1.9, High: 1.9},
		{Name: "gain", Metric: "user_speed_tok_s", Of: at("ours", "4"),
			Over: []map[string]string{at("LLM only", "4"), at("two nodes", "4")}, Low: 1.5, High: 2, Fit: true},
	}
	if diff := cmp.Diff(checks, s.Checks); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
	if s.Noise != 0.06 || s.Caption != "What was fitted." || s.Discussion != "What is wrong.\n\nAnd why." {
		t.Errorf("noise %v, caption %q, discussion %q", s.Noise, s.Caption, s.Discussion)
	}
	points := []result.ReferencePoint{
		{At: map[string]string{"variant": "ours", "concurrency": "2"}, Value: 99, Fit: true},
		{At: map[string]string{"variant": "LLM only", "concurrency": "2"}, Value: 80},
	}
	if diff := cmp.Diff(points, s.References[0].Points); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
}

// TestVariantHash: the resolved spec holds what variants take in, so that a change in a fragment is another
// run.
func TestVariantHash(t *testing.T) {
	dir := t.TempDir()
	spec := write(t, dir, "s.toml", good+"[[variant]]\nname = \"a\"\nextends = \"part.toml\"\n")
	hash := func(fragment string) string {
		write(t, dir, "part.toml", fragment)
		s, err := Load(spec)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(s.Resolved), "host_step = \"1ms\"") == strings.Contains(fragment, "1ms") {
			t.Errorf("resolved without the fragment:\n%s", s.Resolved)
		}
		return s.Hash
	}
	one := hash("models.LLM.host_step = \"1ms\"\n")
	if two := hash("models.LLM.host_step = \"2ms\"\n"); one == two {
		t.Error("same hash for two fragments")
	}
	if again := hash("# a remark\nmodels.LLM.host_step = \"1ms\"\n"); one != again {
		t.Error("another hash for a remark")
	}
}

// TestExtendsByName: a spec may change one model, and one published ratio, of the spec that it extends.
func TestExtendsByName(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "below.toml", good+"[sweep]\nconcurrency = [3, 4]\n[[check]]\nname = \"gain\"\n"+
		"use = \"fit\"\nof.concurrency = 4\nover.concurrency = 3\npublished = 1.3\n")
	s, err := Load(write(t, dir, "s.toml",
		"extends = \"below.toml\"\n[models.LLM.latency]\nstep = \"30ms\"\n[check.gain]\nuse = \"check\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Points[0].Models[1].ByRows[0]; got != 30e6 {
		t.Errorf("LLM step %d ns, want 30 ms", got)
	}
	if got := s.Points[0].Models[0].ByRows[0]; got != 6e6 {
		t.Errorf("SLM step %d ns, want 6 ms as below", got)
	}
	if got := s.Checks[0]; got.Fit || got.Low != 1.3 {
		t.Errorf("check %+v, want 1.3 as below, to which nothing is fitted", got)
	}
}

// badVariants are what is added to the good spec, and all that Load then says.
var badVariants = []struct{ name, text, want string }{
	{"no name", "[[variant]]\npolicy.max_wait = \"1ms\"",
		"19: variant[0].name: missing, want a name, as in results, figures and references"},
	{"name twice", "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"",
		`22: variant[1].name = "a", want a name that no other variant has`},
	{"no such model", "[[variant]]\nname = \"a\"\nmodels.LLLM.node = 1",
		`21: models.LLLM = { node = 1 }, want the name of one that is there to be changed: "SLM", "LLM"`},
	{"no such key", "[[variant]]\nname = \"a\"\npolcy = { kind = \"eager\" }",
		`21: variant[0].polcy = { kind = "eager" }, unknown key, the nearest known is variant[0].policy`},
	{"key of a whole spec", "[[variant]]\nname = \"a\"\nseed = 3",
		`21: variant[0].seed = 3, unknown key, the nearest known is seed`},
	{"fault inside", "[[variant]]\nname = \"a\"\nmodels.LLM.latency.step = 30",
		`21: models[1].latency.step = 30, want a duration with its unit, such as "6.0ms"`},
	{"unknown key inside", "[[variant]]\nname = \"a\"\nmodels.LLM.stp = 30",
		`21: models[1].stp = 30, unknown key, the nearest known is models[].latency.step`},
	{"no table", "variant = 3\n", "1: variant = 3, want an array that is not empty"},
	{"no file", "[[variant]]\nname = \"a\"\nextends = \"none.toml\"",
		`21: variant[0].extends = "none.toml", want a file that can be read: no such file`},
	{"file of another type", "[[variant]]\nname = \"a\"\nextends = 3",
		"21: variant[0].extends = 3, want the name of a file with parts of a spec, as a string"},
	{"as many scales as models", "[sweep]\nlatency_scale = [[1.0, 0.5]]\n[[variant]]\nname = \"a\"\n" +
		"models = [{ name = \"S\", latency = { kind = \"constant\", step = \"6ms\" } }]\n" +
		"router = { algorithm = \"single\", model = \"S\" }\npolicy = { kind = \"eager\" }",
		"20: sweep.latency_scale = [1.0, 0.5], want a value for all, or latency_scale with 1, one a model"},
	{"not in the references", "[[variant]]\nname = \"a\"\n[[reference]]\nname = \"r\"\nsource = \"s\"\n" +
		"points = [{ variant = \"b\", value = 1, use = \"fitted\" }]",
		"24: reference[0].points[0].use = \"fitted\", want one of \"fit\", \"check\"\n" +
			"24: reference[0].points[0].variant = b, want a value of the sweep, one of a"},
	{"value twice", "[[variant]]\nname = \"a\"\n[[reference]]\nname = \"r\"\nsource = \"s\"\n" +
		"points = [{ variant = \"a\", value = 1 },\n{ variant = \"a\", value = 2 }]",
		"25: reference[0].points[1] = 2, want one value at a place, this is the second"},
	{"figure of one system", "[sweep]\nconcurrency = [2]\nthresholds = \"1,_\"\n[[variant]]\nname = \"a\"\n" +
		"[[figure]]\nkind = \"threshold\"",
		`25: figure[0].kind = "threshold", want no [[variant]] for this figure: take "bars" or "line"`},
}

// badChecks are what is added to the good spec with a sweep over N = 3 and 4, and all that Load then says.
var badChecks = []struct{ name, text, want string }{
	{"nothing", "[[check]]\n", "21: check[0].name: missing, want a string that is not empty\n" +
		"21: check[0].of: missing, want a place: a value for every swept axis\n" +
		"21: check[0].over: missing, want a place: a value for every swept axis\n" +
		"21: check[0].published: missing, want a number above 0, or the ends of a range"},
	{"no such value", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 2\npublished = 2",
		"24: check[0].over.concurrency = 2, want a value of the sweep, one of 3 | 4"},
	{"no value", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover = {}\npublished = 2",
		"24: check[0].over.concurrency: missing, want a value for every swept axis"},
	{"no such axis", "[[check]]\nname = \"c\"\nof = { concurrency = 4, p = 0.1 }\nover.concurrency = 3\n" +
		"published = 2", "23: check[0].of.p = 0.1, unknown key, want swept axes: concurrency"},
	{"no metric", "[[check]]\nname = \"c\"\nmetric = \"latency_mean\"\nof.concurrency = 4\n" +
		"over.concurrency = 3\npublished = 2", "23: check[0].metric = \"latency_mean\", want one of"},
	{"range upside down", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\n" +
		"published = [3, 2]",
		"25: check[0].published = [3, 2], want a number above 0, or two: the least and the greatest"},
	{"three ends", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\npublished = [1, 2, 3]",
		"25: check[0].published = [1, 2, 3], want a number above 0, or two: the least and the greatest"},
	{"negative", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\npublished = -2",
		"25: check[0].published = -2, want a finite number above 0"},
	{"nan", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\npublished = [nan, 2]",
		"25: check[0].published[0] = nan, want a finite number above 0"},
	{"text", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\npublished = \"2x\"",
		`25: check[0].published = "2x", want a number, not a string`},
	{"use", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover.concurrency = 3\npublished = 2\nuse = \"checks\"",
		`26: check[0].use = "checks", want one of "fit", "check", the nearest is "check"`},
	{"over nothing", "[[check]]\nname = \"c\"\nof.concurrency = 4\nover = []\npublished = 2",
		"24: check[0].over = [], want a place, or several of which the largest counts"},
}

func TestBadChecks(t *testing.T) {
	for _, c := range badChecks {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(problemsOf(t, good+"[sweep]\nconcurrency = [3, 4]\n"+c.text), "\n")
			if !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want, "\n") {
				t.Errorf("problems\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	got := problemsOf(t, "noise = -0.1\n"+good)
	if want := "1: noise = -0.1, want a number of 0 to 1"; strings.Join(got, "\n") != want {
		t.Errorf("noise: %q, want %q", got, want)
	}
}

func TestBadVariants(t *testing.T) {
	for _, c := range badVariants {
		t.Run(c.name, func(t *testing.T) {
			text := good + c.text
			if strings.HasPrefix(c.text, "variant =") {
				text = c.text + good
			}
			if diff := cmp.Diff(c.want, strings.Join(problemsOf(t, text), "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBadFragment: a fault in a fragment is told with the fragment's own file and line.
func TestBadFragment(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"unknown part", "\nsweep.p = [0.1]\n", `part.toml:2: variant[0].sweep = { p = [0.1] }, unknown key, the` +
			` nearest known is sweep; sweep = [] in s.toml takes it out`},
		{"wrong value", "\n\nmodels.LLM.node = -1\n",
			"part.toml:3: models[1].node = -1, want an integer of 0 to 7"},
		{"no such model", "models.X.node = 1\n",
			`part.toml:1: models.X = { node = 1 }, want the name of one that is there to be changed: "SLM", "LLM"`},
		{"not TOML", "models = \n", "part.toml:1: models: not TOML: expected value but found '\\n' instead"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "part.toml", c.text)
			_, err := Load(write(t, dir, "s.toml", good+"[[variant]]\nname = \"a\"\nextends = \"part.toml\"\n"))
			if err == nil {
				t.Fatal("no error")
			}
			folder := dir + string(filepath.Separator)
			plain := strings.NewReplacer("spec "+folder, "", folder, "")
			if got := plain.Replace(err.Error()); got != c.want {
				t.Errorf("error\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
