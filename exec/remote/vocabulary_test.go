package remote_test

import (
	"strings"
	"testing"

	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/remote"
	"tokenrouter/exec/remote/remotetest"
)

// lettersOnly is a tokenizer with the tokens a, half a character, and b.
func lettersOnly(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Parse("tokenizer.json", []byte(`{"version":"1.0","added_tokens":[],"normalizer":null,
		"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
		"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,
		"use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,
		"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,
		"vocab":{"a":0,"âĤ":1,"b":2},"merges":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestVocabulary(t *testing.T) {
	for _, c := range []struct {
		name     string
		texts    []string // nil: the engine can not be asked
		compared bool
		errHas   string
	}{
		{"the same", []string{"a", "\xe2\x82", "b"}, true, ""},
		{"no way to ask", nil, false, ""},
		{"another", []string{"a", "\xe2\x82", "c"}, false,
			`another vocabulary: token 2 is "b" here, and the engine goes on with "c"`},
		{"longer", []string{"a", "\xe2\x82", "bc"}, false, `2 tokens have "c" too much at their end`},
	} {
		for _, engine := range engines {
			t.Run(engine.String()+" "+c.name, func(t *testing.T) {
				f := &remotetest.Engine{Kind: engine, Logits: three, Name: "m"}
				if c.texts != nil {
					f.Text = func(id int32) string { return c.texts[id] }
				}
				compared, err := open(t, f, nil).CheckVocabulary(t.Context(), lettersOnly(t))
				if compared != c.compared || (err == nil) != (c.errHas == "") ||
					err != nil && !strings.Contains(err.Error(), c.errHas) {
					t.Errorf("compared %v, error %v, want %v and one with %q", compared, err, c.compared, c.errHas)
				}
			})
		}
	}
}

// llama.cpp's server says how many tokens it knows.
func TestVocabularySize(t *testing.T) {
	f := &remotetest.Engine{Kind: remote.LlamaCPP, Logits: three, Name: "m"}
	client := open(t, f, func(c *remote.Config) { c.Vocab = 4 })
	if _, err := client.CheckVocabulary(t.Context(), lettersOnly(t)); err == nil ||
		!strings.Contains(err.Error(), "the engine knows 3 tokens, want at least 4") {
		t.Errorf("error %v, want one of 3 tokens and not 4", err)
	}
}
