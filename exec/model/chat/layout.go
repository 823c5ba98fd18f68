package chat

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// explicit rewrites a template so that no blank depends on a rule: text becomes strings in tags of their own,
// and strings have no escapes but those for quotes and backslashes. What the rules leave of the text is what
// the lexer of Jinja 3.1 leaves with trim_blocks and lstrip_blocks (jinja2/lexer.py, Lexer.tokeniter).
func explicit(source string) (string, error) {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	source = strings.TrimSuffix(source, "\n")
	l := layout{source: source, lineStart: true}
	for {
		begin := tagBegin.FindStringIndex(l.source[l.at:])
		if begin == nil {
			l.text(l.source[l.at:])
			return string(l.out), nil
		}
		tag := l.at + begin[0]
		if err := l.tag(tag); err != nil {
			return "", fmt.Errorf("line %d: %w", 1+strings.Count(l.source[:tag], "\n"), err)
		}
	}
}

var (
	tagBegin   = regexp.MustCompile(`\{[%{#]`)
	rawBegin   = regexp.MustCompile(`^\{%[-+]?\s*raw\s*(-?)%\}`)
	rawEnd     = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
	commentEnd = regexp.MustCompile(`([-+]?)#\}`)
)

// layout walks over a template.
type layout struct {
	source    string
	at        int
	lineStart bool // what was passed last ended a line
	out       []byte
}

// text gives out text as it is.
func (l *layout) text(text string) {
	if text != "" {
		l.out = append(l.out, "{{ "+quoted(text)+" }}"...)
	}
}

// quoted writes a string that the library reads back the same.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// tag passes the text before the tag that begins at begin, and the tag.
func (l *layout) tag(begin int) error {
	kind, sign := l.source[begin+1], l.signAt(begin+2)
	l.text(l.before(l.source[l.at:begin], kind != '{', sign))
	if raw := rawBegin.FindStringSubmatch(l.source[begin:]); raw != nil {
		return l.raw(begin+len(raw[0]), raw[1])
	}
	inner := begin + 2 + len(sign)
	if kind == '#' {
		end := commentEnd.FindStringSubmatchIndex(l.source[inner:])
		if end == nil {
			return errors.New("a comment without its #}")
		}
		l.after(inner+end[1], l.source[inner+end[2]:inner+end[3]], true)
		return nil
	}
	return l.code(inner, kind)
}

func (l *layout) signAt(at int) string {
	if at < len(l.source) && (l.source[at] == '-' || l.source[at] == '+') {
		return l.source[at : at+1]
	}
	return ""
}

// before returns what a tag with this sign leaves of the text in front of it. Only blocks and comments take
// the blanks away that they alone follow on their line.
func (l *layout) before(text string, block bool, sign string) string {
	switch {
	case sign == "-":
		return strings.TrimRightFunc(text, isSpace)
	case sign == "+" || !block:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.lineStart) && strings.TrimRightFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// after goes on behind a tag that ends at end: a minus takes all blanks away, a block or comment without a
// sign takes the end of its line.
func (l *layout) after(end int, sign string, block bool) {
	rest := l.source[end:]
	switch {
	case sign == "-":
		rest = strings.TrimLeftFunc(rest, isSpace)
	case sign == "" && block:
		rest = strings.TrimPrefix(rest, "\n")
	}
	l.at = len(l.source) - len(rest)
	l.lineStart = l.source[l.at-1] == '\n'
}

// raw passes a raw block, whose text begins at start.
func (l *layout) raw(start int, sign string) error {
	if sign == "-" {
		start = len(l.source) - len(strings.TrimLeftFunc(l.source[start:], isSpace))
	}
	end := rawEnd.FindStringSubmatchIndex(l.source[start:])
	if end == nil {
		return errors.New("raw without endraw")
	}
	part := func(group int) string { return l.source[start+end[2*group] : start+end[2*group+1]] }
	l.lineStart = l.source[start-1] == '\n'
	l.text(l.before(l.source[start:start+end[0]], true, part(1)))
	l.after(start+end[1], part(2), true)
	return nil
}

// code passes the inside of an expression or a block, up to the end that is in no string or bracket.
func (l *layout) code(at int, kind byte) error {
	closing := "}}"
	if kind == '%' {
		closing = "%}"
	}
	start := len(l.out)
	l.out = append(l.out, '{', kind, ' ')
	depth, literal := 0, -1 // where a string ended that only blanks follow
	for at < len(l.source) {
		sign := l.signAt(at)
		if depth == 0 && strings.HasPrefix(l.source[at+len(sign):], closing) && (sign != "+" || kind == '%') {
			l.out = append(l.out, " "+closing...)
			l.guard(start, kind)
			l.after(at+len(sign)+len(closing), sign, kind == '%')
			return nil
		}
		switch c := l.source[at]; c {
		case '\'', '"':
			end, value, err := stringAt(l.source, at)
			if err != nil {
				return err
			}
			if text := quoted(value); literal >= 0 { // two strings side by side are one
				l.out = append(l.out[:literal-1], text[1:]...)
			} else {
				l.out = append(l.out, text...)
			}
			at, literal = end, len(l.out)
			continue
		case '(', '[', '{':
			if depth++; depth > nestedMax {
				return fmt.Errorf("brackets in brackets, want at most %d deep", nestedMax)
			}
		case ')', ']', '}':
			depth--
		}
		if !isSpace(rune(l.source[at])) {
			literal = -1
		}
		l.out = append(l.out, l.source[at])
		if l.source[at] == '}' {
			l.out = append(l.out, ' ') // two of them would look like an end
		}
		at++
	}
	return fmt.Errorf("{%c without its %s", kind, closing)
}

// guard puts calls into a macro, the tag of which was passed from start on, that count how deep macros are.
func (l *layout) guard(start int, kind byte) {
	inside := strings.Fields(string(l.out[start+len("{% "):]))
	switch {
	case kind != '%':
	case inside[0] == "macro":
		l.out = append(l.out, "{{ "+macroBegins+"() }}"...)
	case inside[0] == "endmacro":
		tag := string(l.out[start:])
		l.out = append(append(l.out[:start], "{{ "+macroEnds+"() }}"...), tag...)
	}
}

// isSpace is what Python takes for a blank.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// stringAt reads the string that begins at at, and returns where it ends and its value.
func stringAt(source string, at int) (end int, value string, err error) {
	mark := source[at]
	var b strings.Builder
	for i := at + 1; i < len(source); {
		switch c := source[i]; {
		case c == mark:
			return i + 1, b.String(), nil
		case c == '\\' && i+1 < len(source):
			var size int
			if size, err = escape(&b, source[i:]); err != nil {
				return 0, "", err
			}
			i += size
		default:
			b.WriteByte(c)
			i++
		}
	}
	return 0, "", fmt.Errorf("a string without its %c", mark)
}

// escape reads a backslash sequence as Python does, and returns its length.
func escape(b *strings.Builder, text string) (int, error) {
	const plain = "abfnrtv\\'\"\n"
	const values = "\a\b\f\n\r\t\v\\'\""
	c := text[1]
	if c == '\n' {
		return 2, nil
	}
	if i := strings.IndexByte(plain, c); i >= 0 {
		b.WriteByte(values[i])
		return 2, nil
	}
	if c >= '0' && c <= '7' {
		end := 2
		for end < len(text) && end < 4 && text[end] >= '0' && text[end] <= '7' {
			end++
		}
		code, _ := strconv.ParseUint(text[1:end], 8, 32)
		b.WriteRune(rune(code))
		return end, nil
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if c == 'N' || digits > 0 && len(text) < 2+digits {
		return 0, fmt.Errorf("escape %q is not supported", text[:2])
	}
	if digits == 0 {
		b.WriteByte('\\') // not an escape: it stays
		return 1, nil
	}
	code, err := strconv.ParseUint(text[2:2+digits], 16, 32)
	if err != nil || code > unicode.MaxRune || code >= 0xd800 && code < 0xe000 {
		return 0, fmt.Errorf("escape %q, want a character", text[:2+digits])
	}
	b.WriteRune(rune(code))
	return 2 + digits, nil
}
