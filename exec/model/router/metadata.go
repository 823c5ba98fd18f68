package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tokenrouter/exec/model"
)

// metadataBytesMax bounds the size of router.json.
const metadataBytesMax = 1 << 20

// texts are the keys of router.json with free text.
var texts = []string{"small_model", "large_model", "small_model_hash", "large_model_hash", "note"}

// metadata is what router.json says.
type metadata struct {
	shape        Shape // sizes that are absent are 0
	threshold    float64
	hasThreshold bool
	text         map[string]string
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
	values, err := flatObject(document)
	if err != nil {
		return metadata{}, err
	}
	m := metadata{text: map[string]string{}}
	name, _ := values["algorithm"].(string)
	for _, a := range []Algorithm{R2R, CITER, CoLLM} {
		if name == a.String() {
			m.shape.Algorithm = a
		}
	}
	if m.shape.Algorithm == 0 {
		return m, fmt.Errorf("algorithm = %s, want one of %q, %q, %q", shown(values["algorithm"]), R2R, CITER,
			CoLLM)
	}
	if values["hidden_size"] == nil {
		return m, errors.New("hidden_size is missing")
	}
	sizes := map[string]*int{"hidden_size": &m.shape.Hidden, "top_logits": &m.shape.Top,
		"width": &m.shape.Width, "blocks": &m.shape.Blocks, "expanded_width": &m.shape.Expanded}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		switch size := sizes[key]; {
		case key == "algorithm":
		case size != nil:
			err = parseSize(value, size)
		case key == "threshold":
			m.hasThreshold = true
			m.threshold, err = parseThreshold(value)
		case slices.Contains(texts, key):
			text, ok := value.(string)
			if !ok {
				err = fmt.Errorf("%s, want text", shown(value))
			}
			m.text[key] = text
		default:
			return m, fmt.Errorf("key %q is unknown", key)
		}
		if err != nil {
			return m, fmt.Errorf("%s = %w", key, err)
		}
	}
	return m, nil
}

func parseSize(value any, size *int) error {
	number, _ := value.(json.Number)
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 1 || n > sizeMax {
		return fmt.Errorf("%s, want a whole number from 1 to %d", shown(value), sizeMax)
	}
	*size = n
	return nil
}

func parseThreshold(value any) (float64, error) {
	number, _ := value.(json.Number)
	x, err := number.Float64()
	if err != nil || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%s, want a finite number", shown(value))
	}
	return x, nil
}

// flatObject reads an object of strings, numbers, truth values and nulls. It refuses what readers of JSON
// disagree on: a key given twice, text that is not UTF-8, more than one document.
func flatObject(document []byte) (map[string]any, error) {
	if !utf8.Valid(document) {
		return nil, errors.New("text is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	token, err := decoder.Token()
	if err != nil || token != json.Delim('{') {
		return nil, errors.New("is no JSON object")
	}
	values := map[string]any{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("is not JSON at byte %d: %w", decoder.InputOffset(), err)
		}
		value, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("is not JSON at byte %d: %w", decoder.InputOffset(), err)
		}
		name := key.(string) // the decoder takes nothing else for a key
		if _, nested := value.(json.Delim); nested {
			return nil, fmt.Errorf("%s is a list or an object, want text or a number", name)
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("key %q is given twice", name)
		}
		values[name] = value
	}
	if _, err := decoder.Token(); err != nil { // the brace
		return nil, fmt.Errorf("is not JSON at byte %d: %w", decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something after the JSON object")
	}
	return values, nil
}

// shown is a value of flatObject for an error.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		if len(v) > 40 {
			v = strings.ToValidUTF8(v[:40], "") + "..."
		}
		return strconv.Quote(v)
	}
	return fmt.Sprint(value)
}

// written is router.json for a shape.
func (s Shape) written(threshold float64, note string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"algorithm\": %q,\n  \"hidden_size\": %d,\n", s.Algorithm, s.Hidden)
	for _, size := range []struct {
		key   string
		value int
	}{{"top_logits", s.Top}, {"width", s.Width}, {"blocks", s.Blocks}, {"expanded_width", s.Expanded}} {
		if size.value > 0 {
			fmt.Fprintf(&b, "  %q: %d,\n", size.key, size.value)
		}
	}
	fmt.Fprintf(&b, "  \"threshold\": %v,\n  \"note\": %q\n}\n", threshold, note)
	return b.Bytes()
}
