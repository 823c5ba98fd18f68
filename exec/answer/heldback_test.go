package answer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"tokenrouter/core"
)

// whole is the part of text that is whole characters.
func whole(text string) string {
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}

// final is, by trying everything, what of a text may be given out: up to the first stop string, or to the
// longest end that may become one.
func final(text string, stop []string) (out string, found bool) {
	for n := range len(text) + 1 {
		for _, s := range stop {
			if strings.HasPrefix(text[n:], s) {
				return text[:n], true
			}
		}
	}
	for n := range len(text) + 1 {
		for _, s := range stop {
			if strings.HasPrefix(s, text[n:]) && n < len(text) {
				return text[:n], false
			}
		}
	}
	return text, false
}

// TestSmallestHoldBack: of every text of six letters of one to four bytes, given byte by byte under stop
// strings that overlap, what is out after each byte is all that is final, and no byte more; a text that ends
// there, within a character too, loses nothing and has no broken character.
func TestSmallestHoldBack(t *testing.T) {
	tokens := vocabulary(t)
	letters := []string{"a", "é", "中", "\U0001f600"}
	stop := []string{"aé", "éa中", "中中a", "\U0001f600\U0001f600", "中éé"}
	for code := range 1 << 12 { // two bits a letter
		var text string
		for at := range 6 {
			text += letters[code>>(2*at)&3]
		}
		for end := range len(text) + 1 {
			if end < len(text) && end%3 != code%3 {
				continue // a third of the ends is enough
			}
			out, stopped := "", false
			a, err := New(Config{Tokenizer: tokens, Stop: stop, Piece: func(p Piece) { out += p.Text },
				Stopped: func() { stopped = true }})
			if err != nil {
				t.Fatal(err)
			}
			for n := range end {
				a.Token(core.Token{Token: int32(text[n]) + 1})
				if want, found := final(whole(text[:n+1]), stop); out != want || stopped != found {
					t.Fatalf("%q after %d bytes: %q, stopped %v, want %q and %v", text, n+1, out, stopped, want, found)
				}
				if stopped {
					break
				}
			}
			a.Left(core.Leave{Outcome: core.Finished, Reason: core.TokensMax})
			want, found := final(whole(text[:end]), stop)
			if !found {
				if want = whole(text[:end]); want != text[:end] {
					want += "\ufffd"
				}
			}
			if out != want || a.Text() != want {
				t.Fatalf("%q, ended after %d bytes: %q, want %q", text, end, out, want)
			}
		}
	}
}
