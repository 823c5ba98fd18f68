package model

import (
	"fmt"
	"strings"
)

// The vocabulary of ShapeTiny: the 256 bytes, each with its value as id, three control words, and rows that
// no text uses.
const (
	byteEnd     = 256 // <|endoftext|>
	byteTurn    = 257 // <|im_start|>
	byteTurnEnd = 258 // <|im_end|>
	byteVocab   = 320
)

// byteTokenizer returns a tokenizer.json that takes every byte of a text as a token.
func byteTokenizer() string {
	var added, vocab []string
	for _, word := range []struct {
		id   int
		text string
	}{{byteEnd, "<|endoftext|>"}, {byteTurn, "<|im_start|>"}, {byteTurnEnd, "<|im_end|>"}} {
		added = append(added, fmt.Sprintf(`{"id": %d, "content": "%s", "single_word": false, "lstrip": false, `+
			`"rstrip": false, "normalized": false, "special": true}`, word.id, word.text))
	}
	for b := range 256 {
		vocab = append(vocab, fmt.Sprintf("%s: %d", quoted(string(byteRune(b))), b))
	}
	return `{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    ` + strings.Join(added, ",\n    ") + `
  ],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
    "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
    "vocab": {` + strings.Join(vocab, ", ") + `},
    "merges": []}
}
`
}

// byteRune is the printable rune that stands for a byte in byte-level vocabularies (openai/gpt-2, encoder.py,
// bytes_to_unicode): itself, or the next from 256 on.
func byteRune(b int) rune {
	printable := func(b int) bool {
		return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae && b <= 0xff
	}
	if printable(b) {
		return rune(b)
	}
	next := rune(256)
	for other := range b {
		if !printable(other) {
			next++
		}
	}
	return next
}

// byteTokenizerConfig is the tokenizer_config.json of ShapeTiny, with the ChatML template.
const byteTokenizerConfig = `{
  "tokenizer_class": "PreTrainedTokenizerFast",
  "bos_token": null,
  "eos_token": "<|im_end|>",
  "pad_token": "<|endoftext|>",
  "model_max_length": 4096,
  "chat_template": "{%- for message in messages %}` +
	`{{- '<|im_start|>' + message.role + '\n' + message.content + ` +
	`'<|im_end|>\n' }}{%- endfor %}` +
	`{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
}
`
