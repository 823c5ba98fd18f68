package model

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Make writes a model of configuration c with random bf16 weights to the folder dir, which must be empty or
// not exist: config.json and model.safetensors; and where the vocabulary is that of ShapeTiny a tokenizer of
// bytes. The same configuration and seed give the same bytes on every machine. Activations stay finite;
// answers make no sense. Memory does not grow with the model. An end of ctx, or any error, leaves nothing
// behind. progress, unless nil, is told how many of all bytes are written.
func Make(ctx context.Context, dir string, c Config, seed uint64, progress func(done, total int64),
) (err error) {
	created, err := emptyFolder(dir)
	if err != nil {
		return err
	}
	m := maker{ctx: ctx, dir: dir, progress: progress, total: 2 * c.Parameters()}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.remove(created))
		}
	}()
	if err := m.write(weightsFile, func(w io.Writer) error { return m.weights(w, c, seed) }); err != nil {
		return err
	}
	if c.Vocab == byteVocab && len(c.EOS) > 0 {
		for _, f := range []struct{ name, text string }{
			{"tokenizer.json", byteTokenizer()}, {"tokenizer_config.json", byteTokenizerConfig},
		} {
			if err := m.write(f.name, written([]byte(f.text))); err != nil {
				return err
			}
		}
	}
	// Last: a folder without a config.json is no model.
	return m.write(configFile, written(c.JSON(BF16)))
}

// emptyFolder makes dir unless it is there, and refuses one that has anything in it. It reports whether it
// made it.
func emptyFolder(dir string) (created bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return true, os.MkdirAll(dir, 0o755)
	case err != nil:
		return false, err
	case len(entries) > 0:
		return false, notEmpty(dir, entries)
	}
	return false, nil
}

// maker writes the files of one folder.
type maker struct {
	ctx         context.Context
	dir         string
	progress    func(done, total int64)
	done, total int64
	files       []string // paths begun
}

func (m *maker) write(name string, content func(w io.Writer) error) error {
	path := filepath.Join(m.dir, name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	m.files = append(m.files, path)
	return errors.Join(content(file), file.Close())
}

func written(text []byte) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

func (m *maker) weights(w io.Writer, c Config, seed uint64) error {
	var tensors []Declared
	for _, e := range c.Expected() {
		tensors = append(tensors, Declared{e.Name, BF16, e.Shape, func(w io.Writer) error {
			return fill(w, &c, e, seed, m.made)
		}})
	}
	metadata := map[string]string{"format": "pt", "weights": "random", "seed": strconv.FormatUint(seed, 10)}
	return WriteFile(w, metadata, tensors)
}

func (m *maker) made(bytes int) error {
	m.done += int64(bytes)
	if m.progress != nil {
		m.progress(m.done, m.total)
	}
	return context.Cause(m.ctx)
}

// remove takes away what was begun.
func (m *maker) remove(folder bool) error {
	var errs []error
	for _, path := range m.files {
		errs = append(errs, os.Remove(path))
	}
	if folder {
		errs = append(errs, os.Remove(m.dir))
	}
	return errors.Join(errs...)
}
