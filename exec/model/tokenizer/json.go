package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// value is a JSON value and its place: file and key path, as in pre_tokenizer.pretokenizers[0].type.
type value struct {
	file, path string
	raw        json.RawMessage
	problem    *error // the first of the file; all reading goes on with zero values after it
}

// refuse notes a problem: what was given and what was wanted. Only the first counts.
func (v value) refuse(format string, arguments ...any) {
	if *v.problem == nil {
		*v.problem = fmt.Errorf("%s: %s%s", v.file, v.path, fmt.Sprintf(format, arguments...))
	}
}

func (v value) given() string {
	if len(v.raw) > 40 {
		return strings.ToValidUTF8(string(v.raw[:40]), "") + "..."
	}
	return string(v.raw)
}

func (v value) isNull() bool { return len(v.raw) == 0 || string(v.raw) == "null" }

// read decodes the value, which must be of the kind that wanted names.
func read[T any](v value, wanted string) (content T) {
	if v.isNull() {
		v.refuse(" is absent or null, want %s", wanted)
		return content
	}
	if err := json.Unmarshal(v.raw, &content); err != nil {
		v.refuse(" = %s, want %s", v.given(), wanted)
	}
	return content
}

func (v value) text() string { return read[string](v, "a string") }

// flag returns the value, or absent where it is null or missing.
func (v value) flag(absent bool) bool {
	if v.isNull() {
		return absent
	}
	return read[bool](v, "true or false")
}

// number returns an integer from 0 to most.
func (v value) number(most int) int {
	n := read[int](v, "a whole number")
	if n < 0 || n > most {
		v.refuse(" = %s, want 0 to %d", v.given(), most)
		return 0
	}
	return n
}

// character returns the one character of a string.
func (v value) character() rune {
	text := v.text()
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 || size != len(text) {
		v.refuse(" = %s, want a string of one character", v.given())
	}
	return r
}

func (v value) list() []value {
	raw := read[[]json.RawMessage](v, "a list")
	items := make([]value, len(raw))
	for i := range raw {
		items[i] = value{file: v.file, path: fmt.Sprintf("%s[%d]", v.path, i), raw: raw[i], problem: v.problem}
	}
	return items
}

// object is a JSON object.
type object struct {
	value
	fields map[string]json.RawMessage
}

// object returns the value as an object all of whose keys are among known; without known, any are.
func (v value) object(known ...string) object {
	o := object{value: v, fields: read[map[string]json.RawMessage](v, "an object")}
	for _, key := range slices.Sorted(maps.Keys(o.fields)) {
		if len(known) > 0 && !slices.Contains(known, key) {
			o.at(key).refuse(" is not known, want one of %s", strings.Join(known, ", "))
		}
	}
	return o
}

// at returns the value of a key; it is null where the key is absent.
func (o object) at(key string) value {
	path := key
	if o.path != "" {
		path = o.path + "." + key
	}
	return value{file: o.file, path: path, raw: bytes.TrimSpace(o.fields[key]), problem: o.problem}
}

// kind returns the type that an object names, before its other keys are looked at.
func (v value) kind() string {
	return v.object().at("type").text()
}
