package spec

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/core/chain"
)

// AxisNames are the axes that a sweep may have, outermost first.
var AxisNames = []string{
	"policy", "concurrency", "rate", "variation", "p", "latency_scale", "host_call", "pages", "admission",
	"token_budget", "prompt_tokens", "output_tokens", "max_wait", "thresholds",
}

// axisPaths are the keys that axes set; those of "each model" stand for every model.
var axisPaths = map[string][]string{
	"policy": {"policy", "kind"}, "concurrency": {"workload", "concurrency"}, "rate": {"workload", "rate"},
	"variation": {"workload", "variation"}, "p": {"router", "p"},
	"latency_scale": {"models", "*", "latency", "scale"}, "host_call": {"models", "*", "host_call"},
	"pages": {"models", "*", "kv", "pages"}, "admission": {"scheduler", "admission"},
	"token_budget": {"scheduler", "token_budget"}, "prompt_tokens": {"workload", "prompt"},
	"output_tokens": {"workload", "output"}, "max_wait": {"policy", "max_wait"},
	"thresholds": {"policy", "thresholds"},
}

// sweep holds the axes as given. An empty array is no axis: it takes out one of a spec that is extended.
type sweep struct{ given table }

func (s sweep) over(axis string) bool { return s.given[axis] != nil }

// setting gives a key of a point another value.
type setting struct {
	path  []string
	value *node
}

// combination is one point of a sweep: how it is called, and its document.
type combination struct {
	values []Value
	root   *node
}

func (l *loader) readSweep(s *section) sweep {
	out := sweep{given: make(table)}
	if s == nil {
		return out
	}
	for _, axis := range AxisNames {
		if n := s.get(axis); n != nil && !isEmpty(n) {
			out.given[axis] = n
		}
	}
	s.done()
	return out
}

// combinations crosses the axes, variants outermost.
func (s sweep) combinations(l *loader, variants []variant) []combination {
	var all []combination
	for _, v := range variants {
		c := combination{root: v.root}
		if l.spec.Variants {
			c.values = []Value{{Axis: VariantAxis, Text: v.name}}
		}
		all = append(all, c)
	}
	for _, axis := range AxisNames {
		n := s.given[axis]
		if n == nil {
			continue
		}
		var wider []combination
		for _, c := range all {
			elements := s.elements(l, axis, n, c)
			seen := make(map[string]bool)
			for i, e := range elements {
				v := valueOf(axis, e)
				if seen[v.Text] {
					l.add(e, element("sweep."+axis, i), "want no value twice")
				}
				seen[v.Text] = true
				root := c.root
				for _, set := range s.settings(l, axis, e, c.root) {
					root = root.with(set.path, set.value)
				}
				wider = append(wider, combination{append(slices.Clone(c.values), v), root})
			}
			if len(wider) > pointsMax {
				return wider
			}
		}
		if len(wider) > 0 { // an axis at fault is reported; go on without it, to find what else is wrong
			all = wider
		}
	}
	return all
}

// elements lists the values of an axis. Thresholds may be a pattern, whose sets depend on the concurrency.
func (s sweep) elements(l *loader, axis string, n *node, c combination) list {
	pattern, ok := n.value.(string)
	if axis != "thresholds" || !ok {
		if axis == "thresholds" {
			for _, e := range l.listAt(n, "sweep."+axis) {
				if _, isList := e.value.(list); !isList {
					l.add(n, "sweep."+axis, `want an array of sets such as [[1, 1], [1, 2]], or a pattern such as "1,_"`)
					return nil
				}
			}
		}
		return l.listAt(n, "sweep."+axis)
	}
	hold, ok := parsePattern(pattern)
	concurrency, known := s.concurrency(c)
	switch {
	case !ok:
		l.add(n, "sweep."+axis, `want an array of sets, or a pattern such as "1,_", a threshold or _ a model`)
		return nil
	case !known:
		if concurrency > patternMax {
			l.add(n, "sweep."+axis, fmt.Sprintf("want an array of sets at N = %d: a pattern is for N up to %d",
				concurrency, patternMax))
		}
		return nil
	}
	sets, err := chain.Sets(concurrency, len(hold), hold)
	if err != nil {
		l.add(n, "sweep."+axis, fmt.Sprintf("want a pattern with a feasible set at N = %d: %v", concurrency, err))
		return nil
	}
	var out list
	for _, set := range sets {
		var inner list
		for _, b := range set {
			inner = append(inner, &node{value: int64(b), file: n.file, line: n.line})
		}
		out = append(out, &node{value: inner, file: n.file, line: n.line})
	}
	return out
}

// patternMax is the largest concurrency for which a pattern is written out as sets.
const patternMax = 1024

// concurrency is that of a combination; known if a pattern can be written out for it.
func (s sweep) concurrency(c combination) (n int, known bool) {
	for _, v := range c.values {
		if v.Axis == "concurrency" {
			return int(v.Number), v.IsNumber && v.Number >= 1 && v.Number <= patternMax
		}
	}
	if w, ok := c.root.value.(table)["workload"]; ok {
		if t, ok := w.value.(table); ok && t["concurrency"] != nil {
			n, ok := t["concurrency"].value.(int64)
			return int(n), ok && n >= 1 && n <= patternMax
		}
	}
	return 0, false
}

// parsePattern reads "1,_": a threshold held at 1 and a free one, 0.
func parsePattern(text string) (hold []int, ok bool) {
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "_" {
			hold = append(hold, 0)
			continue
		}
		b, err := strconv.Atoi(part)
		if err != nil || b < 1 {
			return nil, false
		}
		hold = append(hold, b)
	}
	return hold, true
}

// settings says which keys of a document an element of an axis sets.
func (s sweep) settings(l *loader, axis string, e, root *node) []setting {
	path := axisPaths[axis]
	if path[0] != "models" {
		return []setting{{path, e}}
	}
	models := 0
	if n := root.value.(table)["models"]; n != nil {
		given, _ := n.value.(list)
		models = len(given)
	}
	each, perModel := e.value.(list)
	if perModel && (len(each) != models || axis != "latency_scale") {
		l.add(e, "sweep."+axis, fmt.Sprintf("want a value for all, or latency_scale with %d, one a model", models))
		return nil
	}
	var out []setting
	for m := range models {
		value := e
		if perModel {
			value = each[m]
		}
		own := slices.Clone(path)
		own[1] = strconv.Itoa(m)
		out = append(out, setting{own, value})
	}
	return out
}

// valueOf names an element: numbers and words as they are, durations in milliseconds, sets as 1,3.
func valueOf(axis string, e *node) Value {
	v := Value{Axis: axis}
	switch given := e.value.(type) {
	case int64:
		v.Number, v.IsNumber = float64(given), true
	case float64:
		v.Number, v.IsNumber = given, true
	case string:
		v.Text = given
		if d, err := time.ParseDuration(given); err == nil && (axis == "host_call" || axis == "max_wait") {
			v.Number, v.IsNumber = float64(d)/1e6, true
		}
	case list:
		parts := make([]string, len(given))
		for i, inner := range given {
			parts[i] = strings.TrimSuffix(inner.text(), ".0")
		}
		v.Text = strings.Join(parts, ",")
	default:
		v.Text = e.text()
	}
	if v.IsNumber {
		v.Text = strconv.FormatFloat(v.Number, 'g', -1, 64)
	}
	return v
}

// axes lists the values that the combinations have on each axis.
func (s sweep) axes(all []combination, variants bool) []Axis {
	var axes []Axis
	for _, name := range append([]string{VariantAxis}, AxisNames...) {
		if !s.over(name) && !(variants && name == VariantAxis) {
			continue
		}
		axis := Axis{Name: name}
		for _, c := range all {
			for _, v := range c.values {
				if v.Axis == name && !slices.Contains(axis.Values, v.Text) {
					axis.Values = append(axis.Values, v.Text)
				}
			}
		}
		axes = append(axes, axis)
	}
	return axes
}

// keyOf is the name of a point.
func keyOf(values []Value) string {
	if len(values) == 0 {
		return "point"
	}
	var parts []string
	for _, v := range values {
		if v.Text != "" {
			parts = append(parts, v.Axis+"="+v.Text)
		}
	}
	return strings.Join(parts, " ")
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
