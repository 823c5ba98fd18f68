package model

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// reader reads the keys of one JSON object. The first error stays, and names the key.
type reader struct {
	prefix string // before the key in an error, such as "rope_scaling."
	values map[string]json.RawMessage
	err    error
}

// readObject takes a whole JSON file apart.
func readObject(document []byte) (*reader, error) {
	if err := CheckJSON(document); err != nil {
		return nil, err
	}
	r := &reader{}
	if err := json.Unmarshal(document, &r.values); err != nil || r.values == nil {
		return nil, fmt.Errorf("%s, want an object", kindOf(document))
	}
	return r, nil
}

func (r *reader) fail(key, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s%s %s", r.prefix, key, fmt.Sprintf(format, args...))
	}
}

// wrong records that a key has a value of the wrong kind or outside its range.
func (r *reader) wrong(key, want string) { r.fail(key, "= %s, want %s", kindOf(r.values[key]), want) }

// has reports whether a key has a value other than null, which counts as absent.
func (r *reader) has(key string) bool {
	raw, ok := r.values[key]
	return ok && string(raw) != "null"
}

// need records that a key is absent.
func (r *reader) need(key string) bool {
	if !r.has(key) {
		r.fail(key, "is missing")
		return false
	}
	return true
}

// whole returns a whole number that must be there, from least to most.
func (r *reader) whole(key string, least, most int) int {
	if !r.need(key) {
		return 0
	}
	n, err := strconv.ParseInt(string(r.values[key]), 10, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		r.wrong(key, fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return int(n)
}

// wholeOr is whole with a value for an absent key.
func (r *reader) wholeOr(key string, least, most, absent int) int {
	if !r.has(key) {
		return absent
	}
	return r.whole(key, least, most)
}

// number returns a finite number above 0 that must be there.
func (r *reader) number(key string) float64 {
	if !r.need(key) {
		return 0
	}
	x, err := strconv.ParseFloat(string(r.values[key]), 64)
	if err != nil || !(x > 0 && x <= math.MaxFloat64) {
		r.wrong(key, "a finite number above 0")
		return 0
	}
	return x
}

// numberOr is number with a value for an absent key.
func (r *reader) numberOr(key string, absent float64) float64 {
	if !r.has(key) {
		return absent
	}
	return r.number(key)
}

// flagOr returns a truth value.
func (r *reader) flagOr(key string, absent bool) bool {
	switch {
	case !r.has(key):
		return absent
	case string(r.values[key]) == "true":
		return true
	case string(r.values[key]) != "false":
		r.wrong(key, "true or false")
	}
	return false
}

// text returns a string, "" for an absent key.
func (r *reader) text(key string) string {
	var s string
	if r.has(key) && json.Unmarshal(r.values[key], &s) != nil {
		r.wrong(key, "a string")
	}
	return s
}

// texts returns a list of strings, nil for an absent key.
func (r *reader) texts(key string) []string {
	var list []string
	if r.has(key) && json.Unmarshal(r.values[key], &list) != nil {
		r.wrong(key, "a list of strings")
	}
	return list
}

// ids returns token ids below vocab: a number or a list of numbers, nil for an absent key.
func (r *reader) ids(key string, vocab int) []int {
	if !r.has(key) {
		return nil
	}
	list := []json.RawMessage{r.values[key]}
	if strings.HasPrefix(string(r.values[key]), "[") {
		if err := json.Unmarshal(r.values[key], &list); err != nil {
			r.wrong(key, "a list of token ids")
			return nil
		}
	}
	ids := make([]int, len(list))
	for i, raw := range list {
		id, err := strconv.ParseInt(string(raw), 10, 32)
		if err != nil || id < 0 || id >= int64(vocab) {
			r.fail(key, "has %s, want token ids from 0 to %d", kindOf(raw), vocab-1)
			return nil
		}
		ids[i] = int(id)
	}
	return ids
}

// object returns the reader of an object below; nil for an absent key.
func (r *reader) object(key string) *reader {
	if !r.has(key) {
		return nil
	}
	below := &reader{prefix: r.prefix + key + "."}
	if err := json.Unmarshal(r.values[key], &below.values); err != nil {
		r.wrong(key, "an object")
		return nil
	}
	return below
}

// only refuses keys that are none of known.
func (r *reader) only(known ...string) {
	for _, key := range sortedKeys(r.values) {
		if r.has(key) && !slices.Contains(known, key) {
			r.fail(key, "= %s is not supported", kindOf(r.values[key]))
		}
	}
}
