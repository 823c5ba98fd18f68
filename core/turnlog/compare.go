package turnlog

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"unicode"
)

// firstDifference walks two values of one type in order and returns the first field in which
// they differ, "" if there is none. Nil and empty slices are equal, and so are two NaN.
func firstDifference(a, b reflect.Value) (field, inA, inB string) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return differs(a.IsNil() == b.IsNil(), a, b)
		}
		return firstDifference(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			field, inA, inB = firstDifference(a.Field(i), b.Field(i))
			if field != "" {
				return join(name(a.Type().Field(i).Name), field), inA, inB
			}
		}
		return "", "", ""
	case reflect.Slice, reflect.Array:
		for i := range max(a.Len(), b.Len()) {
			index := fmt.Sprintf("[%d]", i)
			if i >= a.Len() {
				return index, "nothing", show(b.Index(i))
			}
			if i >= b.Len() {
				return index, show(a.Index(i)), "nothing"
			}
			if field, inA, inB = firstDifference(a.Index(i), b.Index(i)); field != "" {
				return join(index, field), inA, inB
			}
		}
		return "", "", ""
	case reflect.Float32, reflect.Float64:
		return differs(math.Float64bits(a.Float()) == math.Float64bits(b.Float()) ||
			math.IsNaN(a.Float()) && math.IsNaN(b.Float()), a, b)
	default:
		return differs(a.Equal(b), a, b)
	}
}

// here is the field of a value that is the whole of what is compared.
const here = "."

func differs(equal bool, a, b reflect.Value) (field, inA, inB string) {
	if equal {
		return "", "", ""
	}
	return here, show(a), show(b)
}

func join(outer, inner string) string {
	switch {
	case inner == here:
		return outer
	case inner[0] == '[':
		return outer + inner
	}
	return outer + "." + inner
}

// name turns the name of a Go field into the log's style: TokensMax is tokens_max.
func name(field string) string {
	if field == "LogProb" {
		return "logprob"
	}
	var out strings.Builder
	for i, r := range field {
		if unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(field[i-1])) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

func show(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v)
}
