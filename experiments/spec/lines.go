package spec

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// lineIndex tells on which line of a TOML document each key stands. Keys are paths joined by NUL, elements
// of arrays by their number: "models", "models\x000\x00name". The decoder keeps no lines of its own.
type lineIndex map[string]int

func joinPath(path []string) string { return strings.Join(path, "\x00") }

// lineScanner walks through a document that the decoder has accepted. On any other input it ends somewhere,
// with an index that may be incomplete.
type lineScanner struct {
	text  string
	at    int
	line  int
	index lineIndex
	count map[string]int // tables of each [[array]] so far
}

// indexLines returns the lines of all keys and array elements of a valid TOML document.
func indexLines(text string) lineIndex {
	s := &lineScanner{text: text, line: 1, index: make(lineIndex), count: make(map[string]int)}
	var table []string
	for {
		s.skipSpace(true)
		switch {
		case s.at >= len(s.text):
			return s.index
		case s.text[s.at] == '[':
			table = s.header()
		default:
			before := s.at
			s.keyValue(table)
			if s.at == before {
				s.next() // not TOML: never stand still
			}
		}
	}
}

func (s *lineScanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// next moves over one byte, counting lines.
func (s *lineScanner) next() {
	if s.at < len(s.text) {
		if s.text[s.at] == '\n' {
			s.line++
		}
		s.at++
	}
}

// skipSpace moves over blanks and comments, and over line ends if lines is set.
func (s *lineScanner) skipSpace(lines bool) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t' || c == '\r' || lines && c == '\n':
			s.next()
		case c == '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.next()
			}
		case strings.HasPrefix(s.text[s.at:], "\ufeff") && s.at == 0:
			s.at += utf8.RuneLen('\ufeff')
		default:
			return
		}
	}
}

func (s *lineScanner) note(path []string, line int) {
	for i := range path {
		if key := joinPath(path[:i+1]); s.index[key] == 0 {
			s.index[key] = line
		}
	}
}

// header reads [table] or [[array]] and returns the path of what follows.
func (s *lineScanner) header() []string {
	line := s.line
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	path := s.resolve(s.key(), array)
	s.note(path, line)
	for s.peek() == ']' {
		s.next()
	}
	return path
}

// resolve puts the number of the latest element behind every array of tables on the path.
func (s *lineScanner) resolve(key []string, array bool) []string {
	var path []string
	for i, part := range key {
		path = append(path, part)
		name := joinPath(path)
		last := i == len(key)-1
		if last && array {
			s.count[name]++
			if _, ok := s.index[name]; !ok {
				s.index[name] = s.line
			}
		}
		if n := s.count[name]; n > 0 {
			path = append(path, strconv.Itoa(n-1))
		}
	}
	return path
}

// key reads a dotted key.
func (s *lineScanner) key() []string {
	var parts []string
	for {
		s.skipSpace(false)
		switch c := s.peek(); c {
		case '"', '\'':
			parts = append(parts, s.quoted())
		default:
			start := s.at
			for c := s.peek(); c != 0 && !strings.ContainsRune(" \t\r\n.=]\"'#,{}[", rune(c)); c = s.peek() {
				s.next()
			}
			if s.at == start {
				return parts
			}
			parts = append(parts, s.text[start:s.at])
		}
		s.skipSpace(false)
		if s.peek() != '.' {
			return parts
		}
		s.next()
	}
}

// quoted reads a one-line string and returns its value.
func (s *lineScanner) quoted() string {
	quote := s.peek()
	start := s.at
	s.next()
	for c := s.peek(); c != 0 && c != quote && c != '\n'; c = s.peek() {
		if c == '\\' && quote == '"' {
			s.next()
		}
		s.next()
	}
	s.next()
	raw := s.text[start:s.at]
	if quote == '"' {
		if text, err := strconv.Unquote(raw); err == nil {
			return text
		}
	}
	return strings.Trim(raw, string(quote))
}

func (s *lineScanner) keyValue(table []string) {
	line := s.line
	key := s.key()
	s.skipSpace(false)
	if len(key) == 0 || s.peek() != '=' {
		return
	}
	s.next()
	path := append(append([]string(nil), table...), key...)
	s.note(path, line)
	s.skipSpace(false)
	s.value(path)
}

// value moves over a value and notes what is inside it.
func (s *lineScanner) value(path []string) {
	switch c := s.peek(); {
	case c == '[':
		s.array(path)
	case c == '{':
		s.inlineTable(path)
	case c == '"' || c == '\'':
		if triple := strings.Repeat(string(c), 3); strings.HasPrefix(s.text[s.at:], triple) {
			s.multiline(c)
			return
		}
		s.quoted()
	default:
		for c := s.peek(); c != 0 && !strings.ContainsRune("\n,]}#", rune(c)); c = s.peek() {
			s.next()
		}
	}
}

func (s *lineScanner) array(path []string) {
	s.next()
	for i := 0; s.at < len(s.text); {
		s.skipSpace(true)
		switch s.peek() {
		case ']':
			s.next()
			return
		case ',':
			s.next()
			continue
		}
		before := s.at
		element := append(append([]string(nil), path...), strconv.Itoa(i))
		s.note(element, s.line)
		s.value(element)
		i++
		if s.at == before {
			s.next()
		}
	}
}

func (s *lineScanner) inlineTable(path []string) {
	s.next()
	for s.at < len(s.text) {
		s.skipSpace(true)
		switch s.peek() {
		case '}':
			s.next()
			return
		case ',':
			s.next()
			continue
		}
		before := s.at
		s.keyValue(path)
		if s.at == before {
			s.next()
		}
	}
}

// multiline moves over a string in three quotes; up to two quotes may stand before the closing ones.
func (s *lineScanner) multiline(quote byte) {
	end := strings.Repeat(string(quote), 3)
	s.at += 3
	for s.at < len(s.text) && !strings.HasPrefix(s.text[s.at:], end) {
		if s.text[s.at] == '\\' && quote == '"' {
			s.next()
		}
		s.next()
	}
	s.at = min(s.at+3, len(s.text))
	for s.peek() == quote {
		s.next()
	}
}
