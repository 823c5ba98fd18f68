package spec

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	// hardwareText is good, run by real models.
	hardwareText = `name = "real"
system = { file = "pair.toml", calibrate = true }
router = { algorithm = "r2r", p = 0.35 }
policy = { kind = "delayed", thresholds = "planned" }
replicates = 2

[workload]
kind = "closed"
concurrency = 4
requests = 10
prompt = 10
output = 20
`
	hardwarePair = `router = { algorithm = "me" }
models = [{ name = "SLM", shape = "tiny" }, { name = "LLM", shape = "tiny,layers=8" }]
`
	// provenance is what every calibration file says of itself.
	provenance = `[calibration]
device = "made up"
engine = "none"
date = "2026"
source = "a test"
range = "everywhere"
`
	hardwareSteps = provenance + `[[models]]
name = "SLM"
latency = { kind = "constant", step = "6.0ms", beside = 1.5 }
[[models]]
name = "LLM"
latency = { kind = "affine", base = "20ms", per_fresh_ns = 1000 }
`
)

// hardwareFiles writes a spec and what it names, and returns its path.
func hardwareFiles(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "pair.toml", hardwarePair)
	write(t, dir, "steps.toml", hardwareSteps)
	write(t, dir, "nothing.toml", provenance+"router.p = 0.3\n")
	return write(t, dir, "t.toml", text)
}

// TestHardware: a spec that measures step times has models without them, until it is told where they are; its
// identity stays.
func TestHardware(t *testing.T) {
	path := hardwareFiles(t, hardwareText)
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Points[0]
	h := s.Hardware
	if h.Backend != "cpu" || !h.Calibrate || len(h.System.Models) != 2 || p.Models[1].Name != "LLM" ||
		p.Models[1].Latency != nil {
		t.Errorf("hardware %+v, models %+v", h, p.Models)
	}
	if want := (Probe{Tolerance: 0.1, Tries: 4, WaitNs: 2e9, ExtraNs: 300e9}); h.Probe != want {
		t.Errorf("probe %+v, want %+v", h.Probe, want)
	}
	if why := p.Unpredictable(); why != "the step time of SLM is not known before it is measured" {
		t.Errorf("unpredictable: %q", why)
	}
	calibrated, err := s.Calibrated(strings.Replace(path, "t.toml", "steps.toml", 1))
	if err != nil {
		t.Fatal(err)
	}
	q := calibrated.Points[0]
	if calibrated.Hash != s.Hash || q.Unpredictable() != "" || q.Models[0].Beside != 1.5 ||
		!slices.Equal(q.Models[0].ByRows, []int64{6e6, 6e6, 6e6, 6e6}) {
		t.Errorf("calibrated: hash %s, want %s; unpredictable %q, models %+v", calibrated.Hash, s.Hash,
			q.Unpredictable(), q.Models)
	}
	given, err := Load(hardwareFiles(t, strings.Replace(hardwareText, "calibrate = true",
		`calibration = "steps.toml"`, 1)))
	if err != nil || given.Hardware.Calibrate || given.Points[0].Models[0].Beside != 1.5 ||
		given.Hash == s.Hash {
		t.Errorf("with a file of step times: %v", err)
	}
}

// TestHardwareProblems: what no machine can do is refused where it stands.
func TestHardwareProblems(t *testing.T) {
	for _, c := range []struct{ name, old, text, want string }{
		{"open loop", `kind = "closed"`, "kind = \"poisson\"\nrate = 5.0",
			`:8: workload.kind = "poisson", want "closed" beside [system]`},
		{"end in time", "requests = 10", `until = "1s"`,
			`:10: workload.until = "1s", want none beside [system]: give requests`},
		{"bursts", "p = 0.35 }", `outcome = "bursts", p = 0.35, easy = 0.1, hard = 0.9, hard_tokens = 5 }`,
			`:3: router.outcome = "bursts", want "bernoulli" beside [system]`},
		{"recorded", `"r2r", p = 0.35`, `"recorded", paths = ["SL"]`, `:3: router.algorithm = "recorded", want ` +
			`"r2r", "citer", "collm", "rstitch", "me", "matrix", "single" beside [system]`},
		{"prefixes", "prompt = 10", "prompt = 10\nprefix_groups = 2\nprefix_tokens = 5",
			`:12: workload.prefix_groups = 2, want none beside [system]: requests share nothing`},
		{"pages", "[workload]", "[scheduler]\npage_tokens = 16\n[workload]",
			`:8: scheduler.page_tokens = 16, want none beside [system]: the system's file says it`},
		{"link", "[workload]", "[[links]]\nbetween = [0, 1]\nlatency = \"1us\"\n[workload]",
			`:7: links = [{ between = [0, 1], latency = "1us" }], want none beside [system]: all models are on` +
				` this machine`},
		{"scaled", "[workload]", "[sweep]\nlatency_scale = [1.0, 2.0]\n[workload]",
			`:8: sweep.latency_scale = [1.0, 2.0], want none beside [system]: step times are what they are`},
		{"no times", "calibrate = true", "backend = \"cpu\"", `:2: system.calibrate: missing, want one source of` +
			` step times: calibrate = true, a file calibration, or models`},
		{"times twice", "calibrate = true", `calibrate = true, calibration = "steps.toml"`,
			`:2: system.calibrate = true, want one source of step times`},
		{"no calibration", "calibrate = true", `calibration = "nothing.toml"`,
			`:2: system.calibration = "nothing.toml", want a file with models`},
		{"no try", "calibrate = true", "calibrate = true, probe = { tries = 0 }",
			`:2: system.probe.tries = 0, want `},
		{"no tolerance", "calibrate = true", "calibrate = true, probe = { tolerance = 0.0 }",
			`:2: system.probe.tolerance = 0.0, want `},
		{"no file", `file = "pair.toml", `, "", ":2: system.file: missing, want the file of a system"},
		{"no such file", "pair.toml", "other.toml", `:2: system.file = "other.toml", want a file that can be read`},
		{"backend", "calibrate = true", `calibrate = true, backend = "cpus"`,
			`:2: system.backend = "cpus", want one of "cpu", "cuda", the nearest is "cpu"`},
		{"a fault of the system", "pair.toml", "steps.toml",
			`steps.toml:7: models[0].dir: missing, want dir, or shape`},
		{"node", `{ file = "pair.toml", calibrate = true }`, "{ file = \"pair.toml\" }\n" +
			`models = [{ name = "SLM", latency = { kind = "constant", step = "1ms" }, host_step = "1us" },` +
			` { name = "LLM", latency = { kind = "constant", step = "4ms" } }]`,
			`:3: models[].host_step = "1us", want none beside [system]: host time is what it is`},
		{"names", `{ file = "pair.toml", calibrate = true }`, "{ file = \"pair.toml\" }\n" +
			`models = [{ name = "SLM", latency = { kind = "constant", step = "1ms" } },` +
			` { name = "M", latency = { kind = "constant", step = "4ms" } }]`,
			`want models by the names of pair.toml: "SLM", "LLM", not "SLM", "M"`},
	} {
		_, err := Load(hardwareFiles(t, strings.Replace(hardwareText, c.old, c.text, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error\n%v\nwant in it\n%s", c.name, err, c.want)
		}
	}
}

// TestHardwareSpecs: the experiments on hardware are those of the figure, and the short one is one of them.
func TestHardwareSpecs(t *testing.T) {
	full, err := Load("../hardware.toml")
	if err != nil {
		t.Fatal(err)
	}
	short, err := Load("../hardware-short.toml")
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, p := range full.Points {
		sets = append(sets, p.Key)
	}
	for _, p := range short.Points {
		if !slices.Contains(sets, p.Key) || p.Routing[0][1] != 0.35 {
			t.Errorf("point %s of the short form is none of the full one", p.Key)
		}
	}
	// N = 2, 3, 4, 6, 8, 12 and 16 have as many sets each.
	if len(full.Points) != 51 || len(short.Points) != 5 {
		t.Errorf("%d and %d points, want 51 and 5", len(full.Points), len(short.Points))
	}
	if _, err := os.Stat("../hardware-pair.toml"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"threshold"}, []string{full.Figures[0].Kind}); diff != "" {
		t.Errorf("figure (-want +got):\n%s", diff)
	}
}
