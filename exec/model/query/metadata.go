package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tokenrouter/exec/model"
)

// metadataBytesMax bounds the size of router.json.
const metadataBytesMax = 1 << 20

// quantileCount is how many quantiles of a task there are.
const quantileCount = 101

// sizeMax and layersMax bound the sizes that are taken: no such router comes near.
const sizeMax, layersMax = 1 << 20, 1 << 10

// metadata is what router.json says. Sizes that the kind has no use for are 0.
type metadata struct {
	kind                                Kind
	hidden                              int
	smallModel, largeModel, note        string
	smallHash, largeHash, tokenizerHash string
	quantiles                           map[string][]float64
	embeddingLayers                     int
	width, battles, rank                int
	layers, heads, intermediate, vocab  int
}

func readMetadata(path string) (metadata, error) {
	document, err := model.ReadFile(path, metadataBytesMax)
	if err != nil {
		return metadata{}, err
	}
	m, err := parseMetadata(document)
	if err != nil {
		return metadata{}, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func parseMetadata(document []byte) (metadata, error) {
	if err := model.CheckJSON(document); err != nil {
		return metadata{}, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(document, &values); err != nil || values == nil {
		return metadata{}, errors.New("is no JSON object")
	}
	var m metadata
	var err error
	if m.kind, err = kindOf(values["kind"]); err != nil {
		return metadata{}, err
	}
	delete(values, "kind")
	keys := m.keys()
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		raw, ok := values[key]
		if !ok {
			return metadata{}, fmt.Errorf("%s is missing", key)
		}
		if err := keys[key](raw); err != nil {
			return metadata{}, fmt.Errorf("%s = %w", key, err)
		}
		delete(values, key)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		return metadata{}, fmt.Errorf("key %q is unknown to a router of kind %v", key, m.kind)
	}
	if m.kind == BERT && (m.width%m.heads != 0 || m.width/m.heads%2 != 0) {
		return metadata{}, fmt.Errorf("width = %d for %d heads, want an even number for each", m.width, m.heads)
	}
	return m, nil
}

// kindOf reads a kind.
func kindOf(raw json.RawMessage) (Kind, error) {
	var name string
	if raw != nil && json.Unmarshal(raw, &name) == nil {
		for k := MF; k <= Causal; k++ {
			if name == k.String() {
				return k, nil
			}
		}
	}
	return 0, fmt.Errorf("kind = %s, want one of %q, %q, %q, %q", shown(raw), MF, SW, BERT, Causal)
}

// keys has a reader for every key but kind that a router of its kind must have.
func (m *metadata) keys() map[string]func(json.RawMessage) error {
	keys := map[string]func(json.RawMessage) error{
		"hidden_size": size(&m.hidden, sizeMax),
		"small_model": text(&m.smallModel), "large_model": text(&m.largeModel), "note": text(&m.note),
		"small_model_hash": hash(&m.smallHash), "large_model_hash": hash(&m.largeHash),
		"tokenizer_hash": hash(&m.tokenizerHash),
		"quantiles":      m.readQuantiles,
	}
	switch m.kind {
	case MF:
		keys["embedding_layers"] = size(&m.embeddingLayers, layersMax)
		keys["width"] = size(&m.width, sizeMax)
	case SW:
		keys["embedding_layers"] = size(&m.embeddingLayers, layersMax)
		keys["battles"] = size(&m.battles, sizeMax)
	case BERT:
		keys["layers"] = size(&m.layers, layersMax)
		keys["width"] = size(&m.width, sizeMax)
		keys["heads"] = size(&m.heads, sizeMax)
		keys["intermediate"] = size(&m.intermediate, sizeMax)
		keys["vocab"] = size(&m.vocab, sizeMax)
	case Causal:
		keys["rank"] = size(&m.rank, sizeMax)
	default:
		panic(fmt.Sprintf("query: no keys of %v", m.kind))
	}
	return keys
}

func size(to *int, most int) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if err := json.Unmarshal(raw, to); err != nil || *to < 1 || *to > most {
			return fmt.Errorf("%s, want a whole number from 1 to %d", shown(raw), most)
		}
		return nil
	}
}

func text(to *string) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		if json.Unmarshal(raw, to) != nil || string(raw) == "null" {
			return fmt.Errorf("%s, want text", shown(raw))
		}
		return nil
	}
}

// hashPrefix begins every hash.
const hashPrefix = "sha256:"

func hash(to *string) func(json.RawMessage) error {
	return func(raw json.RawMessage) error {
		digits, ok := "", json.Unmarshal(raw, to) == nil
		if ok {
			digits, ok = strings.CutPrefix(*to, hashPrefix)
		}
		if !ok || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
			return fmt.Errorf("%s, want %q and 64 hexadecimal digits in lower case", shown(raw), hashPrefix)
		}
		return nil
	}
}

func (m *metadata) readQuantiles(raw json.RawMessage) error {
	var given map[string][]*float64
	if err := json.Unmarshal(raw, &given); err != nil || len(given) == 0 {
		return fmt.Errorf("%s, want an object with a list of numbers a task", shown(raw))
	}
	m.quantiles = map[string][]float64{}
	for _, task := range slices.Sorted(maps.Keys(given)) {
		list := make([]float64, len(given[task]))
		for i, x := range given[task] {
			if x == nil {
				return fmt.Errorf("null at place %d of task %q, want a number", i, task)
			}
			list[i] = *x
		}
		m.quantiles[task] = list
		switch {
		case len(list) != quantileCount:
			return fmt.Errorf("%d numbers of task %q, want %d", len(list), task, quantileCount)
		case !slices.IsSorted(list) || list[0] < 0 || list[len(list)-1] > 1:
			return fmt.Errorf("numbers of task %q from %v to %v, want ascending ones from 0 to 1", task, list[0],
				list[len(list)-1])
		}
	}
	return nil
}

// shown is a JSON value for an error.
func shown(raw json.RawMessage) string {
	switch {
	case raw == nil:
		return "null"
	case len(raw) > 40:
		return strings.ToValidUTF8(string(raw[:40]), "") + "..."
	}
	return string(raw)
}
