package chat

import (
	"fmt"

	"github.com/ardanlabs/jinja"
)

// Bounds on what a template, the file of others, may ask for. Without them it could end the process: a stack
// that is full can not be recovered from.
const (
	fileBytesMax   = 1 << 24 // published files have up to 1.2 MB
	sourceBytesMax = 1 << 20 // and templates up to 30 KiB
	nestedMax      = 200     // brackets in brackets
	macrosMax      = 500     // macros that call macros; Python allows for 1,000 calls of any kind
	rangeMax       = 100_000 // jinja2.sandbox.MAX_RANGE, which transformers' templates run under
)

// What a rewritten template calls at both ends of each macro.
const macroBegins, macroEnds = "tokenrouter_macro_begins", "tokenrouter_macro_ends"

// limited gives a template's own run of the functions that keep the bounds.
func limited(values map[string]jinja.Value) {
	depth := 0
	values[macroBegins] = jinja.NewCallable(macroBegins, func([]jinja.Value, map[string]jinja.Value,
	) (jinja.Value, error) {
		if depth++; depth > macrosMax {
			return jinja.None(), fmt.Errorf("macros call macros more than %d deep", macrosMax)
		}
		return jinja.NewString(""), nil
	})
	values[macroEnds] = jinja.NewCallable(macroEnds, func([]jinja.Value, map[string]jinja.Value,
	) (jinja.Value, error) {
		depth--
		return jinja.NewString(""), nil
	})
	values["range"] = jinja.NewCallable("range", numbers)
}

// numbers is range of Python's.
func numbers(given []jinja.Value, _ map[string]jinja.Value) (jinja.Value, error) {
	bounds := [3]int64{0, 0, 1}
	switch {
	case len(given) < 1 || len(given) > 3:
		return jinja.None(), fmt.Errorf("range of %d numbers, want 1 to 3", len(given))
	case len(given) == 1:
		given = []jinja.Value{jinja.NewInt(0), given[0]}
	}
	for i, v := range given {
		if !v.IsInt() {
			return jinja.None(), fmt.Errorf("range of %v, want whole numbers", v)
		}
		bounds[i] = v.AsInt()
	}
	first, end, step := bounds[0], bounds[1], bounds[2]
	if step == 0 {
		return jinja.None(), fmt.Errorf("range with step 0")
	}
	var list []jinja.Value
	for i := first; step > 0 && i < end || step < 0 && i > end; i += step {
		if len(list) == rangeMax {
			return jinja.None(), fmt.Errorf("range of more than %d numbers", rangeMax)
		}
		list = append(list, jinja.NewInt(i))
	}
	return jinja.NewList(list), nil
}
