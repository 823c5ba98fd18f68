package tokenizer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchText returns about a megabyte: English and code of this package, and the corpus.
func benchText(b *testing.B, kind string) string {
	b.Helper()
	if kind == "corpus" {
		return strings.Join(golden[[]string](b, "corpus.gz"), "\n")
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"qwen", "llama3", "smollm", "llama2"} {
		for _, kind := range []string{"code", "corpus"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				tokenizer, text := loaded(b, name), benchText(b, kind)
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					tokenizer.Encode(text, Options{})
				}
			})
		}
	}
}

func BenchmarkNext(b *testing.B) {
	tokenizer := loaded(b, "qwen")
	ids := tokenizer.Encode(benchText(b, "code"), Options{})
	decoder := tokenizer.NewDecoder(true)
	i := 0
	for b.Loop() {
		decoder.Next(ids[i%len(ids)])
		i++
	}
}
