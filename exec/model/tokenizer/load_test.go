package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const plainModel = `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`

// file returns a tokenizer.json of plainModel and one more key.
func file(key, content string) string {
	return `{"version":"1.0","model":` + plainModel + `,"` + key + `":` + content + `}`
}

func modelOf(content string) string { return `{"model":{` + content + `}}` }

func split(pattern string) string {
	return file("pre_tokenizer", `{"type":"Split","pattern":{"Regex":"`+pattern+
		`"},"behavior":"Isolated","invert":false}`)
}

func added(content string) string {
	return file("added_tokens", `[{"id":3,"content":"x","single_word":false,"lstrip":false,"rstrip":false,`+
		`"normalized":false,"special":false`+content+`}]`)
}

// refusals are files and what the error must name: the key and what was wanted.
var refusals = map[string]struct{ file, want string }{
	"empty":       {``, "tokenizer.json:  is absent or null, want an object"},
	"truncated":   {`{"model":{"type":"BPE","vo`, "want an object"},
	"list":        {`[]`, "want an object"},
	"unknown key": {file("extra", `1`), "extra is not known"},
	"version":     {`{"version":"2.0","model":` + plainModel + `}`, `version = "2.0", want "1.0"`},
	"truncation":  {file("truncation", `{"max_length":5}`), "truncation = "},
	"padding":     {file("padding", `{}`), "padding = {}, want null"},
	"no model":    {`{}`, "model is absent or null"},
	"model kind": {
		modelOf(`"type":"Unigram","vocab":{},"merges":[]`),
		`model.type = "Unigram", want "BPE"`,
	},
	"model key": {
		modelOf(`"type":"BPE","vocab":{},"merges":[],"scores":[]`),
		"model.scores is not known",
	},
	"dropout": {
		modelOf(`"dropout":0.1,"vocab":{},"merges":[]`),
		"model.dropout = 0.1, want null",
	},
	"prefix": {
		modelOf(`"continuing_subword_prefix":"##","vocab":{},"merges":[]`),
		"model.continuing_subword_prefix",
	},
	"suffix": {
		modelOf(`"end_of_word_suffix":"</w>","vocab":{},"merges":[]`),
		"model.end_of_word_suffix",
	},
	"unk_token": {
		modelOf(`"unk_token":"?","vocab":{"a":0},"merges":[]`),
		`model.unk_token = "?", want a token`,
	},
	"id twice": {
		modelOf(`"vocab":{"a":0,"b":0},"merges":[]`),
		`model.vocab["b"] = 0, want an id that "a" does not have`,
	},
	"id negative": {modelOf(`"vocab":{"a":-1},"merges":[]`), `model.vocab["a"] = -1, want 0 to`},
	"id huge": {
		modelOf(`"vocab":{"a":2000000000},"merges":[]`),
		`model.vocab["a"] = 2000000000, want 0 to`,
	},
	"id fraction": {
		modelOf(`"vocab":{"a":1.5},"merges":[]`),
		`model.vocab = {"a":1.5}, want an object of token: id`,
	},
	"id null":   {modelOf(`"vocab":{"a":null},"merges":[]`), "model.vocab = "},
	"no merges": {modelOf(`"vocab":{"a":0}`), "model.merges is absent or null, want a list"},
	"merge of three": {
		modelOf(`"vocab":{"a":0},"merges":["a a a"]`),
		`model.merges[0] = ["a" "a" "a"], want`,
	},
	"merge of one":  {modelOf(`"vocab":{"a":0},"merges":[["a"]]`), `model.merges[0] = ["a"], want`},
	"merge forms":   {modelOf(`"vocab":{"a":0},"merges":["a a",["a","a"]]`), "model.merges = [\"a a\""},
	"merge unknown": {modelOf(`"vocab":{"a":0},"merges":["a a"]`), `want "aa" in the vocabulary`},
	"normalizer": {
		file("normalizer", `{"type":"Lowercase"}`),
		`normalizer.type = "Lowercase", want NFC`,
	},
	"in a sequence": {
		file("normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Nmt"}]}`),
		`normalizer.normalizers[1].type = "Nmt"`,
	},
	"pre_tokenizer": {
		file("pre_tokenizer", `{"type":"Whitespace"}`),
		`pre_tokenizer.type = "Whitespace", want ByteLevel`,
	},
	"no type": {file("pre_tokenizer", `{}`), "pre_tokenizer.type is absent or null"},
	"after ByteLevel": {
		file("pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":false},`+
			`{"type":"Digits","individual_digits":true}]}`),
		"pre_tokenizer.pretokenizers[1] comes after ByteLevel",
	},
	"behavior": {
		file("pre_tokenizer", `{"type":"Split","pattern":{"String":"a"},"behavior":"Kept","invert":false}`),
		`pre_tokenizer.behavior = "Kept"`,
	},
	"no pattern": {
		file("pre_tokenizer", `{"type":"Split","pattern":{},"behavior":"Isolated","invert":false}`),
		"want either Regex or String",
	},
	"prepend_scheme": {
		file("pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`),
		`pre_tokenizer.prepend_scheme = "last"`,
	},
	"prefix space": {
		file("pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"first",`+
			`"add_prefix_space":false}`),
		"pre_tokenizer.add_prefix_space = false",
	},
	"replacement": {
		file("pre_tokenizer", `{"type":"Metaspace","replacement":"ab"}`),
		"want a string of one character",
	},
	"post_processor": {
		file("post_processor", `{"type":"BertProcessing"}`),
		`post_processor.type = "BertProcessing"`,
	},
	"template": {
		file("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}}],`+
			`"pair":[],"special_tokens":{}}`),
		`post_processor.single[0] names "x", want one of special_tokens`,
	},
	"template pair": {
		file("post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"B","type_id":0}}],`+
			`"pair":[],"special_tokens":{}}`),
		`post_processor.single[0].Sequence.id = "B", want "A"`,
	},
	"decoder": {
		file("decoder", `{"type":"WordPiece"}`),
		`decoder.type = "WordPiece", want ByteFallback`,
	},
	"decoder order": {
		file("decoder", `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]}`),
		`decoder.decoders[1].type = "ByteFallback" after Fuse`,
	},
	"added key": {added(`,"color":1`), "added_tokens[0].color is not known"},
	"added id": {
		strings.Replace(added(""), `"id":3`, `"id":7`, 1),
		`added_tokens[0].id = 7 for "x", want 3`,
	},
	"added empty": {strings.Replace(added(""), `"x"`, `""`, 1), "added_tokens[0].content"},
	"added flag": {
		strings.Replace(added(""), `"lstrip":false`, `"lstrip":0`, 1),
		"added_tokens[0].lstrip = 0, want true or false",
	},
	"look-behind":    {split(`(?<=a)b`), "pre_tokenizer.pattern.Regex: pattern"},
	"back reference": {split(`(a)\\1`), `\1 is not supported`},
	"anchor":         {split(`^a`), "anchor ^ is not supported"},
	"word border":    {split(`\\ba`), `\b is not supported`},
	"script":         {split(`\\p{Han}+`), `\p{Han}+ is not supported`},
	"empty match":    {split(`a*`), "matches the empty text"},
	"set operation":  {split(`[a&&b]`), "set operations"},
	"ligature":       {split(`(?i:straSSe)`), "ligature"},
	"late option":    {split(`a(?i)b`), "(?i) inside a branch"},
	"folded letter":  {split(`(?i:é)`), "want ASCII"},
	"endless group":  {split(`(?:ab)+`), "endless or possessive repetition of a group"},
	"huge group":     {split(`(?:(?:(?:ab){1000}){1000}){1000}`), "more than 20000 instructions"},
	"deep group": {
		split(strings.Repeat("(", 100) + "a" + strings.Repeat(")", 100)),
		"groups inside each other",
	},
	"open group":   {split(`(a`), "( without )"},
	"closed group": {split(`a)`), ") without ("},
	"open class":   {split(`[a`), "[ without ]"},
	"bad count":    {split(`a{2,1}`), "repetition {2,1}"},
}

func TestRefusals(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("tokenizer.json", []byte(test.file))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "tokenizer.json: ") {
				t.Errorf("error %q does not begin with the file", err)
			}
		})
	}
}

func TestLoadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("absent file: error %v, want one that names it", err)
	}
	if err := os.WriteFile(path, unzipped(t, "qwen.json.gz"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokenizer, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if size := tokenizer.VocabSize(); size != 1207 {
		t.Errorf("%d tokens, want 1207: 1200 trained, 3 of them special, and 7 added", size)
	}
}

// TestLoadRefuses: a pipe that nobody writes to is no file to wait for, nor is one without an end to be read.
func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	pipe, long := filepath.Join(dir, "pipe"), filepath.Join(dir, "long")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(long, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(long, fileBytesMax+1); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe: pipe + " is no regular file", "/dev/zero": "/dev/zero is no regular file",
		long: long + " has 268435457 bytes, want at most 268435456",
	} {
		if _, err := Load(path); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
}
