// Package tokenizer reads a tokenizer.json of the Hugging Face tokenizers library and gives the same ids
// and the same text as the library (compared with version 0.23.3; see testdata/make.py).
//
// It does byte-pair encoding, in the forms that Qwen2 and Qwen3, Llama 3, SmolLM2 and GPT-2 (byte-level) and
// Llama 2 (spaces as U+2581, unknown characters as byte tokens) use:
//
//	normalizer      NFC, Prepend, Replace, Sequence
//	pre_tokenizer   ByteLevel, Digits, Metaspace, Split, Sequence
//	model           BPE without dropout, continuing_subword_prefix and end_of_word_suffix
//	added_tokens    all flags
//	post_processor  ByteLevel, TemplateProcessing, Sequence
//	decoder         ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Strip, Sequence
//
// Everything else is refused with file and key, and so is what would not be exact: Load never gives a
// tokenizer that differs knowingly.
//
// Split patterns are run by a matcher of this package. Go's regexp has no look-ahead; a backtracking
// package that has it uses the Unicode tables of the Go release and simple case folding, which differ
// from the library's in about 5,000 letters and in the long s.
package tokenizer
