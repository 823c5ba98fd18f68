package tokenizer_test

import (
	"fmt"
	"log"

	"tokenrouter/exec/model/tokenizer"
)

// small is a tokenizer.json with characters, two merges and a control word.
const small = `{
	"model": {"type": "BPE",
		"vocab": {"h": 0, "i": 1, "!": 2, " ": 3, "hi": 4, " hi": 5},
		"merges": [["h", "i"], [" ", "hi"]]},
	"decoder": {"type": "Fuse"},
	"added_tokens": [{"id": 6, "content": "<|end|>", "special": true, "normalized": false,
		"single_word": false, "lstrip": false, "rstrip": false}]
}`

// Example_encode encodes a message of a user and the control word after it.
func Example_encode() {
	t, err := tokenizer.Parse("tokenizer.json", []byte(small))
	if err != nil {
		log.Fatal(err)
	}
	message := t.Encode("hi hi!", tokenizer.Options{})
	end := t.Encode("<|end|>", tokenizer.Options{ParseSpecial: true})
	fmt.Println(message, end, t.IsSpecial(end[0]))
	fmt.Printf("%q\n", t.Decode(append(message, end...), true))
	// Output:
	// [4 5 2] [6] true
	// "hi hi!"
}

// ExampleDecoder turns tokens into text as they come; the character of the two byte tokens is held.
func ExampleDecoder() {
	t, err := tokenizer.Parse("tokenizer.json", []byte(`{
		"model": {"type": "BPE", "byte_fallback": true, "merges": [],
			"vocab": {"c": 0, "a": 1, "f": 2, "<0xC3>": 3, "<0xA9>": 4}},
		"decoder": {"type": "ByteFallback"}}`))
	if err != nil {
		log.Fatal(err)
	}
	decoder := t.NewDecoder(true)
	for _, id := range []int32{0, 1, 2, 3, 4} {
		fmt.Printf("%q ", decoder.Next(id))
	}
	fmt.Printf("%q\n", decoder.Flush())
	// Output: "c" "a" "f" "" "é" ""
}

// ExampleParse shows an error: it names the file, the key, and what was wanted.
func ExampleParse() {
	_, err := tokenizer.Parse("tokenizer.json", []byte(`{"model": {"type": "Unigram", "vocab": []}}`))
	fmt.Println(err)
	// Output: tokenizer.json: model.type = "Unigram", want "BPE"
}
