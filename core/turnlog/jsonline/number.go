package jsonline

import (
	"encoding/json"
	"math"
	"strconv"
)

// whole reports whether text is a whole number as JSON writes it.
func whole(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	n := digits(text)
	return n > 0 && n == len(text) && (n == 1 || text[0] != '0')
}

// isNumber reports whether text follows the grammar of JSON numbers.
func isNumber(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	n := digits(text)
	if n == 0 || n > 1 && text[0] == '0' {
		return false
	}
	text = text[n:]
	if len(text) > 0 && text[0] == '.' {
		if n = digits(text[1:]); n == 0 {
			return false
		}
		text = text[1+n:]
	}
	if len(text) > 0 && (text[0] == 'e' || text[0] == 'E') {
		text = text[1:]
		if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		if n = digits(text); n == 0 {
			return false
		}
		text = text[n:]
	}
	return len(text) == 0
}

func digits(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// AppendFloat writes f, of 32 or 64 bits, in the shortest form that reads back to the same
// value, or as a string if it is not finite.
func AppendFloat(to []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(to, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(to, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(to, `"-Infinity"`...)
	}
	return strconv.AppendFloat(to, f, 'g', -1, bits)
}

// AppendString writes text in quotes.
func AppendString(to []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic("jsonline: " + err.Error()) // a string always has a JSON form
	}
	return append(to, quoted...)
}
