package query

import (
	"fmt"
	"path/filepath"
	"strings"

	"tokenrouter/exec/model"
)

// The files of a router's folder, and those of the small model's that it belongs to.
const (
	metadataFile   = "router.json"
	weightsFile    = "router.safetensors"
	smallWeights   = "model.safetensors"
	smallTokenizer = "tokenizer.json"
)

// Open reads the router folder dir in full, for the small model in the folder smallDir. It refuses what
// doc.go does not describe: a key that is unknown or missing, a tensor, a shape, a type, NaN and infinite
// numbers. It refuses a small model of another width, with other weights or another tokenizer than the router
// was trained for, and architectures other than Qwen3. Errors name the file, what is there and what was
// wanted.
func Open(dir, smallDir string) (*Router, error) {
	path := filepath.Join(dir, metadataFile)
	m, err := readMetadata(path)
	if err != nil {
		return nil, err
	}
	small, err := model.Open(smallDir)
	if err != nil {
		return nil, fmt.Errorf("small model of router %s: %w", dir, err)
	}
	defer small.Close() // read only: nothing can be lost
	if err := m.belongs(small); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := model.OpenFile(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &Router{Dir: dir, Kind: m.kind, SmallModel: m.smallModel, LargeModel: m.largeModel,
		LargeModelHash: m.largeHash, Note: m.note, quantiles: m.quantiles, vocab: small.Config.Vocab,
		tokensMax: small.Config.Positions}
	t := &tensors{file: f, taken: map[string]bool{}}
	if r.score, err = m.scorer(t, small); err == nil {
		err = t.done()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return r, nil
}

// belongs refuses a small model that the router was not trained for.
func (m *metadata) belongs(small *model.Folder) error {
	c := &small.Config
	switch {
	case m.hidden != c.Hidden:
		return fmt.Errorf("hidden_size = %d, but %s has hidden states of %d numbers", m.hidden, small.Dir, c.Hidden)
	case m.embeddingLayers > c.Layers:
		return fmt.Errorf("embedding_layers = %d, but %s has %d layers", m.embeddingLayers, small.Dir, c.Layers)
	case m.kind == BERT && m.vocab != c.Vocab:
		return fmt.Errorf("vocab = %d, but %s has a vocabulary of %d", m.vocab, small.Dir, c.Vocab)
	}
	for _, of := range []struct{ key, file, want string }{
		{"tokenizer_hash", smallTokenizer, m.tokenizerHash}, {"small_model_hash", smallWeights, m.smallHash},
	} {
		path := filepath.Join(small.Dir, of.file)
		have, err := model.SHA256(path)
		if err != nil {
			return err
		}
		if have = hashPrefix + have; have != of.want {
			return fmt.Errorf("%s = %s, but %s has %s: the router was trained for another %s (its small model: %s)",
				of.key, short(of.want), path, short(have), of.file, m.smallModel)
		}
	}
	if m.kind == BERT {
		return nil
	}
	if err := computable(c); err != nil {
		return fmt.Errorf("small model %s: %w", small.Dir, err)
	}
	return nil
}

// short is a hash by its first digits.
func short(hash string) string { return strings.TrimPrefix(hash, hashPrefix)[:16] + "..." }
