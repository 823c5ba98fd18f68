package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// The files of a folder.
const (
	configFile     = "config.json"
	generationFile = "generation_config.json"
	weightsFile    = "model.safetensors"
	indexFile      = "model.safetensors.index.json"
)

// jsonBytesMax bounds the size of config files and shard indexes.
const jsonBytesMax = HeaderBytesMax

// readJSON reads a file that may be at most jsonBytesMax long.
func readJSON(path string) ([]byte, error) { return ReadFile(path, jsonBytesMax) }

// weights are the mapped files of a folder.
type weights struct {
	files    []*File           // by name
	from     map[string]string // the file's name for each tensor; nil: a single file
	warnings []string
}

// openWeights maps model.safetensors.index.json's shards, or model.safetensors where there is no index.
func openWeights(dir string) (*weights, error) {
	index, err := readJSON(filepath.Join(dir, indexFile))
	if errors.Is(err, os.ErrNotExist) {
		f, err := OpenFile(filepath.Join(dir, weightsFile))
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s has neither %s nor %s", dir, weightsFile, indexFile)
		}
		if err != nil {
			return nil, err
		}
		return &weights{files: []*File{f}}, nil
	}
	if err != nil {
		return nil, err
	}
	w := &weights{}
	if w.from, err = parseIndex(index); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, indexFile), err)
	}
	if err := w.openShards(dir); err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// parseIndex reads weight_map: the name of the file for each tensor. A name must be one of the same folder.
func parseIndex(index []byte) (map[string]string, error) {
	r, err := readObject(index)
	if err != nil {
		return nil, err
	}
	var from map[string]string
	if err := json.Unmarshal(r.values["weight_map"], &from); err != nil || len(from) == 0 {
		return nil, errors.New("weight_map is missing, empty or no object of strings")
	}
	for _, tensor := range sortedKeys(from) {
		name := from[tensor]
		if !strings.HasSuffix(name, ".safetensors") || strings.ContainsAny(name, `/\:`) ||
			strings.ContainsFunc(name, unicode.IsControl) {
			return nil, fmt.Errorf("tensor %q is in %q, want the name of a .safetensors file in the same folder",
				tensor, name)
		}
	}
	return from, nil
}

func (w *weights) openShards(dir string) error {
	var shards []string
	for _, name := range w.from {
		shards = append(shards, name)
	}
	slices.Sort(shards)
	byName := map[string]*File{}
	for _, name := range slices.Compact(shards) {
		f, err := OpenFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("shard of %q: %w", w.firstOf(name), err)
		}
		w.files = append(w.files, f)
		byName[name] = f
		for _, t := range f.Tensors() {
			if w.from[t.Name] != name {
				w.warnings = append(w.warnings, fmt.Sprintf("%s: tensor %q is left out: the index does not give it "+
					"to this file", f.Path, t.Name))
			}
		}
	}
	for _, tensor := range sortedKeys(w.from) {
		f := byName[w.from[tensor]]
		if _, ok := f.Lookup(tensor); !ok {
			return fmt.Errorf("%s: has no tensor %q, which the index gives to it", f.Path, tensor)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, weightsFile)); err == nil && byName[weightsFile] == nil {
		w.warnings = append(w.warnings, fmt.Sprintf("%s is left out: the index does not name it",
			filepath.Join(dir, weightsFile)))
	}
	return nil
}

// firstOf returns the first tensor by name that the index gives to a file.
func (w *weights) firstOf(file string) string {
	for _, tensor := range sortedKeys(w.from) {
		if w.from[tensor] == file {
			return tensor
		}
	}
	return ""
}

// all returns every tensor that the folder has, by file and place.
func (w *weights) all() []Tensor {
	var all []Tensor
	for _, f := range w.files {
		for _, t := range f.Tensors() {
			if w.from == nil || w.from[t.Name] == filepath.Base(f.Path) {
				all = append(all, t)
			}
		}
	}
	return all
}

func (w *weights) close() error {
	var errs []error
	for _, f := range w.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
