package spec

import (
	"fmt"
	"math"
	"strings"

	"tokenrouter/experiments/result"
)

// report reads what a report says of the spec, and how it judges published values.
func (l *loader) report(top *section) {
	l.spec.Caption, l.spec.Discussion = top.text("caption", ""), top.text("discussion", "")
	l.spec.Noise = top.number("noise", 0, 0, 1)
	names := make(map[string]bool)
	for _, s := range top.subs("check") {
		c := l.check(s)
		if names[c.Name] {
			s.wrong("name", "want a name that no other check has")
		}
		names[c.Name] = true
		l.spec.Checks = append(l.spec.Checks, c)
	}
}

// check reads a published ratio.
func (l *loader) check(s *section) result.Check {
	c := result.Check{Name: s.text("name", ""), Source: s.text("source", "")}
	if !s.has("name") {
		s.missing("name", "want a string that is not empty")
	}
	c.Metric = s.word("metric", "throughput_tok_s", l.metricNames()...)
	for _, key := range []string{"of", "over"} {
		if !s.has(key) {
			s.missing(key, "want a place: a value for every swept axis")
		}
	}
	if of := s.sub("of"); of != nil {
		c.Of = l.wholePlace(of)
	}
	if over := s.get("over"); over != nil {
		places, ok := over.value.(list)
		if !ok {
			places = list{over}
		} else if len(places) == 0 {
			s.wrong("over", "want a place, or several of which the largest counts")
		}
		for i, n := range places {
			path := s.name("over")
			if ok {
				path = element(path, i)
			}
			c.Over = append(c.Over, l.wholePlace(l.section(n, path)))
		}
	}
	l.published(s, &c)
	c.Fit = s.use()
	s.done()
	return c
}

// published reads a value, or the ends of a range.
func (l *loader) published(s *section, c *result.Check) {
	switch n := s.get("published"); {
	case n == nil:
		s.missing("published", "want a number above 0, or the ends of a range")
	case isEmpty(n):
		s.wrong("published", "want a number above 0, or the ends of a range")
	default:
		ends, ok := n.value.(list)
		if !ok {
			c.Low, _ = l.numberAt(n, s.name("published"), aboveZero, math.Inf(1))
			c.High = c.Low
			return
		}
		before := len(l.problems)
		values := l.numbers(n, s.name("published"), aboveZero, math.Inf(1))
		if len(l.problems) > before {
			return
		}
		if len(ends) != 2 || values[0] > values[1] {
			s.wrong("published", "want a number above 0, or two: the least and the greatest")
			return
		}
		c.Low, c.High = values[0], values[1]
	}
}

// wholePlace reads a table that has a value for every swept axis, and nothing else.
func (l *loader) wholePlace(s *section) map[string]string {
	at := l.place(s)
	for _, key := range s.keys.keys() {
		if !s.known[key] {
			var axes []string
			for _, a := range l.spec.Axes {
				axes = append(axes, a.Name)
			}
			l.add(s.keys[key], s.name(key), "unknown key, want swept axes: "+strings.Join(axes, ", "))
		}
	}
	if len(l.spec.Axes) == 0 {
		l.add(s.at, s.path, fmt.Sprintf("want an axis in [sweep] or a [[variant]]: %s has one point only",
			l.spec.Name))
	}
	return at
}

// place reads the value of every swept axis, an axis a key.
func (l *loader) place(s *section) map[string]string {
	at := make(map[string]string)
	for _, axis := range l.spec.Axes {
		n := s.keys[axis.Name]
		s.known[axis.Name] = true
		if n == nil {
			s.missing(axis.Name, "want a value for every swept axis")
			continue
		}
		at[axis.Name] = valueOf(axis.Name, n).Text
		l.onAxis(n.file, n.line, s.name(axis.Name), axis, at[axis.Name])
	}
	return at
}
