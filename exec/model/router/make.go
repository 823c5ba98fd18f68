package router

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tokenrouter/exec/model"
)

// Make writes a router of a shape with random float32 weights to the folder dir, which it makes if needed and
// which must have no router. For hidden states and embeddings whose numbers are about 1 in size, scores
// spread around the threshold 0.5 that it writes, most of them between 0.1 and 0.9; they mean nothing. The
// same shape and seed give the same bytes on every machine.
func Make(dir string, s Shape, seed uint64) error {
	if s.Algorithm < R2R || s.Algorithm > CoLLM {
		return fmt.Errorf("algorithm %d, want %v, %v or %v", s.Algorithm, R2R, CITER, CoLLM)
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	weights, metadata := filepath.Join(dir, weightsFile), filepath.Join(dir, metadataFile)
	if err := create(weights, func(w io.Writer) error { return s.random(w, seed) }); err != nil {
		return err
	}
	// Last: a folder without a router.json is no router.
	err := create(metadata, func(w io.Writer) error {
		_, err := w.Write(s.written(0.5, "random weights of seed "+strconv.FormatUint(seed, 10)))
		return err
	})
	if err != nil {
		return errors.Join(err, os.Remove(weights))
	}
	return nil
}

// create writes a file that is not there yet, whole or not at all.
func create(path string, content func(w io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	if err := errors.Join(content(buffered), buffered.Flush(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (s Shape) random(w io.Writer, seed uint64) error {
	var tensors []model.Declared
	for _, p := range s.table() {
		tensors = append(tensors, model.Declared{Name: p.name, DType: model.F32, Shape: p.shape,
			Fill: func(w io.Writer) error { return p.fill(w, seed) }})
	}
	return model.WriteFile(w, map[string]string{"format": "pt", "weights": "random"}, tensors)
}

// fill writes numbers that are a function of seed, name and place: uniform ones about a mean.
func (p published) fill(w io.Writer, seed uint64) error {
	name := fnv.New64a()
	name.Write([]byte(p.name)) // never fails
	random := rand.New(rand.NewPCG(seed, name.Sum64()))
	mean, deviation := p.bell()
	count := 1
	for _, n := range p.shape {
		count *= int(n)
	}
	var number [4]byte
	for range count {
		// The conversion keeps the product from being fused with the sum, which not every machine does.
		x := mean + float64((2*random.Float64()-1)*math.Sqrt(3)*deviation)
		binary.LittleEndian.PutUint32(number[:], math.Float32bits(float32(x)))
		if _, err := w.Write(number[:]); err != nil {
			return err
		}
	}
	return nil
}

// bell says how the numbers of a tensor are spread. Matrices keep the size of what they are given, but for
// the one that reads logits, which are large and all alike, and those that write to the residual stream. What
// a nonlinearity makes is not 0 on average: little of it, so that scores do not end up on one side.
func (p published) bell() (mean, deviation float64) {
	norm := strings.HasSuffix(p.name, "layer_norm.weight") || p.name == "backbone.output_layer.0.weight"
	inputs := 1.0
	if len(p.shape) == 2 {
		inputs = float64(p.shape[1])
	}
	switch {
	case norm || p.name == "mlp.1.weight" || p.name == "mlp.1.running_var":
		return 1, 0.1
	case p.name == "mlp.1.bias":
		return -1, 0.1
	case p.part == Top:
		return 0, 0.03 / math.Sqrt(inputs)
	case p.part == Second:
		return 0, 0.4 / math.Sqrt(inputs)
	case p.part == Output:
		return 0, 1.5 / math.Sqrt(float64(p.shape[len(p.shape)-1]))
	case p.name == "linear.weight":
		return 0, 5 / math.Sqrt(inputs)
	case len(p.shape) == 2:
		return 0, 1 / math.Sqrt(inputs)
	}
	return 0, 0.05
}
