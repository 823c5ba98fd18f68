package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/experiments/result"
)

// TestResumeOtherModels: results of one training are not gone on with after another, whether the run was
// finished or not; a run from the beginning is.
func TestResumeOtherModels(t *testing.T) {
	dir, out := tinyModels(t), t.TempDir()
	s := answeringSpec(t, dir, answered+routings)
	ctx, stop := context.WithCancel(t.Context())
	begun := onFake(out)
	begun.scorer, begun.Progress = byHash{}, func(done, _ int) {
		if done == 2 {
			stop()
		}
	}
	if _, err := Run(ctx, s, begun); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want a cancelled context", err)
	}
	anew, resumed := onFake(out), onFake(out)
	anew.scorer, resumed.scorer, resumed.Resume = byHash{}, byHash{}, true
	refused := func(what string) {
		t.Helper()
		_, err := Run(t.Context(), s, resumed)
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
	c, err := model.ParseShape(tinyShape)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "llm")); err != nil {
		t.Fatal(err)
	}
	if err := model.Make(t.Context(), filepath.Join(dir, "llm"), c, 7, nil); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(dir, "llm", "model.safetensors") + " has changed since")
	mustRun(t, s, anew)
	mustRun(t, s, resumed)
	if err := os.RemoveAll(filepath.Join(dir, "collm")); err != nil {
		t.Fatal(err)
	}
	if err := router.Make(filepath.Join(dir, "collm"), router.PublishedShape(router.CoLLM, 64), 4); err != nil {
		t.Fatal(err)
	}
	refused(filepath.Join(dir, "collm", "router."))

	var e result.Environment
	text, err := os.ReadFile(filepath.Join(out, result.EnvironmentFile))
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	path := filepath.Join(dir, "slm", "model.safetensors")
	want, hashErr := model.SHA256(path)
	if err = errors.Join(err, hashErr); err != nil || e.Models[path] != want {
		t.Errorf("hash of %s is %q (error %v), want %q", path, e.Models[path], err, want)
	}
}
