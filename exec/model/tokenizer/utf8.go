package tokenizer

import "unicode/utf8"

// bad is what stands for bytes that are no text.
const bad = string(utf8.RuneError)

// appendText appends data to dst as UTF-8, each longest ill-formed piece as one U+FFFD (as Unicode
// recommends and as the library and Python do). Unless final, it leaves a character that data begins but
// does not end, and returns it as rest.
func appendText(dst, data []byte, final bool) (text, rest []byte) {
	for len(data) > 0 {
		if r, size := utf8.DecodeRune(data); r != utf8.RuneError || size > 1 {
			dst = append(dst, data[:size]...)
			data = data[size:]
			continue
		}
		if !final && !utf8.FullRune(data) {
			break
		}
		dst = append(dst, bad...)
		data = data[illFormed(data):]
	}
	return dst, data
}

// illFormed returns the length of the longest beginning of data, which begins with no character, that could
// have begun one; at least 1.
func illFormed(data []byte) int {
	size := 1
	for size < len(data) && !utf8.FullRune(data[:size+1]) {
		size++
	}
	return size
}

// validText returns text with each longest ill-formed piece replaced by one U+FFFD.
func validText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	valid, _ := appendText(nil, []byte(text), true)
	return string(valid)
}

// byteRunes is the alphabet of byte-level vocabularies: a printable character for each byte (GPT-2).
var byteRunes = func() (runes [256]rune) {
	next := rune(256)
	for b := range runes {
		printable := b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
		if printable {
			runes[b] = rune(b)
			continue
		}
		runes[b] = next
		next++
	}
	return runes
}()

// runeBytes is the reverse of byteRunes, -1 where a character is not in the alphabet.
var runeBytes = func() (bytes [512]int16) {
	for i := range bytes {
		bytes[i] = -1
	}
	for b, r := range byteRunes {
		bytes[r] = int16(b)
	}
	return bytes
}()

// levelBytes returns the bytes that token stands for in a byte-level vocabulary; ok is false where a
// character of it is not in the alphabet.
func levelBytes(token string) (data []byte, ok bool) {
	data = make([]byte, 0, len(token))
	for _, r := range token {
		if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
			return nil, false
		}
		data = append(data, byte(runeBytes[r]))
	}
	return data, true
}
