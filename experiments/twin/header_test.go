package twin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/cpu"
	"tokenrouter/exec/model"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/experiments/twin"
	"tokenrouter/sim/outcome/trace"
)

// folder makes a tiny model.
func folder(t *testing.T, name string, seed uint64) spec.SystemModel {
	t.Helper()
	c, err := model.ParseShape("tiny,layers=1")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "[a]*?", name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := model.Make(t.Context(), dir, c, seed, nil); err != nil {
		t.Fatal(err)
	}
	return spec.SystemModel{Name: name, Dir: dir}
}

func headerOf(t *testing.T, edit func(*spec.System), models ...spec.SystemModel) trace.Header {
	t.Helper()
	y := spec.NewSystem(models...)
	y.Router = spec.Router{Algorithm: "rstitch", Threshold: 0.5, HasThreshold: true}
	edit(y)
	plan, err := system.Prepare(y, system.Choice{Backend: cpu.Backend()})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	h, err := twin.Header(plan)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeader: the same folders are the same pair wherever they lie; other weights, other types of weights and
// other names are another.
func TestHeader(t *testing.T) {
	same := func(*spec.System) {}
	shape, err := model.ParseShape("tiny,layers=1")
	if err != nil {
		t.Fatal(err)
	}
	random := spec.SystemModel{Name: "llm", Shape: &shape}
	h := headerOf(t, same, folder(t, "slm", 1), folder(t, "llm", 2))
	const all = "token, logprob, top_prob, entropy, eos"
	if h.Signals[0] != h.Signals[1] || h.Signals[0].String() != all {
		t.Errorf("signals %v, want %s of both", h.Signals, all)
	}
	if len(h.Pair.Tokenizer) != 64 || len(h.Pair.Weights[1]) != 64 || h.Pair.Router != "" {
		t.Errorf("%+v, want SHA-256 of tokenizer and weights, and of no router", h.Pair)
	}
	for name, c := range map[string]struct {
		header trace.Header
		want   string // nothing: the same pair
	}{
		"elsewhere":     {headerOf(t, same, folder(t, "slm", 1), folder(t, "llm", 2)), ""},
		"another seed":  {headerOf(t, same, folder(t, "slm", 1), folder(t, "llm", 3)), "of llm, want"},
		"another name":  {headerOf(t, same, folder(t, "slm", 1), folder(t, "large", 2)), "models = "},
		"swapped":       {headerOf(t, same, folder(t, "slm", 2), folder(t, "llm", 1)), "of slm, want"},
		"random":        {headerOf(t, same, folder(t, "slm", 1), random), "llm"},
		"one model":     {headerOf(t, single, folder(t, "slm", 1), folder(t, "llm", 2)), "models = "},
		"bytes weights": {headerOf(t, int8Large, folder(t, "slm", 1), folder(t, "llm", 2)), "of llm, want"},
	} {
		err := h.CheckPair(&c.header)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func single(y *spec.System) { y.Router = spec.Router{Algorithm: "small"} }

func int8Large(y *spec.System) { y.Models[1].Int8 = true }
