package gguf

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"tokenrouter/exec/model"
)

// Options says how to convert.
type Options struct {
	DType model.DType           // BF16 or F32
	Show  func(done, total int) // called after each tensor; nil: nobody looks
}

// Convert writes the model of a GGUF file as a Hugging Face folder: config.json, generation_config.json,
// tokenizer.json, tokenizer_config.json and model.safetensors. dir must not exist or be empty; it is there
// in full after Convert, or as before if that fails or ctx ends. The same file gives the same bytes. What the
// model asks for and the folder can not say is refused by name. Memory: metadata and a few rows.
//
// It returns a *FileError for a file that is not supported or has a number that is not finite, and
// model.ErrNotEmpty.
func Convert(ctx context.Context, f *File, dir string, options Options) error {
	if options.DType != model.BF16 && options.DType != model.F32 {
		panic(fmt.Sprintf("gguf: weights as %q", string(options.DType)))
	}
	c := &conversion{f: f, options: options}
	if err := c.plan(); err != nil {
		return &FileError{f.Path, err}
	}
	return model.NewFolder(dir, func(partial string) error { return c.write(ctx, partial) })
}

type conversion struct {
	f       *File
	options Options
	shape   shape
	words   vocabulary
	sources []source
}

// plan reads and checks all but the weights.
func (c *conversion) plan() error {
	var err error
	if c.shape, err = readShape(c.f); err != nil {
		return err
	}
	if c.sources, err = c.shape.sources(c.f); err != nil {
		return err
	}
	c.words, err = readVocabulary(c.f, c.shape.vocab)
	return err
}

func (c *conversion) write(ctx context.Context, dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content object
	}{
		{"config.json", configJSON(&c.shape, &c.words, c.options.DType)},
		{"generation_config.json", generationJSON(&c.words)},
		{"tokenizer.json", tokenizerJSON(&c.words)},
		{"tokenizer_config.json", tokenizerConfigJSON(&c.shape, &c.words)},
	} {
		text, err := document(file.content)
		if err != nil {
			return fmt.Errorf("%s: %w", file.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, file.name), text, 0o644); err != nil {
			return err
		}
	}
	return c.writeWeights(ctx, filepath.Join(dir, "model.safetensors"))
}

func (c *conversion) writeWeights(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	tensors := make([]model.Declared, len(c.sources))
	for i, s := range c.sources {
		tensors[i] = model.Declared{Name: s.name, DType: c.options.DType, Shape: s.shape,
			Fill: func(w io.Writer) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := c.fill(w, s); err != nil {
					return err
				}
				if c.options.Show != nil {
					c.options.Show(i+1, len(c.sources))
				}
				return nil
			}}
	}
	err = model.WriteFile(buffered, map[string]string{"format": "pt"}, tensors)
	if err == nil {
		err = buffered.Flush()
	}
	return errors.Join(err, file.Close())
}

// fill writes one tensor a row, or for a vector a number, at a time in the folder's order.
func (c *conversion) fill(w io.Writer, s source) error {
	if len(s.shape) == 1 {
		return c.fillVector(w, s)
	}
	row := make([]float32, s.from.Columns())
	raw := make([]byte, int64(len(row))*c.options.DType.Bytes())
	for i := range s.from.Rows() {
		from := rowOf(i, s.from.Rows(), s.heads)
		if err := c.f.ReadRows(row, s.from, from); err != nil {
			return err
		}
		if err := c.encode(raw, row); err != nil {
			return &FileError{c.f.Path, fmt.Errorf("tensor %s, row %d: %w", s.from.Name, from, err)}
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return nil
}

func (c *conversion) fillVector(w io.Writer, s source) error {
	numbers := make([]float32, s.from.Columns())
	if err := c.f.ReadRows(numbers, s.from, 0); err != nil {
		return err
	}
	ordered := make([]float32, len(numbers))
	for i := range ordered {
		ordered[i] = numbers[rowOf(int64(i), int64(len(numbers)), s.heads)]
	}
	raw := make([]byte, int64(len(ordered))*c.options.DType.Bytes())
	if err := c.encode(raw, ordered); err != nil {
		return &FileError{c.f.Path, fmt.Errorf("tensor %s: %w", s.from.Name, err)}
	}
	_, err := w.Write(raw)
	return err
}

// encode writes numbers into raw, little-endian. It fails for one that is not finite, also once rounded.
func (c *conversion) encode(raw []byte, numbers []float32) error {
	for i, x := range numbers {
		bits := math.Float32bits(x)
		if c.options.DType == model.BF16 {
			rounded := model.ToBF16(x)
			binary.LittleEndian.PutUint16(raw[2*i:], rounded)
			bits = uint32(rounded) << 16
		} else {
			binary.LittleEndian.PutUint32(raw[4*i:], bits)
		}
		if bits&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("number %d is %g, want a finite one within %s", i, x, c.options.DType)
		}
	}
	return nil
}
