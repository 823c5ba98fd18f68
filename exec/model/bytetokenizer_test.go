package model

import (
	"encoding/json"
	"testing"
)

// TestByteTokenizer: every byte has its value as id, under the rune that GPT-2's bytes_to_unicode gives it.
func TestByteTokenizer(t *testing.T) {
	if err := CheckJSON([]byte(byteTokenizer())); err != nil {
		t.Fatal(err)
	}
	if err := CheckJSON([]byte(byteTokenizerConfig)); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Added []struct {
			ID      int
			Content string
		} `json:"added_tokens"`
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal([]byte(byteTokenizer()), &file); err != nil {
		t.Fatal(err)
	}
	// Known pairs of openai/gpt-2, encoder.json: space, newline, tab, NUL, DEL, no-break space, soft hyphen.
	for text, want := range map[string]int{"A": 'A', "~": '~', "Ġ": ' ', "Ċ": '\n', "ĉ": '\t', "Ā": 0, "ġ": 0x7f,
		"ł": 0xa0, "Ń": 0xad, "¡": 0xa1, "ÿ": 0xff} {
		if got, ok := file.Model.Vocab[text]; !ok || got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
	if len(file.Model.Vocab) != 256 {
		t.Errorf("%d bytes, want 256", len(file.Model.Vocab))
	}
	if len(file.Added) != 3 || file.Added[2].ID != 258 || file.Added[2].Content != "<|im_end|>" {
		t.Errorf("added tokens %v", file.Added)
	}
}
