package answer

import (
	"slices"
	"strconv"
	"strings"
)

// byteToken is the form of a byte in a byte-level vocabulary (openai/gpt-2, encoder.py, bytes_to_unicode).
func byteToken(b int) string {
	printable := func(b int) bool {
		return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae && b <= 0xff
	}
	if printable(b) {
		return string(rune(b))
	}
	next := 256
	for other := range b {
		if !printable(other) {
			next++
		}
	}
	return string(rune(next))
}

func quote(s string) string { return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"` }

func itoa(n int) string { return strconv.Itoa(n) }

// idOf is the id of a token of vocabulary by its bytes.
func idOf(text string, words []string) int32 {
	switch i := slices.Index(words, text); {
	case text == "<end>":
		return 0
	case i >= 0:
		return int32(257 + i)
	default:
		return int32(text[0]) + 1
	}
}
