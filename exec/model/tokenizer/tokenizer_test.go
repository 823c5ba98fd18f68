package tokenizer

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

// words returns the words that the split of name makes of text.
func words(t *testing.T, name, text string) []string {
	t.Helper()
	tokenizer := loaded(t, name)
	for _, normalize := range tokenizer.normalizers {
		text = normalize(text)
	}
	list := []string{text}
	for _, split := range tokenizer.splitters {
		var next []string
		for _, word := range list {
			next = split(next, word, true)
		}
		list = next
	}
	return list
}

// The splits were made with the published Qwen pattern in another engine (V8).
func TestQwenSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"a  b":                 {"a", " ", " b"}, // without look-ahead: "a", "  ", "b"
		"if x:\n    y = 10":    {"if", " x", ":\n", "   ", " y", " =", " ", "1", "0"},
		"tab\t\tx":             {"tab", "\t", "\tx"},
		"3.14":                 {"3", ".", "1", "4"},
		"a  ":                  {"a", "  "},
		"e\u0301":              {"\u00e9"}, // composed first
		"I'M we'\u017f 'tis":   {"I", "'M", " we", "'\u017f", " '", "tis"},
		"don't":                {"don", "'t"},
		"\u3000\u4e2d\u6587\n": {"\u3000\u4e2d\u6587", "\n"},
	} {
		if got := words(t, "qwen", text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := words(t, "llama3", "12345 6"); !slices.Equal(got, []string{"123", "45", " ", "6"}) {
		t.Errorf("Llama 3 takes up to three digits: %q", got)
	}
}

// Control words that a user types stay text; in a template they are control ids.
func TestControlWords(t *testing.T) {
	for _, name := range []string{"qwen", "llama3", "smollm", "llama2", "nasty"} {
		tokenizer := loaded(t, name)
		for _, id := range tokenizer.SpecialIDs() {
			control, _ := tokenizer.Token(id)
			if got := tokenizer.Encode(control, Options{ParseSpecial: true}); !slices.Contains(got, id) {
				t.Errorf("%s: %q parsed is %v, want it to have %d", name, control, got, id)
			}
			if got := tokenizer.Encode("a"+control+"b", Options{}); slices.Contains(got, id) && control != "<unk>" {
				t.Errorf("%s: %q of a user is %v, want no %d", name, control, got, id)
			}
		}
	}
}

// With ignore_merges a word of the vocabulary is one token, but text of a user never becomes a control id so.
func TestControlWordIgnoreMerges(t *testing.T) {
	const file = `{"model":{"type":"BPE","ignore_merges":true,"vocab":{"a":0,"b":1,"ab":2,"ba":3},"merges":[]},
		"added_tokens":[{"id":2,"content":"ab","special":true,"normalized":false,"single_word":false,
		"lstrip":false,"rstrip":false}]}`
	tokenizer := parsed(t, file)
	for range 2 { // also when the word is known
		if got := tokenizer.Encode("ab", Options{ParseSpecial: true}); !slices.Equal(got, []int32{2}) {
			t.Errorf("parsed: %v, want [2]", got)
		}
		if got := tokenizer.Encode("ab", Options{}); !slices.Equal(got, []int32{0, 1}) {
			t.Errorf("text: %v, want [0 1]", got)
		}
		if got := tokenizer.Encode("ba", Options{}); !slices.Equal(got, []int32{3}) {
			t.Errorf("word: %v, want [3]", got)
		}
	}
}

func parsed(t *testing.T, file string) *Tokenizer {
	t.Helper()
	tokenizer, err := Parse("tokenizer.json", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// Both forms of merges give the same ids; a side of a pair may have a space.
func TestMergeForms(t *testing.T) {
	const head = `{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2," ":3,"a ":4,"a b":5},"merges":`
	text := "abba b"
	strings := parsed(t, head+`["a b"]}}`).Encode(text, Options{})
	pairs := parsed(t, head+`[["a","b"]]}}`).Encode(text, Options{})
	if want := []int32{2, 1, 0, 3, 1}; !slices.Equal(strings, want) || !slices.Equal(pairs, want) {
		t.Errorf("strings %v, pairs %v, want %v", strings, pairs, want)
	}
	spaced := parsed(t, head+`[["a"," "],["a ","b"]]}}`).Encode(text, Options{})
	if want := []int32{0, 1, 1, 5}; !slices.Equal(spaced, want) {
		t.Errorf("%v, want %v", spaced, want)
	}
}

// byteIDs returns the ids of the byte tokens of data.
func byteIDs(t *testing.T, tokenizer *Tokenizer, data string) []int32 {
	t.Helper()
	ids := make([]int32, len(data))
	for i := range len(data) {
		var ok bool
		if ids[i], ok = tokenizer.TokenID(string(byteRunes[data[i]])); !ok {
			t.Fatalf("no token for byte %#x", data[i])
		}
	}
	return ids
}

func TestStreamHoldsCharacters(t *testing.T) {
	for _, test := range []struct {
		name string
		data string
		want []string // of Next for each byte, then of Flush
	}{
		{"emoji", "\xF0\x9F\x98\x80", []string{"", "", "", "\U0001F600", ""}},
		{"three models", "\xE4\xB8\xAD", []string{"", "", "\u4e2d", ""}},
		{"cut off", "a\xE4\xB8", []string{"a", "", "", "\uFFFD"}},
		{"broken", "\xE4\xB8b", []string{"", "", "\uFFFDb", ""}},
		{"no beginning", "\x80\xFFc", []string{"\uFFFD", "\uFFFD", "c", ""}},
		{"surrogate", "\xED\xA0\x80", []string{"", "\uFFFD\uFFFD", "\uFFFD", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tokenizer := loaded(t, "qwen")
			ids := byteIDs(t, tokenizer, test.data)
			decoder := tokenizer.NewDecoder(true)
			for range 2 { // Flush leaves the decoder as new
				var got []string
				for _, id := range ids {
					got = append(got, decoder.Next(id))
				}
				got = append(got, decoder.Flush())
				if !slices.Equal(got, test.want) {
					t.Errorf("%q, want %q", got, test.want)
				}
			}
			if whole := tokenizer.Decode(ids, true); whole != strings.Join(test.want, "") {
				t.Errorf("Decode gives %q, want %q", whole, strings.Join(test.want, ""))
			}
		})
	}
}

// Special tokens between the bytes of a character do not break it when they are skipped.
func TestStreamOverSkipped(t *testing.T) {
	tokenizer := loaded(t, "qwen")
	ids := byteIDs(t, tokenizer, "\xF0\x9F\x98\x80")
	end, _ := tokenizer.TokenID("<|im_end|>")
	decoder := tokenizer.NewDecoder(true)
	var got strings.Builder
	for _, id := range []int32{ids[0], ids[1], end, ids[2], ids[3]} {
		got.WriteString(decoder.Next(id))
	}
	if got.String() != "\U0001F600" {
		t.Errorf("%q, want one emoji", got.String())
	}
}

// A stream gives, in all, what Decode gives.
func TestStreamIsDecode(t *testing.T) {
	corpus := golden[[]string](t, "corpus.gz")
	for _, name := range names(t) {
		tokenizer := loaded(t, name)
		for i := 0; i < len(corpus); i += 7 {
			ids := tokenizer.Encode(corpus[i], Options{AddSpecial: true, ParseSpecial: i%2 == 0})
			for _, skip := range []bool{false, true} {
				decoder := tokenizer.NewDecoder(skip)
				var got strings.Builder
				for _, id := range ids {
					got.WriteString(decoder.Next(id))
				}
				got.WriteString(decoder.Flush())
				if want := tokenizer.Decode(ids, skip); got.String() != want {
					t.Fatalf("%s: %.200q streams as %.200q, want %.200q", name, corpus[i], got.String(), want)
				}
			}
		}
	}
}

// A bad run of byte tokens is all U+FFFD in Decode, as in the library; a stream keeps what was whole.
func TestStreamBadFallback(t *testing.T) {
	tokenizer := loaded(t, "llama2")
	var ids []int32
	for _, token := range []string{"<0x41>", "<0xC3>", "<0xA9>", "<0xFF>", "\u2581the"} {
		id, ok := tokenizer.TokenID(token)
		if !ok {
			t.Fatalf("no token %q", token)
		}
		ids = append(ids, id)
	}
	if got, want := tokenizer.Decode(ids, false), "\uFFFD\uFFFD\uFFFD\uFFFD the"; got != want {
		t.Errorf("Decode: %q, want %q", got, want)
	}
	decoder := tokenizer.NewDecoder(false)
	var got []string
	for _, id := range ids {
		got = append(got, decoder.Next(id))
	}
	if want := []string{"A", "", "\u00e9", "\uFFFD", " the"}; !slices.Equal(got, want) {
		t.Errorf("stream: %q, want %q", got, want)
	}
}

// Ill-formed UTF-8 counts as U+FFFD, one for each longest ill-formed piece (The Unicode Standard, table 3-8).
func TestInvalidText(t *testing.T) {
	for text, want := range map[string]string{
		"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64": "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd",
		"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41":                 strings.Repeat("\uFFFD", 8) + "A",
		"\xED\xA0\x80\xF4\x91\x92\x93\xFF":                     strings.Repeat("\uFFFD", 8),
		"a\xE4\xB8":                                            "a\uFFFD",
	} {
		tokenizer := loaded(t, "smollm")
		if got := tokenizer.Encode(text, Options{}); !slices.Equal(got, tokenizer.Encode(want, Options{})) {
			t.Errorf("%q is encoded as %q, want as %q", text, tokenizer.Decode(got, false), want)
		}
	}
}

// One tokenizer serves several goroutines.
func TestTogether(t *testing.T) {
	corpus := golden[[]string](t, "corpus.gz")[:200]
	tokenizer := loaded(t, "qwen")
	var group sync.WaitGroup
	got := make([][][]int32, 4)
	for i := range got {
		group.Go(func() {
			for _, text := range corpus {
				got[i] = append(got[i], tokenizer.Encode(text, Options{ParseSpecial: true}))
			}
		})
	}
	group.Wait()
	want := golden[library](t, "qwen.gold.gz")
	for i := range got {
		for k := range got[i] {
			if !slices.Equal(got[i][k], want.IDs[k]) {
				t.Fatalf("goroutine %d, text %d: %v, want %v", i, k, got[i][k], want.IDs[k])
			}
		}
	}
}

func TestVocabulary(t *testing.T) {
	tokenizer := loaded(t, "llama2")
	if id, ok := tokenizer.TokenID("<s>"); id != 1 || !ok || !tokenizer.IsSpecial(1) {
		t.Errorf("<s> is %d (%v), special %v, want 1", id, ok, tokenizer.IsSpecial(1))
	}
	if got := tokenizer.SpecialIDs(); !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("special tokens %v, want [0 1 2]", got)
	}
	if token, ok := tokenizer.Token(3); token != "<0x00>" || !ok || tokenizer.IsSpecial(3) {
		t.Errorf("token 3 is %q (%v), want <0x00>", token, ok)
	}
	for _, id := range []int32{-1, 1500, 1 << 30} {
		if token, ok := tokenizer.Token(id); ok || tokenizer.Decode([]int32{id}, false) != "" {
			t.Errorf("token %d is %q, want none", id, token)
		}
	}
	if _, ok := tokenizer.TokenID("no such token"); ok {
		t.Error("a token that there is not has an id")
	}
}
