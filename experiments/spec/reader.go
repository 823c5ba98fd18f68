package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tokenrouter/sim/latency"
)

// reader collects what is wrong while sections are read.
type reader struct {
	manual   []Key // every key that the document may have
	problems Problems
	seen     map[string]bool // schema paths that some section asked for
}

// section is a table that is being read. A key that nobody asks for is unknown; done reports it.
type section struct {
	r     *reader
	at    *node
	keys  table
	path  string // as shown: models[1].latency
	known map[string]bool
}

func (r *reader) section(n *node, path string) *section {
	s := &section{r: r, at: n, path: path, known: make(map[string]bool)}
	keys, ok := n.value.(table)
	if !ok {
		r.add(n, path, "want a table, not "+n.kind())
	}
	s.keys = keys
	return s
}

func (r *reader) add(n *node, path, text string) {
	r.problems = append(r.problems, n.problem(path, text))
}

func (s *section) name(key string) string {
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

// get returns the node of a key, or nil. From now on the key is known.
func (s *section) get(key string) *node {
	s.known[key] = true
	if s.r.seen != nil {
		s.r.seen[schemaPath(s.name(key))] = true
	}
	return s.keys[key]
}

// has reports whether a key is given, without making it known.
func (s *section) has(key string) bool { return s.keys[key] != nil }

// wrong reports a problem with the value of a key that is given.
func (s *section) wrong(key, format string, args ...any) {
	if n := s.keys[key]; n != nil {
		s.r.add(n, s.name(key), fmt.Sprintf(format, args...))
		return
	}
	s.missing(key, fmt.Sprintf(format, args...))
}

// missing reports a key that is not there but must be.
func (s *section) missing(key, text string) {
	s.r.problems = append(s.r.problems,
		Problem{File: s.at.file, Line: s.at.line, Key: s.name(key), Text: "missing, " + text})
}

// done reports the keys that nobody asked for.
func (s *section) done() {
	for _, key := range s.keys.keys() {
		if n := s.keys[key]; !s.known[key] {
			text := s.unknown(key)
			if n.file != s.at.file {
				text += fmt.Sprintf("; %s = [] in %s takes it out", key, s.at.file)
			}
			s.r.add(n, s.name(key), text)
		}
	}
}

// schemaPath turns models[1].latency into models[].latency.
func schemaPath(path string) string {
	var b strings.Builder
	inside := false
	for _, c := range path {
		switch {
		case c == '[':
			inside = true
			b.WriteString("[]")
		case c == ']':
			inside = false
		case !inside:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// text reads a string that is not empty.
func (s *section) text(key, otherwise string) string {
	n := s.get(key)
	if n == nil {
		return otherwise
	}
	v, ok := n.value.(string)
	if !ok || strings.TrimSpace(v) == "" {
		s.wrong(key, "want a string that is not empty")
		return otherwise
	}
	return v
}

// word reads one of some strings. An empty otherwise means that the key must be there.
func (s *section) word(key, otherwise string, words ...string) string {
	n := s.get(key)
	if n == nil {
		if otherwise == "" {
			s.missing(key, "want one of "+quoteAll(words))
		}
		return otherwise
	}
	v, ok := n.value.(string)
	if ok && slices.Contains(words, v) {
		return v
	}
	hint := ""
	if best := Nearest(v, words); ok && best != "" {
		hint = ", the nearest is " + quote(best)
	}
	s.wrong(key, "want one of %s%s", quoteAll(words), hint)
	return ""
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, ", ")
}

func (s *section) boolean(key string, otherwise bool) bool {
	n := s.get(key)
	if n == nil {
		return otherwise
	}
	v, ok := n.value.(bool)
	if !ok {
		s.wrong(key, "want true or false")
		return otherwise
	}
	return v
}

// whole reads an integer of least to most.
func (s *section) whole(key string, otherwise, least, most int64) int64 {
	n := s.get(key)
	if n == nil {
		return otherwise
	}
	if v, ok := s.r.wholeAt(n, s.name(key), least, most); ok {
		return v
	}
	return otherwise
}

func (r *reader) wholeAt(n *node, path string, least, most int64) (int64, bool) {
	v, ok := n.value.(int64)
	if !ok || v < least || v > most {
		want := fmt.Sprintf("want an integer of %d to %d", least, most)
		if most >= math.MaxInt32 {
			want = fmt.Sprintf("want an integer of at least %d", least)
			if ok && v > most {
				want = fmt.Sprintf("want at most %d", most)
			}
		}
		r.add(n, path, want)
		return 0, false
	}
	return v, true
}

// number reads a finite float or integer of least to most.
func (s *section) number(key string, otherwise, least, most float64) float64 {
	n := s.get(key)
	if n == nil {
		return otherwise
	}
	if v, ok := s.r.numberAt(n, s.name(key), least, most); ok {
		return v
	}
	return otherwise
}

func (r *reader) numberAt(n *node, path string, least, most float64) (float64, bool) {
	var v float64
	switch given := n.value.(type) {
	case float64:
		v = given
	case int64:
		v = float64(given)
	default:
		r.add(n, path, "want a number, not "+n.kind())
		return 0, false
	}
	if v >= least && v <= most && !math.IsInf(v, 0) {
		return v, true
	}
	switch {
	case math.IsInf(most, 1) && least == math.SmallestNonzeroFloat64:
		r.add(n, path, "want a finite number above 0")
	case math.IsInf(most, 1):
		r.add(n, path, fmt.Sprintf("want a finite number of at least %v", least))
	case least == math.SmallestNonzeroFloat64:
		r.add(n, path, fmt.Sprintf("want a number above 0 and at most %v", most))
	default:
		r.add(n, path, fmt.Sprintf("want a number of %v to %v", least, most))
	}
	return 0, false
}

// aboveZero is the least of a number that must not be 0.
const aboveZero = math.SmallestNonzeroFloat64

// duration reads a time such as "6.0ms", in nanoseconds, of at least leastNs.
func (s *section) duration(key string, otherwiseNs, leastNs int64) int64 {
	n := s.get(key)
	if n == nil {
		return otherwiseNs
	}
	if ns, ok := s.r.durationAt(n, s.name(key), leastNs); ok {
		return ns
	}
	return otherwiseNs
}

func (r *reader) durationAt(n *node, path string, leastNs int64) (int64, bool) {
	text, ok := n.value.(string)
	if !ok {
		r.add(n, path, `want a duration with its unit, such as "6.0ms"`)
		return 0, false
	}
	d, err := time.ParseDuration(text)
	if err != nil || text == "0" {
		r.add(n, path, `want a duration with its unit, such as "6.0ms"`)
		return 0, false
	}
	if ns := d.Nanoseconds(); ns >= leastNs && ns <= latency.MaxStepNs {
		return ns, true
	}
	want := "want a duration of at least 0"
	if leastNs > 0 {
		want = "want a duration of at least " + time.Duration(leastNs).String()
	}
	if d.Nanoseconds() > latency.MaxStepNs {
		want = "want at most " + time.Duration(latency.MaxStepNs).String()
	}
	r.add(n, path, want)
	return 0, false
}

var byteUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// bytes reads a size such as "80GiB", in bytes; 0 if the key is not there.
func (s *section) bytes(key string) float64 {
	n := s.get(key)
	if n == nil {
		return 0
	}
	text, ok := n.value.(string)
	for _, u := range byteUnits {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !ok || !found {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err == nil && v > 0 && v*u.bytes < 1<<60 {
			return v * u.bytes
		}
		break
	}
	s.wrong(key, `want a size above 0 with its unit, such as "80GiB"`)
	return 0
}

// list reads an array; nil if the key is not there or is no array.
func (s *section) list(key string) list {
	n := s.get(key)
	if n == nil {
		return nil
	}
	return s.r.listAt(n, s.name(key))
}

func (r *reader) listAt(n *node, path string) list {
	l, ok := n.value.(list)
	if !ok || len(l) == 0 {
		r.add(n, path, "want an array that is not empty")
		return nil
	}
	return l
}

// isEmpty reports whether a node is an array without elements.
func isEmpty(n *node) bool {
	l, ok := n.value.(list)
	return ok && len(l) == 0
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// wholes reads an array of integers.
func (r *reader) wholes(n *node, path string, least, most int64) []int {
	var out []int
	for i, e := range r.listAt(n, path) {
		v, _ := r.wholeAt(e, element(path, i), least, most)
		out = append(out, int(v))
	}
	return out
}

func (s *section) wholes(key string, least, most int64) []int {
	if n := s.get(key); n != nil {
		return s.r.wholes(n, s.name(key), least, most)
	}
	return nil
}

// numbers reads an array of floats.
func (r *reader) numbers(n *node, path string, least, most float64) []float64 {
	var out []float64
	for i, e := range r.listAt(n, path) {
		v, _ := r.numberAt(e, element(path, i), least, most)
		out = append(out, v)
	}
	return out
}

func (s *section) numbers(key string, least, most float64) []float64 {
	if n := s.get(key); n != nil {
		return s.r.numbers(n, s.name(key), least, most)
	}
	return nil
}

// matrix reads an array of arrays of floats.
func (s *section) matrix(key string, least, most float64) [][]float64 {
	var out [][]float64
	for i, e := range s.list(key) {
		out = append(out, s.r.numbers(e, element(s.name(key), i), least, most))
	}
	return out
}

// texts reads an array of strings.
func (s *section) texts(key string) []string {
	var out []string
	for i, e := range s.list(key) {
		v, ok := e.value.(string)
		if !ok || v == "" {
			s.r.add(e, element(s.name(key), i), "want a string that is not empty")
		}
		out = append(out, v)
	}
	return out
}

// sub opens a table inside; nil if the key is not there.
func (s *section) sub(key string) *section {
	n := s.get(key)
	if n == nil {
		return nil
	}
	return s.r.section(n, s.name(key))
}

// subs opens an array of tables inside, which may be empty.
func (s *section) subs(key string) []*section {
	n := s.get(key)
	if n == nil || isEmpty(n) {
		return nil
	}
	var out []*section
	for i, n := range s.r.listAt(n, s.name(key)) {
		out = append(out, s.r.section(n, element(s.name(key), i)))
	}
	return out
}
