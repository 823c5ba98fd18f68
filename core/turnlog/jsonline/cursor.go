package jsonline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is what is wrong with a line.
type Error struct {
	Path  string // of the value, such as rows[3].fresh; "" for the line as a whole
	Value string // as it stands there, cut to 60 bytes
	Want  string
}

// Error names the place, the value and what was wanted.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Value + ", want " + e.Want
	}
	return e.Path + " = " + e.Value + ", want " + e.Want
}

// Wrong makes an *Error.
func Wrong(path string, value any, want string) error {
	return &Error{Path: path, Value: fmt.Sprint(value), Want: want}
}

// At puts the place of a value in front of the path of err, if that is an *Error: a key, or an
// index such as [3].
func At(place string, err error) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	switch {
	case e.Path == "":
		e.Path = place
	case e.Path[0] == '[':
		e.Path = place + e.Path
	default:
		e.Path = place + "." + e.Path
	}
	return e
}

// Cursor reads one line from left to right.
type Cursor struct {
	text []byte
	at   int
}

// NewCursor reads text, which must stay as it is meanwhile.
func NewCursor(text []byte) *Cursor { return &Cursor{text: text} }

// End reports an error if anything but white space is left.
func (c *Cursor) End() error {
	if c.peek() != 0 || c.at < len(c.text) {
		return c.Wrong("the end of the line")
	}
	return nil
}

// Wrong makes an error about what comes next.
func (c *Cursor) Wrong(want string) error {
	c.peek()
	rest := c.text[c.at:]
	if len(rest) == 0 {
		return &Error{Value: "the end of the line", Want: want}
	}
	ends := " \t,:{}[]\""
	if rest[0] == '"' {
		ends = `"`
	}
	n := len(rest)
	if end := bytes.IndexAny(rest[1:], ends); end >= 0 {
		n = 1 + end
	}
	if rest[0] == '"' && n < len(rest) {
		n++ // the closing quote
	}
	return &Error{Value: cut(string(rest[:n])), Want: want}
}

func cut(value string) string {
	const valueBytesMax = 60
	if len(value) > valueBytesMax {
		return strings.ToValidUTF8(value[:valueBytesMax], "") + "..."
	}
	return value
}

// peek returns the next byte that is not white space, or 0 at the end.
func (c *Cursor) peek() byte {
	for c.at < len(c.text) {
		switch b := c.text[c.at]; b {
		case ' ', '\t', '\r', '\n':
			c.at++
		default:
			return b
		}
	}
	return 0
}

// Take reads the byte b if it is next: '[', ',', ']'. It says whether it was.
func (c *Cursor) Take(b byte) bool { return c.take(b) }

// Is reports whether the next value begins with b: '{', '[', '"', 'n' for null.
func (c *Cursor) Is(b byte) bool { return c.peek() == b }

func (c *Cursor) take(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

// Object reads an object and calls each for every key; each must read the value. Errors get
// the key as their place.
func (c *Cursor) Object(each func(key string) error) error {
	if !c.take('{') {
		return c.Wrong("an object")
	}
	if c.take('}') {
		return nil
	}
	var room [16]string
	seen := room[:0]
	for {
		start := c.at
		key, err := c.String()
		if err != nil {
			return err
		}
		for _, other := range seen {
			if other == key {
				c.at = start
				return c.Wrong("each key once")
			}
		}
		seen = append(seen, key)
		if !c.take(':') {
			return At(key, c.Wrong("a colon"))
		}
		if err := each(key); err != nil {
			return At(key, err)
		}
		if c.take('}') {
			return nil
		}
		if !c.take(',') {
			return At(key, c.Wrong("a comma or the end of the object"))
		}
	}
}

// Unknown is what an Object's function returns for a key that it does not know; known are
// those it does.
func Unknown(known ...string) error {
	return &Error{Value: "an unknown key", Want: "one of " + strings.Join(known, ", ")}
}

// Array reads an array and calls each for every element, with its index; each must read the
// value. Errors get the index as their place.
func (c *Cursor) Array(each func(i int) error) error {
	if !c.take('[') {
		return c.Wrong("an array")
	}
	if c.take(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := each(i); err != nil {
			return At("["+strconv.Itoa(i)+"]", err)
		}
		if c.take(']') {
			return nil
		}
		if !c.take(',') {
			return At("["+strconv.Itoa(i)+"]", c.Wrong("a comma or the end of the array"))
		}
	}
}

// Null reads null if that is next, and says whether it was.
func (c *Cursor) Null() bool { return c.word("null") }

func (c *Cursor) word(word string) bool {
	c.peek()
	end := c.at + len(word)
	if end > len(c.text) || string(c.text[c.at:end]) != word {
		return false
	}
	if end < len(c.text) && strings.IndexByte(" \t\r\n,]}", c.text[end]) < 0 {
		return false
	}
	c.at = end
	return true
}

// Bool reads true or false.
func (c *Cursor) Bool() (bool, error) {
	switch {
	case c.word("true"):
		return true, nil
	case c.word("false"):
		return false, nil
	}
	return false, c.Wrong("true or false")
}

// String reads a string.
func (c *Cursor) String() (string, error) {
	if c.peek() != '"' {
		return "", c.Wrong("a string")
	}
	plain := true
	for end := c.at + 1; end < len(c.text); end++ {
		switch b := c.text[end]; {
		case b == '\\':
			plain = false
			end++
		case b < ' ':
			return "", c.Wrong("a string without control characters")
		case b == '"':
			return c.unquote(end+1, plain)
		}
	}
	return "", c.Wrong("a string that ends")
}

func (c *Cursor) unquote(end int, plain bool) (text string, err error) {
	quoted := c.text[c.at:end]
	switch {
	case !utf8.Valid(quoted):
		return "", c.Wrong("a string in UTF-8")
	case plain:
		text = string(quoted[1 : len(quoted)-1])
	case json.Unmarshal(quoted, &text) != nil:
		return "", c.Wrong("a string with escapes that JSON knows")
	}
	c.at = end
	return text, nil
}

// Integer reads a whole number from least to most, without a fraction or exponent.
func Integer[T ~int | ~int8 | ~int16 | ~int32 | ~int64](c *Cursor, least, most T) (T, error) {
	start := c.at
	if text := c.number(); whole(text) {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && n >= int64(least) && n <= int64(most) {
			return T(n), nil
		}
	}
	c.at = start
	return 0, c.Wrong(between(int64(least), int64(most)))
}

// Unsigned reads a whole number from 0 to most.
func Unsigned[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *Cursor, most T) (T, error) {
	start := c.at
	if text := c.number(); whole(text) {
		if n, err := strconv.ParseUint(string(text), 10, 64); err == nil && n <= uint64(most) {
			return T(n), nil
		}
	}
	c.at = start
	return 0, c.Wrong(fmt.Sprintf("a whole number 0 to %d", most))
}

func between(least, most int64) string {
	if most == math.MaxInt64 {
		return fmt.Sprintf("a whole number of at least %d", least)
	}
	return fmt.Sprintf("a whole number %d to %d", least, most)
}

// Float reads a finite number of 32 or 64 bits.
func (c *Cursor) Float(bits int) (float64, error) {
	start := c.at
	if text := c.number(); isNumber(text) {
		if f, err := strconv.ParseFloat(string(text), bits); err == nil {
			return f, nil
		}
	}
	c.at = start
	return 0, c.Wrong("a number")
}

// AnyFloat reads a number, or one of the strings "NaN", "Infinity" and "-Infinity" that
// AppendFloat writes.
func (c *Cursor) AnyFloat(bits int) (float64, error) {
	if !c.Is('"') {
		return c.Float(bits)
	}
	start := c.at
	text, err := c.String()
	if err != nil {
		return 0, err
	}
	switch text {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	}
	c.at = start
	return 0, c.Wrong(`a number, "NaN", "Infinity" or "-Infinity"`)
}

// Number returns the text of a number as it stands in the line.
func (c *Cursor) Number() (string, error) {
	start := c.at
	if text := c.number(); isNumber(text) {
		return string(text), nil
	}
	c.at = start
	return "", c.Wrong("a number")
}

func (c *Cursor) number() []byte {
	c.peek()
	start := c.at
	for c.at < len(c.text) && strings.IndexByte("+-.0123456789eE", c.text[c.at]) >= 0 {
		c.at++
	}
	return c.text[start:c.at]
}
