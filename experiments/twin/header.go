package twin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/exec/model"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/sim/outcome/trace"
)

// Header is that of a trace of a plan's models: their names and hashes, and all signals that they leave. It
// reads all weights once, to hash them.
func Header(p *system.Plan) (trace.Header, error) {
	h := trace.Header{Pair: trace.Pair{Algorithm: p.Spec.Router.Algorithm}}
	for i, m := range p.Spec.Used() {
		hash, err := weights(&m)
		if err != nil {
			return h, fmt.Errorf("model %q: %w", m.Name, err)
		}
		h.Models = append(h.Models, m.Name)
		h.Pair.Weights = append(h.Pair.Weights, hash)
		signals := trace.Token | trace.LogProb | trace.TopProb | trace.Entropy | trace.EOS
		switch {
		case h.Pair.Algorithm == "me":
			signals |= trace.Draw
		case i == 0 && p.Spec.Router.Scored():
			signals |= trace.Score
		}
		h.Signals = append(h.Signals, signals)
		if h.Pair.Tokenizer == "" && m.Dir != "" {
			h.Pair.Tokenizer, err = files(m.Dir, "tokenizer.json")
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return h, fmt.Errorf("model %q: %w", m.Name, err)
			}
		}
	}
	if dir := p.Spec.Router.Dir; dir != "" {
		var err error
		if h.Pair.Router, err = files(dir, "*.safetensors"); err != nil {
			return h, fmt.Errorf("router: %w", err)
		}
	}
	return h, nil
}

// weights is a hash of what a model computes.
func weights(m *spec.SystemModel) (string, error) {
	of := fmt.Sprintf("int8 %t, group %d", m.Int8, m.Group)
	if m.Dir == "" {
		shape, err := json.Marshal(m.Shape)
		return text(of, string(shape), fmt.Sprint(m.Seed)), err
	}
	hash, err := files(m.Dir, "config.json", "*.safetensors")
	if !m.Int8 || err != nil {
		return hash, err
	}
	return text(of, hash), nil
}

// text is the hash of texts.
func text(texts ...string) string {
	hash := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(hash, "%d %s\n", len(t), t)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// files is the hash of the files of a folder whose names match the patterns, by their names' order. That of
// one file is its SHA-256.
func files(dir string, patterns ...string) (string, error) {
	var sums []string
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(escape(dir), pattern))
		if err == nil && len(paths) == 0 {
			err = fmt.Errorf("%s: no %s: %w", dir, pattern, os.ErrNotExist)
		}
		if err != nil {
			return "", err
		}
		for _, path := range paths {
			sum, err := model.SHA256(path)
			if err != nil {
				return "", err
			}
			sums = append(sums, sum)
		}
	}
	if len(sums) == 1 {
		return sums[0], nil
	}
	return text(sums...), nil
}

// escape takes the meaning of a pattern from the name of a folder.
func escape(dir string) string {
	var out []byte
	for i := range len(dir) {
		switch dir[i] {
		case '*', '?', '[', '\\':
			out = append(out, '\\')
		}
		out = append(out, dir[i])
	}
	return string(out)
}
