package checkpoint

import (
	"archive/zip"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
)

// class is the one that router folders describe: the others of the public code read other inputs.
const class = "HiddenStatesTokenLMHeadLogitsClassifier"

// embeddings is the small model's own table, of which some checkpoints have a copy.
const embeddings = "token_embeddings.weight"

// Convert makes a router folder of the R2R checkpoint at path, and opens it. dir must not exist or be empty;
// it is there in full after Convert, or as before if that fails. The threshold is the checkpoint's, if it has
// one; R2R's own server does not look at that and takes 0.5. Memory: the router, twice.
//
// It returns a *FileError for a file that is broken, hostile or no R2R router, model.ErrNotRegular, and
// model.ErrNotEmpty.
func Convert(path, dir string) (*router.Router, error) {
	opened, size, err := model.OpenRegular(path, "a checkpoint")
	if err != nil {
		return nil, err
	}
	defer opened.Close() // read only: nothing can be lost
	f, err := read(opened, size)
	if err != nil {
		return nil, &FileError{path, err}
	}
	c, err := f.checkpoint()
	if err != nil {
		return nil, &FileError{path, err}
	}
	err = model.NewFolder(dir, func(partial string) error {
		if err := c.write(partial, filepath.Base(path)); err != nil {
			if errors.Is(err, zip.ErrChecksum) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return &FileError{path, err}
			}
			return err
		}
		// What a router must have, and that its numbers are finite, is known to its reader.
		if _, err := router.Open(partial); err != nil {
			return &FileError{path, fmt.Errorf("makes no router: %w", inner(err))}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return router.Open(dir)
}

// inner leaves out the path of a folder that will not be there.
func inner(err error) error {
	if below := errors.Unwrap(err); below != nil {
		return below
	}
	return err
}

// checkpoint is what R2R's save_model writes, checked as far as it is a dictionary of tensors.
type checkpoint struct {
	*container
	names     []string // of tensors, in their order
	tensors   map[string]*tensor
	threshold any // float64, or nil: none
	small     string
	hidden    int64
}

// checkpoint reads the dictionary.
func (f *file) checkpoint() (*checkpoint, error) {
	root, ok := f.root.(*dict)
	if !ok {
		return nil, fmt.Errorf("is %s, want the dictionary that R2R's save_model writes", shown(f.root))
	}
	if kind := root.values["model_type"]; kind != class {
		return nil, fmt.Errorf("model_type is %s, want %q", shown(kind), class)
	}
	for _, key := range root.keys {
		switch key {
		case "model_type", "init_args", "common_args", "model_specific_args", "state_dict":
		default:
			return nil, fmt.Errorf("key %s is unknown", shown(key))
		}
	}
	c := &checkpoint{container: f.container, tensors: map[string]*tensor{}}
	if err := c.readArguments(root); err != nil {
		return nil, err
	}
	return c, c.readState(root)
}

// readArguments reads how the network was made, as far as that changes its scores, and the threshold.
func (c *checkpoint) readArguments(root *dict) error {
	made, isDict := root.values["init_args"].(*dict)
	common, alsoDict := root.values["common_args"].(*dict)
	if !isDict || !alsoDict {
		return fmt.Errorf("init_args is %s and common_args %s, want dictionaries", shown(root.values["init_args"]),
			shown(root.values["common_args"]))
	}
	for _, option := range []string{"normalize_input", "use_position_embedding"} {
		if value, given := made.values[option]; given && value != false {
			return fmt.Errorf("init_args.%s is %s, want False: no device computes that", option, shown(value))
		}
	}
	c.small, _ = made.values["pretrained_model_name"].(string)
	c.threshold = common.values["threshold"]
	threshold, isNumber := c.threshold.(float64)
	if c.threshold != nil && (!isNumber || math.IsNaN(threshold) || math.IsInf(threshold, 0)) {
		return fmt.Errorf("common_args.threshold is %s, want a finite number or None", shown(c.threshold))
	}
	return nil
}

func (c *checkpoint) readState(root *dict) error {
	state, ok := root.values["state_dict"].(*dict)
	if !ok {
		return fmt.Errorf("state_dict is %s, want a dictionary", shown(root.values["state_dict"]))
	}
	room := c.size
	for _, key := range state.keys {
		t, ok := state.values[key].(*tensor)
		if !ok {
			return fmt.Errorf("state_dict[%s] is %s, want a tensor", shown(key), shown(state.values[key]))
		}
		if key == embeddings {
			continue
		}
		// Tensors may share a storage: many names could make much of few bytes.
		if room -= t.elements * t.from.dtype.Bytes(); room < 0 {
			return fmt.Errorf("tensors up to %s take more bytes than the file's %d", shown(key), c.size)
		}
		c.names, c.tensors[key] = append(c.names, key), t
	}
	projection := c.tensors["logits_projection.weight"]
	if projection == nil || len(projection.shape) != 2 {
		return errors.New("state_dict has no matrix logits_projection.weight, as R2R's routers have")
	}
	c.hidden = projection.shape[0]
	return nil
}

// write writes the folder; from is the file's name.
func (c *checkpoint) write(dir, from string) error {
	slices.Sort(c.names)
	var tensors []model.Declared
	for _, name := range c.names {
		t := c.tensors[name]
		tensors = append(tensors, model.Declared{Name: name, DType: t.from.dtype, Shape: t.shape,
			Fill: func(w io.Writer) error { return c.container.write(w, t) }})
	}
	weights, err := os.Create(filepath.Join(dir, "router.safetensors"))
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(weights)
	err = model.WriteFile(buffered, map[string]string{"format": "pt"}, tensors)
	if err := errors.Join(err, buffered.Flush(), weights.Close()); err != nil {
		return err
	}
	metadata, err := json.MarshalIndent(struct {
		Algorithm string `json:"algorithm"`
		Hidden    int64  `json:"hidden_size"`
		Threshold any    `json:"threshold,omitempty"`
		Small     string `json:"small_model,omitempty"`
		Note      string `json:"note"`
	}{"r2r", c.hidden, c.threshold, c.small, "made of the R2R checkpoint " + from}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "router.json"), append(metadata, '\n'), 0o644); err != nil {
		return err
	}
	return os.Chmod(dir, 0o755) // a temporary folder is its owner's only
}
