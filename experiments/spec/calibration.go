package spec

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"tokenrouter/experiments/result"
)

// calibrationParts are what a calibration file may say of a system.
var calibrationParts = []string{"models", "devices", "links", "router", "scheduler"}

// calibrated lays a document over the calibration files that it names, which it then need not have in it.
func (l *loader) calibrated(root *node, variant bool) *node {
	own := root.value.(table)
	files := own["calibration"]
	if files == nil {
		return root
	}
	var below *node
	m := merger{variant: variant}
	for i, f := range filesOf(files) {
		key := "calibration"
		if f != files {
			key = element(key, i)
		}
		c := l.calibrationFile(f, key)
		switch {
		case c == nil:
		case below == nil:
			below = c
		case isList(c, "models") && isList(below, "models"):
			l.add(f, key, "want one file that has all models, which others change by name, as in models.LLM.node = 1")
		default:
			below = m.merge(below, c, "")
		}
	}
	if below == nil {
		if len(filesOf(files)) == 0 {
			l.add(files, "calibration", "want the name of a file, or an array of them")
		}
		below = &node{value: table{}, file: root.file, line: root.line}
	}
	if isList(root, "models") && below.value.(table)["models"] != nil {
		l.add(own["models"], "models",
			"want changes by name beside calibration, which has the models, as in models.LLM.node = 1")
		root = root.without("models")
	}
	merged := m.merge(below, root, "")
	l.problems = append(l.problems, m.problems...)
	return merged
}

// filesOf are the elements of an array, or the one that stands for itself.
func filesOf(n *node) list {
	switch v := n.value.(type) {
	case list:
		return v
	case string:
		return list{n}
	default:
		return nil
	}
}

func isList(root *node, key string) bool {
	n := root.value.(table)[key]
	if n == nil {
		return false
	}
	_, ok := n.value.(list)
	return ok
}

// without is the tree without a key at its top.
func (n *node) without(key string) *node {
	t := maps.Clone(n.value.(table))
	delete(t, key)
	return &node{value: t, file: n.file, line: n.line}
}

// calibrationFile reads the file that a node names; nil if it is wrong.
func (l *loader) calibrationFile(n *node, key string) *node {
	name, ok := n.value.(string)
	if !ok || name == "" {
		l.add(n, key, "want the name of a calibration file, as a string")
		return nil
	}
	path, content := l.fileAt(n, key)
	if path == "" {
		return nil
	}
	return l.calibrationText(path, l.named(path), string(content))
}

// calibrationText reads a calibration: where its numbers come from, and parts of a system. It is the format
// of what calibrate writes, too.
func (l *loader) calibrationText(path, name, text string) *node {
	root, problems := parseDocument(path, text)
	if problems != nil {
		l.problems = append(l.problems, problems...)
		return nil
	}
	top := l.section(root, "")
	if s := top.sub("calibration"); s == nil {
		top.missing("calibration", "want a table with device, engine, date, source and range: where the numbers"+
			" come from and hold")
	} else {
		c := s.calibration(root)
		c.File = name
		if !slices.ContainsFunc(l.spec.Calibrations, func(o result.Calibration) bool { return o.File == name }) {
			l.spec.Calibrations = append(l.spec.Calibrations, c)
		}
	}
	parts := 0
	for _, key := range calibrationParts {
		if top.get(key) != nil {
			parts++
		}
	}
	if parts == 0 {
		top.missing("models", "want models, as calibrate writes them, or another part of a system")
	}
	top.done()
	return root.without("calibration")
}

// calibration reads where the numbers of a document come from.
func (s *section) calibration(root *node) result.Calibration {
	var c result.Calibration
	for _, field := range []struct {
		key  string
		into *string
		want string
	}{
		{"device", &c.Device, "what it was measured on"},
		{"engine", &c.Engine, "what ran the models"},
		{"date", &c.Date, `a date such as "2026-10-02", "2026-10" or "2026"`},
		{"source", &c.Source, "the publication, or how it was measured"},
		{"range", &c.Range, "where the numbers hold"},
	} {
		if *field.into = s.text(field.key, ""); !s.has(field.key) {
			s.missing(field.key, "want "+field.want)
		}
	}
	if c.Date != "" && !isDate(c.Date) {
		s.wrong("date", `want a date such as "2026-10-02", "2026-10" or "2026"`)
	}
	for _, inner := range s.subs("constants") {
		of := result.Constant{Key: inner.text("key", ""), From: inner.text("from", "")}
		for _, key := range []string{"key", "from"} {
			if !inner.has(key) {
				inner.missing(key, "want key, as in models.LLM.latency.step, and from which values it was fitted")
			}
		}
		inner.done()
		n := root.at(dotted(of.Key))
		switch {
		case of.Key == "":
			continue
		case n == nil || holdsAny(n):
			inner.wrong("key", "want the key of a value of this file, as in models.LLM.latency.step")
			continue
		case slices.ContainsFunc(c.Constants, func(o result.Constant) bool { return o.Key == of.Key }):
			inner.wrong("key", "want every constant once")
		}
		of.Value = n.text()
		c.Constants = append(c.Constants, of)
	}
	s.done()
	return c
}

// isDate reports whether a text is a year, a month or a day.
func isDate(text string) bool {
	return slices.ContainsFunc([]string{"2006", "2006-01", time.DateOnly}, func(layout string) bool {
		_, err := time.Parse(layout, text)
		return err == nil
	})
}

// dotted splits a key such as models."Qwen3-0.6B".latency.step.
func dotted(key string) []string {
	s := lineScanner{text: key, line: 1}
	return s.key()
}

// at is the node of a path, in which elements of an array go by their names or, as in links.0.latency, by
// their places from 0; nil if there is none.
func (n *node) at(path []string) *node {
	for _, part := range path {
		var next *node
		switch v := n.value.(type) {
		case table:
			next = v[part]
		case list:
			i := slices.IndexFunc(v, func(e *node) bool { return e.name() == part })
			if place, err := strconv.Atoi(part); err == nil && i < 0 {
				i = place
			}
			if i >= 0 && i < len(v) {
				next = v[i]
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

// holdsAny reports whether a node is a table, or an array of some.
func holdsAny(n *node) bool {
	_, isTable := n.value.(table)
	return isTable || holdsTables(n)
}
