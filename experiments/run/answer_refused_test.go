package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model/router"
	"tokenrouter/experiments/spec"
)

// TestAnswersRefused: what only folders can tell is refused by the key that names the system, before any
// system runs.
func TestAnswersRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"other vocabulary", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "llm", "tokenizer.json"), `"<|im_end|>"`, `"<|im_fin|>"`)
		}, `:25: routing[2].system = "r2r.toml", models "SLM" and "LLM" have different vocabularies: token 258 is` +
			` "<|im_end|>" and "<|im_fin|>"`},
		{"router of another model", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "citer")); err != nil {
				t.Fatal(err)
			}
			wider := router.PublishedShape(router.CITER, 128)
			if err := router.Make(filepath.Join(dir, "citer"), wider, 1); err != nil {
				t.Fatal(err)
			}
		}, `:29: routing[3].system = "citer.toml", router`},
		{"router of another algorithm", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "citer.toml"), `dir = "citer"`, `dir = "collm"`)
		}, `is for the algorithm collm, want one for citer`},
		{"weights cut off", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "slm", "model.safetensors")
			info, err := os.Stat(path)
			if err == nil {
				err = os.Truncate(path, info.Size()-100)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, `:19: routing[0].system = "small.toml", model "SLM": `},
		{"no tokenizer", func(t *testing.T, dir string) {
			for _, m := range []string{"slm", "llm"} {
				if err := os.Remove(filepath.Join(dir, m, "tokenizer.json")); err != nil {
					t.Fatal(err)
				}
			}
		}, `routing[0].system = "small.toml", no model has a tokenizer.json`},
		{"context", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "me.toml"), "[router]", "[scheduler]\ncontext_max = 64\n[router]")
		}, `routing[6].system = "me.toml", problem arith/test/1/`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tinyModels(t)
			c.change(t, dir)
			s := answeringSpec(t, dir, answered+routings)
			o := onFake(t.TempDir())
			o.scorer, o.Progress = byHash{}, func(int, int) { t.Error("a point has run") }
			_, err := Run(t.Context(), s, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant in it\n%s", err, c.want)
			}
		})
	}
	dir := tinyModels(t)
	s := answeringSpec(t, dir, answered+routings)
	if _, err := Run(t.Context(), s, Options{Out: t.TempDir()}); err == nil ||
		!strings.Contains(err.Error(), "only real models answer problems") {
		t.Errorf("simulated: error %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "llm")); err != nil {
		t.Fatal(err)
	}
	_, err := spec.Load(filepath.Join(dir, "answered.toml"))
	want := `small.toml:6: models[1].dir = "llm", want a model folder`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("lost folder: error\n%v\nwant in it\n%s", err, want)
	}
}

// edit replaces text in a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		t.Fatalf("%s has no %s", path, old)
	}
	put(t, filepath.Dir(path), filepath.Base(path), strings.ReplaceAll(string(content), old, text))
}
