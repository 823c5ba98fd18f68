package tokenizer

import (
	"strings"
	"testing"
)

// FuzzEncode: encoding never panics, ids are of the vocabulary, byte-level tokenizers without normaliser
// give the text back, and a stream gives what Decode gives.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{
		"", "a  b", "I'll \u017fay 123\r\n\t", "\xF0\x9F\x98", "e\u0301\u0323", "<|im_end|> <s>", "\u2581\u2581x",
		"@@ word<LR>  ", "\u1112\u1161\u11ab", "👩‍👩‍👧‍👦",
	} {
		f.Add(text, true)
	}
	var all []*Tokenizer
	exact := map[*Tokenizer]bool{}
	for _, name := range []string{
		"qwen", "nasty", "llama3", "smollm", "llama2", "metaspace", "split_contiguous_True",
	} {
		tokenizer := loaded(f, name)
		all = append(all, tokenizer)
		exact[tokenizer] = name == "llama3" || name == "smollm"
	}
	f.Fuzz(func(t *testing.T, text string, parseSpecial bool) {
		for _, tokenizer := range all {
			ids := tokenizer.Encode(text, Options{ParseSpecial: parseSpecial, AddSpecial: true})
			decoder := tokenizer.NewDecoder(false)
			var stream strings.Builder
			for _, id := range ids {
				if _, ok := tokenizer.Token(id); !ok {
					t.Fatalf("%q has id %d, which is no token", text, id)
				}
				stream.WriteString(decoder.Next(id))
			}
			stream.WriteString(decoder.Flush())
			if whole := tokenizer.Decode(ids, false); whole != stream.String() {
				t.Fatalf("%q: stream %q, Decode %q", text, stream.String(), whole)
			}
			if !exact[tokenizer] {
				continue
			}
			plain := tokenizer.Encode(text, Options{ParseSpecial: parseSpecial})
			if got := tokenizer.Decode(plain, false); got != validText(text) {
				t.Fatalf("%q comes back as %q", text, got)
			}
		}
	})
}

// FuzzParse: no file makes the reader or the tokenizer that it gives panic or run on.
func FuzzParse(f *testing.F) {
	for _, test := range refusals {
		f.Add([]byte(test.file), "ab a\u0301")
	}
	f.Add([]byte(file("decoder", `{"type":"Strip","content":"a","start":1,"stop":1}`)), "aab")
	f.Add([]byte(split(`(?i:a|b){1,3}[^\\s\\p{L}]*?x|.(?!b)`)), "aab")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tokenizer, err := Parse("tokenizer.json", data)
		if err != nil {
			return
		}
		if len(text) > 100 {
			text = text[:100]
		}
		ids := tokenizer.Encode(text, Options{ParseSpecial: true})
		tokenizer.Decode(ids, true)
	})
}
