package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"tokenrouter/exec/model"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// hashModels takes the hashes of the files of all models and routers that the spec's systems read. A spec
// names their folders only, so its own hash does not tell one training from the next.
func (r *runner) hashModels(o *Options) error {
	r.models = make(map[string]string)
	systems := []*spec.System{r.spec.Hardware.System}
	for i := range r.spec.Points {
		systems = append(systems, r.spec.Points[i].System)
	}
	var dirs []string
	for _, y := range systems {
		if y == nil {
			continue
		}
		dirs = append(dirs, y.Router.Dir)
		for _, m := range y.Used() {
			dirs = append(dirs, m.Dir)
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if dir == "" { // random weights, or no router
			continue
		}
		if err := r.hashFolder(dir, o); err != nil {
			return err
		}
	}
	return nil
}

// hashFolder takes those of a folder. What else is wrong with it is said when it is opened.
func (r *runner) hashFolder(dir string, o *Options) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if end := filepath.Ext(path); end != ".json" && end != ".safetensors" && end != ".jinja" {
			continue
		}
		const long = 1 << 30 // bytes, a second or more
		if info, err := e.Info(); err == nil && info.Size() >= long && o.Doing != nil {
			o.Doing(fmt.Sprintf("taking the hash of %s, %.1f GB", path, float64(info.Size())/1e9))
		}
		hash, err := model.SHA256(path)
		if errors.Is(err, model.ErrNotRegular) {
			continue
		}
		if err != nil {
			return err
		}
		r.models[path] = hash
	}
	return nil
}

// sameModels refuses to go on with results of files that have changed since. Names do not count: folders may
// have moved.
func (r *runner) sameModels() error {
	path := filepath.Join(r.dir, result.EnvironmentFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var old result.Environment
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	now := slices.Collect(maps.Values(r.models))
	for _, path := range slices.Sorted(maps.Keys(old.Models)) {
		if !slices.Contains(now, old.Models[path]) {
			return fmt.Errorf("can not resume %s: %s has changed since, want that of SHA-256 %.16s..., or a run"+
				" without --resume", r.dir, path, old.Models[path])
		}
	}
	return nil
}
