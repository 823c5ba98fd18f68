package system

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"tokenrouter/exec/model/tokenizer"
)

// vocabulary is what the models must have in common.
type vocabulary struct {
	tokenizer *tokenizer.Tokenizer // nil: no model has one
	// samplable is the end of the ids that all models know and that stand for something: rows of an
	// embedding beyond it are padding.
	samplable int
}

// vocabularyOf reads the tokenizers of all models and refuses those that differ: models exchange ids.
func vocabularyOf(models []*opened) (vocabulary, error) {
	v := vocabulary{samplable: models[0].config.Vocab}
	for _, m := range models {
		v.samplable = min(v.samplable, m.config.Vocab)
	}
	var owner *opened
	for _, m := range models {
		if m.spec.Dir == "" {
			continue
		}
		path := filepath.Join(m.spec.Dir, "tokenizer.json")
		t, err := tokenizer.Load(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return v, err
		}
		if v.tokenizer == nil {
			v.tokenizer, owner = t, m
			continue
		}
		if err := differ(v.tokenizer, t); err != nil {
			return v, fmt.Errorf("models %q and %q have different vocabularies: %w", owner.spec.Name, m.spec.Name,
				err)
		}
	}
	if v.tokenizer == nil {
		return v, nil
	}
	end := v.tokenizer.End()
	for _, m := range models {
		if m.config.Vocab < end {
			return v, fmt.Errorf("model %q knows %d tokens, and the tokenizer of %q has ids up to %d",
				m.spec.Name, m.config.Vocab, owner.spec.Name, end-1)
		}
	}
	v.samplable = end
	return v, nil
}

// differ says how two tokenizers differ in what ids stand for; nil if they do not.
func differ(a, b *tokenizer.Tokenizer) error {
	for id := range int32(max(a.End(), b.End())) {
		x, y := shown(a, id), shown(b, id)
		if x != y {
			return fmt.Errorf("token %d is %s and %s", id, x, y)
		}
		if a.IsSpecial(id) != b.IsSpecial(id) {
			return fmt.Errorf("token %d (%s) is special in one of them only", id, x)
		}
	}
	return nil
}

// shown is what an id stands for, as errors have it.
func shown(t *tokenizer.Tokenizer, id int32) string {
	if text, ok := t.Token(id); ok {
		return strconv.Quote(text)
	}
	return "none"
}
