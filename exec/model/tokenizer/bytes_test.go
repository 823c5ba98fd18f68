package tokenizer

import (
	"bytes"
	"strings"
	"testing"
)

// TestBytes: the bytes of tokens make the text that they decode to, also where a token is half a character;
// what a decoder cuts at the beginning of a text is there.
func TestBytes(t *testing.T) {
	for _, name := range []string{"qwen", "llama3", "gpt2", "smollm", "llama2"} {
		tokenizer := loaded(t, name)
		for _, text := range []string{"a b  c", "Zürich 3.14\n", "\U0001f600 \u4e2d\u6587", "x\U00013080\u0e33"} {
			var all []byte
			ids := tokenizer.Encode(text, Options{})
			for _, id := range ids {
				all = append(all, tokenizer.Bytes(id)...)
			}
			want := strings.TrimPrefix(tokenizer.Decode(ids, false), " ")
			if got := strings.TrimPrefix(string(all), " "); got != want {
				t.Errorf("%s: bytes of %v are %q, want %q", name, ids, got, want)
			}
		}
		for _, id := range tokenizer.SpecialIDs() {
			if word, _ := tokenizer.Token(id); !bytes.Equal(tokenizer.Bytes(id), []byte(word)) {
				t.Errorf("%s: bytes of %q are %q", name, word, tokenizer.Bytes(id))
			}
		}
		if got := tokenizer.Bytes(1 << 30); got != nil {
			t.Errorf("%s: an id beyond the vocabulary has bytes %q", name, got)
		}
	}
	// A byte that is no whole character (Llama 2 has a token for each byte).
	llama2 := loaded(t, "llama2")
	if id, ok := llama2.TokenID("<0x9D>"); !ok || !bytes.Equal(llama2.Bytes(id), []byte{0x9d}) {
		t.Errorf("token <0x9D> is %v with bytes %x, want 9d", ok, llama2.Bytes(id))
	}
}
