package tokenizer

import (
	"slices"
	"testing"
)

// The pieces are those of the library's pre_tokenizers.Split(Regex(pattern), "isolated") in version 0.23.3.
func TestRegex(t *testing.T) {
	for _, test := range []struct {
		name, pattern, text string
		want                []string
	}{
		{"folding", `(?i:'s|k)`, "'\u017fa'Sa \u212ab Kk",
			[]string{"'\u017f", "a", "'S", "a ", "\u212a", "b ", "K", "k"}},
		{"possessive", `a++ab|b`, "aaabb", []string{"aaa", "b", "b"}},
		{"greedy", `a+ab|b`, "aaabb", []string{"aaab", "b"}},
		{"lazy count", `a{1,3}?b|c`, "aaabcab", []string{"aaab", "c", "ab"}},
		{"backtracking", `(?:a|ab)(?:c|bcd)(?=x)`, "abcdxabcx acy", []string{"abcd", "x", "abc", "x acy"}},
		{"lazy option", `x??y`, "xyxxy", []string{"xy", "x", "xy"}},
		{"negated in negated", `[^\S\n]+`, "a \n\t b", []string{"a", " ", "\n", "\t ", "b"}},
		{"counted group", `(?:ab){1,2}`, "ababababc", []string{"abab", "abab", "c"}},
		{"option to the end", `a|(?i)b|c`, "aBbCc", []string{"a", "B", "b", "C", "c"}},
		{"dot", `.\n`, "a\nb\r\n\n\n", []string{"a\n", "b", "\r\n", "\n\n"}},
		{"class escapes", `[\-\]a-c]+`, "x-]abcd", []string{"x", "-]abc", "d"}},
		{"code points", `\u4e2d|\x{1F600}|\x41`, "A中😀", []string{"A", "中", "😀"}},
		{"twice negated", `\P{^L}+`, "ab1", []string{"ab", "1"}},
		{"nothing", `[^\d\D]|\W`, "a!", []string{"a", "!"}},
		{"look-ahead", `a(?!b)`, "abac", []string{"ab", "a", "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			compiled, err := compileRegex(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			if got := splitOn(compiled.find, isolated, false)(nil, test.text, true); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// Runs of 131,071 equal characters take time in proportion to their length, and come back.
func TestLongRuns(t *testing.T) {
	tokenizer := loaded(t, "qwen")
	for _, unit := range []string{" ", "a", "\n", "\u0301", "<", "中"} {
		text := ""
		for range 17 {
			text += text + unit
		}
		ids := tokenizer.Encode(text, Options{})
		if got := tokenizer.Decode(ids, false); got != composed(text) {
			t.Errorf("%d of %q come back as %d bytes, want %d", len(text)/len(unit), unit, len(got), len(text))
		}
	}
}
