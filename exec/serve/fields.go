package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
)

// fields are those of a request's body. Each is asked for once; what is left over is refused. The first thing
// wrong is kept.
type fields struct {
	raw    map[string]json.RawMessage
	names  []string // of raw, in their order
	failed *failure
}

// readFields reads the object that a body is.
func readFields(body []byte) (*fields, *failure) {
	f := &fields{raw: make(map[string]json.RawMessage)}
	d := json.NewDecoder(bytes.NewReader(body))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, invalid("", "this is no JSON object: %v", orKind(err, body))
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, invalid("", "the body is no JSON: %v", err)
		}
		name, _ := key.(string) // keys are
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, invalid(name, "the body is no JSON at %s: %v", name, err)
		}
		if _, twice := f.raw[name]; twice {
			return nil, invalid(name, "%s is given twice", name)
		}
		f.raw[name] = raw
		f.names = append(f.names, name)
	}
	if _, err := d.Token(); err != nil {
		return nil, invalid("", "the body is no JSON: %v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("", "there is more behind the JSON object")
	}
	return f, nil
}

// orKind says what stands in place of an object.
func orKind(err error, body []byte) error {
	switch {
	case err != nil && len(bytes.TrimSpace(body)) == 0:
		return errors.New("it is empty")
	case err != nil:
		return err
	default:
		return errors.New("it is another kind of value")
	}
}

// empty says whether a value is as good as none: null, "", [] or {}.
func empty(raw json.RawMessage) bool {
	if raw[0] == '[' || raw[0] == '{' {
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	}
	return string(raw) == "null" || string(raw) == `""`
}

// take returns a field's value, and whether it is set: given and not empty.
func take[T any](f *fields, name, want string) (value T, set bool) {
	raw, given := f.raw[name]
	delete(f.raw, name)
	if !given || empty(raw) || f.failed != nil {
		return value, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(&value)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		f.failed = invalid(name, "%s: want %s, not %s", name, want, kind.Value)
	case err != nil:
		f.failed = invalid(name, "%s: want %s: %s", name, want, strings.TrimPrefix(err.Error(), "json: "))
	}
	if err != nil {
		return value, false
	}
	return value, true
}

// number is a field within bounds.
func number(f *fields, name string, standard, least, most float64) (value float64, set bool) {
	value, set = take[float64](f, name, "a number")
	if !set {
		return standard, false
	}
	if !(value >= least && value <= most) {
		f.wrong(name, "%s = %v, want %v to %v", name, value, least, most)
		return standard, false
	}
	return value, true
}

// whole is a field that is a whole number within bounds.
func whole(f *fields, name string, standard, least, most int64) (value int64, set bool) {
	value, set = take[int64](f, name, "a whole number")
	if !set {
		return standard, false
	}
	if value < least || value > most {
		f.wrong(name, "%s = %d, want %d to %d", name, value, least, most)
		return standard, false
	}
	return value, true
}

// boolean is a field that is true or false, false if not set.
func boolean(f *fields, name string) bool {
	value, _ := take[bool](f, name, "true or false")
	return value
}

// wrong keeps the first thing wrong.
func (f *fields) wrong(param, format string, args ...any) {
	if f.failed == nil {
		f.failed = invalid(param, format, args...)
	}
}

// labels are fields that name something for the one who asks, and change no answer.
var labels = []string{"user", "safety_identifier", "prompt_cache_key", "metadata"}

// neutral are values of fields that ask for what is done anyway.
var neutral = map[string][]string{
	"response_format":     {`{"type":"text"}`},
	"tool_choice":         {`"none"`, `"auto"`}, // there are no tools
	"function_call":       {`"none"`, `"auto"`},
	"parallel_tool_calls": {"true", "false"},
	"modalities":          {`["text"]`},
	"service_tier":        {`"auto"`, `"default"`},
	"store":               {"false"},
	"echo":                {"false"},
	"best_of":             {"1"},
	"repetition_penalty":  {"1", "1.0"},
	"length_penalty":      {"1", "1.0"},
	"use_beam_search":     {"false"},
	"min_tokens":          {"0"},
	"skip_special_tokens": {"true"},
}

// rest refuses what nobody has asked for.
func (f *fields) rest() *failure {
	for _, name := range f.names {
		raw, left := f.raw[name]
		if f.failed != nil || !left || empty(raw) || slices.Contains(labels, name) ||
			slices.ContainsFunc(neutral[name], func(text string) bool { return same(raw, text) }) {
			continue
		}
		if values := neutral[name]; values != nil {
			f.wrong(name, "%s: want nothing, or %s: this server can do no other", name, strings.Join(values, " or "))
		} else {
			f.wrong(name, "%s is not a field of this server: /openapi.json lists them", name)
		}
	}
	return f.failed
}

// same says whether two JSON values are.
func same(raw json.RawMessage, text string) bool {
	var a, b any
	return json.Unmarshal(raw, &a) == nil && json.Unmarshal([]byte(text), &b) == nil && reflect.DeepEqual(a, b)
}
