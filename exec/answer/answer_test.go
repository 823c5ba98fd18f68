package answer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec/model/tokenizer"
)

// vocabulary is a tokenizer whose tokens are the 256 bytes, each with its value as id plus 1, and an end
// token with the id 0; words come after.
func vocabulary(t *testing.T, words ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab := []string{`"<end>": 0`}
	for b := range 256 {
		vocab = append(vocab, quote(byteToken(b))+": "+itoa(b+1))
	}
	for i, w := range words {
		var level strings.Builder
		for _, b := range []byte(w) {
			level.WriteString(byteToken(int(b)))
		}
		vocab = append(vocab, quote(level.String())+": "+itoa(257+i))
	}
	tokens, err := tokenizer.Parse("tokenizer.json", []byte(`{
		"added_tokens": [{"id": 0, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": true}],
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
		"model": {"type": "BPE", "vocab": {`+strings.Join(vocab, ",")+`}, "merges": []}}`))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// given is a token of an answer: the text that its bytes are, and its model.
type given struct {
	bytes string
	model int32
}

// TestAnswer feeds tokens; text comes out in these pieces.
func TestAnswer(t *testing.T) {
	words := []string{"DEF", "HI", "end!more", "\xf0\x9f", "\x98\x80", "ab", "ba"}
	tokens := vocabulary(t, words...)
	for _, c := range []struct {
		name   string
		stop   []string
		tokens []given
		reason core.Reason
		pieces []Piece
		finish string
		count  int
	}{
		{"plain", nil, []given{{"DEF", 0}, {"HI", 1}}, core.TokensMax, []Piece{{"DEF", 0}, {"HI", 1}}, "length", 2},
		// One character from two tokens, then the end: one piece, two tokens.
		{"emoji", nil, []given{{"\xf0\x9f", 0}, {"\x98\x80", 0}, {"<end>", 0}}, core.EndOfSequence,
			[]Piece{{"\U0001f600", 0}}, "stop", 2},
		{"three models", nil, []given{{"\xe4", 0}, {"\xb8", 1}, {"\xad", 0}}, core.TokensMax,
			[]Piece{{"\u4e2d", 0}}, "length", 3},
		{"half a character", nil, []given{{"a", 0}, {"\xf0\x9f", 1}}, core.TokensMax,
			[]Piece{{"a", 0}, {"\ufffd", 1}}, "length", 2},
		{"stop over tokens", []string{"DEFGHIJ"}, []given{{"DEF", 0}, {"G", 0}, {"HI", 0}, {"J", 0}},
			core.StopString, nil, "stop", 4},
		{"stop within", []string{"!"}, []given{{"end!more", 0}}, core.StopString, []Piece{{"end", 0}}, "stop", 1},
		{"tokens after the stop", []string{"!"}, []given{{"end!more", 0}, {"a", 1}}, core.StopString,
			[]Piece{{"end", 0}}, "stop", 1},
		{"false beginning", []string{"DEFx"}, []given{{"DEF", 0}, {"G", 1}, {"a", 0}}, core.TokensMax,
			[]Piece{{"DEF", 0}, {"G", 1}, {"a", 0}}, "length", 3},
		{"beginning inside a beginning", []string{"abac"}, []given{{"ab", 0}, {"ab", 1}, {"a", 0}, {"c", 0}},
			core.StopString, []Piece{{"ab", 0}}, "stop", 4},
		{"held to the end", []string{"abba"}, []given{{"ab", 0}, {"b", 1}}, core.TokensMax,
			[]Piece{{"ab", 0}, {"b", 1}}, "length", 2},
		{"the first of two", []string{"b", "ab"}, []given{{"a", 0}, {"ba", 0}}, core.StopString, nil, "stop", 2},
		{"end token while held", []string{"abba"}, []given{{"ab", 0}, {"<end>", 1}}, core.EndOfSequence,
			[]Piece{{"ab", 0}}, "stop", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var pieces []Piece
			stopped, left := 0, 0
			a, err := New(Config{
				Tokenizer: tokens, EOS: func(id int32) bool { return id == 0 }, Stop: c.stop,
				Piece:   func(p Piece) { pieces = append(pieces, p) },
				Stopped: func() { stopped++ }, Left: func() { left++ },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range c.tokens {
				a.Token(core.Token{Token: idOf(g.bytes, words), Model: g.model})
			}
			if a.Finish() != "" && stopped == 0 {
				t.Errorf("Finish = %q before the end", a.Finish())
			}
			a.Left(core.Leave{Outcome: core.Finished, Reason: c.reason})
			if diff := cmp.Diff(c.pieces, pieces); diff != "" {
				t.Errorf("pieces (-want +got):\n%s", diff)
			}
			whole := ""
			for _, p := range pieces {
				whole += p.Text
			}
			if a.Text() != whole || a.Finish() != c.finish || len(a.Tokens) != c.count || left != 1 {
				t.Errorf("text %q, finish %q, %d tokens, left %d, want %q, %q, %d, 1", a.Text(), a.Finish(),
					len(a.Tokens), left, whole, c.finish, c.count)
			}
			if want := c.reason == core.StopString; (stopped == 1) != want || stopped > 1 {
				t.Errorf("stopped %d times, want it %v", stopped, want)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	for _, c := range []struct {
		leave core.Leave
		want  string
	}{
		{core.Leave{Outcome: core.CancelledOutcome, Reason: core.Stopped}, "cancelled"},
		{core.Leave{Outcome: core.Failed, Reason: core.DeviceFailed}, "error"},
		{core.Leave{Outcome: core.Rejected, Reason: core.TooLong}, "error"},
	} {
		a, err := New(Config{Tokenizer: vocabulary(t)})
		if err != nil {
			t.Fatal(err)
		}
		a.Left(c.leave)
		if got := a.Finish(); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.leave.Outcome, c.leave.Reason, got, c.want)
		}
	}
}

func TestEmptyStop(t *testing.T) {
	if _, err := New(Config{Tokenizer: vocabulary(t), Stop: []string{"a", ""}}); err != ErrEmptyStop {
		t.Errorf("error %v, want %v", err, ErrEmptyStop)
	}
}

// TestHeldText: whatever the cuts between tokens, the text before the first stop string comes out.
func TestHeldText(t *testing.T) {
	const text = "aabaabbaababbab"
	stop := []string{"abba", "babb"}
	want := text
	for _, s := range stop {
		if before, _, ok := strings.Cut(text, s); ok && len(before) < len(want) {
			want = before
		}
	}
	for cuts := range 1 << (len(text) - 1) {
		var got strings.Builder
		s := stops{stop: stop}
		out := func(p Piece) { got.WriteString(p.Text) }
		start, found := 0, false
		for i := 1; i <= len(text) && !found; i++ {
			if i == len(text) || cuts>>(i-1)&1 != 0 {
				found = s.next(Piece{Text: text[start:i]}, out)
				start = i
			}
		}
		if got.String() != want || !found {
			t.Fatalf("cuts %b: %q, found %v, want %q", cuts, got.String(), found, want)
		}
	}
}
