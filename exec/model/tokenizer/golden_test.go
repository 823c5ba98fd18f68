package tokenizer

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unzipped returns the content of testdata/name.
func unzipped(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func golden[T any](t testing.TB, name string) (content T) {
	t.Helper()
	if err := json.Unmarshal(unzipped(t, name), &content); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return content
}

// loaded returns the tokenizer of testdata/NAME.json.gz.
func loaded(t testing.TB, name string) *Tokenizer {
	t.Helper()
	tokenizer, err := Parse(name, unzipped(t, name+".json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// library is what the Hugging Face library makes of the corpus; see gold in testdata/make.py.
type library struct {
	IDs     [][]int32           `json:"ids"`
	Added   [][]int32           `json:"added"`
	Every   int                 `json:"every"`
	Size    int                 `json:"size"`
	Literal map[int][]int32     `json:"literal"`
	Decoded map[int]string      `json:"decoded"`
	Skipped map[int]string      `json:"skipped"`
	Chosen  [][]json.RawMessage `json:"random"`
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:10]
}

// names returns the tokenizers of testdata.
func names(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json.gz"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d tokenizers in testdata (%v), want 20 or more", len(files), err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".json.gz")
	}
	return files
}

// TestLibrary compares ids and texts with those of the library (tokenizers 0.23.3).
func TestLibrary(t *testing.T) {
	corpus := golden[[]string](t, "corpus.gz")
	for _, name := range names(t) {
		t.Run(name, func(t *testing.T) {
			tokenizer, want := loaded(t, name), golden[library](t, name+".gold.gz")
			var texts []string
			for i := 0; i < len(corpus); i += want.Every {
				texts = append(texts, corpus[i])
			}
			if len(want.IDs) != len(texts) || want.Size != tokenizer.VocabSize() {
				t.Fatalf("%d texts and %d tokens, want %d and %d", len(texts), tokenizer.VocabSize(),
					len(want.IDs), want.Size)
			}
			for i, text := range texts {
				compareText(t, tokenizer, want, i, text)
			}
			for _, chosen := range want.Chosen {
				compareRandom(t, tokenizer, chosen)
			}
		})
	}
}

func compareText(t *testing.T, tokenizer *Tokenizer, want library, i int, text string) {
	t.Helper()
	got := tokenizer.Encode(text, Options{ParseSpecial: true})
	if !slices.Equal(got, want.IDs[i]) {
		t.Errorf("text %d %.200q:\n got %v\nwant %v", i, text, got, want.IDs[i])
		return
	}
	literal, ok := want.Literal[i]
	if !ok {
		literal = want.IDs[i]
	}
	if got := tokenizer.Encode(text, Options{}); !slices.Equal(got, literal) {
		t.Errorf("text %d %.200q, special tokens as text:\n got %v\nwant %v", i, text, got, literal)
	}
	if i < len(want.Added) {
		got := tokenizer.Encode(text, Options{ParseSpecial: true, AddSpecial: true})
		if !slices.Equal(got, want.Added[i]) {
			t.Errorf("text %d %.200q, with template:\n got %v\nwant %v", i, text, got, want.Added[i])
		}
	}
	plain := short(text)
	if hash, ok := want.Decoded[i]; ok {
		plain = hash
	}
	if decoded := tokenizer.Decode(want.IDs[i], false); short(decoded) != plain {
		t.Errorf("text %d %.200q: decodes to %.200q, want hash %s", i, text, decoded, plain)
	}
	skipped, ok := want.Skipped[i]
	if !ok {
		skipped = plain
	}
	if decoded := tokenizer.Decode(want.IDs[i], true); short(decoded) != skipped {
		t.Errorf("text %d %.200q: decodes to %.200q without special tokens, want hash %s",
			i, text, decoded, skipped)
	}
}

func compareRandom(t *testing.T, tokenizer *Tokenizer, chosen []json.RawMessage) {
	t.Helper()
	var ids []int32
	var texts [2]string
	for i, target := range []any{&ids, &texts[0], &texts[1]} {
		if err := json.Unmarshal(chosen[i], target); err != nil {
			t.Fatal(err)
		}
	}
	for i, skip := range []bool{false, true} {
		if got := tokenizer.Decode(ids, skip); got != texts[i] {
			t.Errorf("ids %v, skipSpecial %v: %q, want %q", ids, skip, got, texts[i])
		}
	}
}
