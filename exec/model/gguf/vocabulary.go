package gguf

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Types of tokens, as tokenizer.ggml.token_type has them (llama.h, enum llama_token_type).
const (
	tokenNormal      = 1
	tokenControl     = 3
	tokenUserDefined = 4
	tokenUnused      = 5
)

// vocabulary is the tokenizer of a file: byte-level BPE.
type vocabulary struct {
	tokens   []string
	types    []int32
	merges   []string
	splitter splitter
	bos      int64 // -1: none
	eos      int64
	pad      int64
	unknown  int64
	ends     []int64 // tokens that end an answer, ascending, eos among them
	bosAdded bool
	eosAdded bool
	chat     string // template, "" for none
}

// splitter is a way to cut text into words before merging.
type splitter struct {
	names        []string // tokenizer.ggml.pre
	normalizer   any      // as in tokenizer.json
	preTokenizer any
	ignoreMerges bool // a word that is a token stays whole
	addsBOS      bool // where tokenizer.ggml.add_bos_token is absent
}

type object = map[string]any

func byteLevel(regex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
}

// split cuts by pattern, each match on its own.
func split(pattern string) object {
	first := object{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated",
		"invert": false}
	return object{"type": "Sequence", "pretokenizers": []any{first, byteLevel(false)}}
}

// patternOf is the pattern of Qwen2 and of Llama 3, which differ in how digits go together.
func patternOf(digits string) string {
	return `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + digits +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
}

// splitters are those of the published tokenizer.json of GPT-2, SmolLM2, Qwen2 and Llama 3.
var splitters = []splitter{
	{names: []string{"gpt-2"}, preTokenizer: byteLevel(true)},
	{names: []string{"smollm"}, preTokenizer: object{"type": "Sequence", "pretokenizers": []any{
		object{"type": "Digits", "individual_digits": true}, byteLevel(true)}}},
	{names: []string{"qwen2"}, normalizer: object{"type": "NFC"}, preTokenizer: split(patternOf(`\p{N}`))},
	{names: []string{"llama-bpe", "llama3", "llama-v3"}, preTokenizer: split(patternOf(`\p{N}{1,3}`)),
		ignoreMerges: true, addsBOS: true},
}

// readVocabulary reads the tokenizer of a model whose embedding has rows rows.
func readVocabulary(f *File, rows int64) (vocabulary, error) {
	v := vocabulary{}
	kind, err := f.Text("tokenizer.ggml.model")
	if err != nil {
		return v, err
	}
	if kind != "gpt2" {
		return v, fmt.Errorf("key tokenizer.ggml.model = %q is not supported, want gpt2 (byte-level BPE)", kind)
	}
	if v.splitter, err = splitterOf(f); err != nil {
		return v, err
	}
	if v.tokens, err = f.Texts("tokenizer.ggml.tokens"); err != nil {
		return v, err
	}
	if v.types, err = f.Ints("tokenizer.ggml.token_type"); err != nil {
		return v, err
	}
	if v.merges, err = f.Texts("tokenizer.ggml.merges"); err != nil {
		return v, err
	}
	if int64(len(v.tokens)) != rows || len(v.types) != len(v.tokens) {
		return v, fmt.Errorf("%d tokens and %d token types for an embedding of %d rows, want as many of each",
			len(v.tokens), len(v.types), rows)
	}
	if err := v.check(); err != nil {
		return v, err
	}
	return v, v.readSpecial(f)
}

func splitterOf(f *File) (splitter, error) {
	name, err := f.Text("tokenizer.ggml.pre")
	if err != nil {
		return splitter{}, err
	}
	var known []string
	for _, s := range splitters {
		if slices.Contains(s.names, name) {
			return s, nil
		}
		known = append(known, s.names...)
	}
	return splitter{}, fmt.Errorf("key tokenizer.ggml.pre = %q is not supported, want one of %s",
		name, strings.Join(known, ", "))
}

// check looks at types, tokens given twice and merges of what is no token.
func (v *vocabulary) check() error {
	ids := make(map[string]int, len(v.tokens))
	for id, token := range v.tokens {
		switch v.types[id] {
		case tokenNormal, tokenControl, tokenUserDefined:
		case tokenUnused:
			continue
		default:
			return fmt.Errorf(
				"token %d (%q) has type %d, want 1 (normal), 3 (control), 4 (user-defined) or 5 (unused)",
				id, token, v.types[id])
		}
		if before, twice := ids[token]; twice {
			return fmt.Errorf("tokens %d and %d are both %q", before, id, token)
		}
		ids[token] = id
	}
	for i, merge := range v.merges {
		left, right, ok := strings.Cut(merge, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("merge %d is %q, want two tokens with a space between", i, merge)
		}
		for _, token := range []string{left, right, left + right} {
			if _, ok := ids[token]; !ok {
				return fmt.Errorf("merge %d is %q, but %q is no token", i, merge, token)
			}
		}
	}
	return nil
}

// readSpecial reads the tokens with a task and the template.
func (v *vocabulary) readSpecial(f *File) error {
	var err error
	id := func(key string) int64 {
		key = "tokenizer.ggml." + key + "_token_id"
		if err != nil || !f.Has(key) {
			return -1
		}
		var n uint64
		if n, err = f.Uint(key); err == nil && n >= uint64(len(v.tokens)) {
			err = fmt.Errorf("key %s = %d, want less than the %d tokens", key, n, len(v.tokens))
		}
		return int64(n)
	}
	flag := func(key string, otherwise bool) bool {
		if err != nil || !f.Has(key) {
			return otherwise
		}
		var b bool
		b, err = f.Bool(key)
		return b
	}
	v.bos, v.eos, v.pad, v.unknown = id("bos"), id("eos"), id("padding"), id("unknown")
	for _, end := range []int64{v.eos, id("eot"), id("eom")} {
		if end >= 0 {
			v.ends = append(v.ends, end)
		}
	}
	slices.Sort(v.ends)
	v.ends = slices.Compact(v.ends)
	v.bosAdded = flag("tokenizer.ggml.add_bos_token", v.splitter.addsBOS && v.bos >= 0)
	v.eosAdded = flag("tokenizer.ggml.add_eos_token", false)
	if err == nil && flag("tokenizer.ggml.add_space_prefix", false) {
		err = fmt.Errorf("key tokenizer.ggml.add_space_prefix = true is not supported with byte-level BPE")
	}
	if err == nil && f.Has("tokenizer.chat_template") {
		v.chat, err = f.Text("tokenizer.chat_template")
	}
	if err == nil && (v.bosAdded && v.bos < 0 || v.eosAdded && v.eos < 0) {
		err = fmt.Errorf("add_bos_token = %t and add_eos_token = %t, but bos is %d and eos %d, want a token",
			v.bosAdded, v.eosAdded, v.bos, v.eos)
	}
	return err
}

// ordered is a JSON object of tokens by id, unused ones left out.
type ordered struct{ *vocabulary }

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for id, token := range o.tokens {
		if o.types[id] == tokenUnused {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		text, err := json.Marshal(token)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%d", text, id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
