package tokenizer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// repeatMax bounds the numbers of a counted repetition.
const repeatMax = 1000

type patternParser struct {
	rest   string
	folded bool // inside (?i)
}

func (p *patternParser) take(prefix string) bool {
	rest, ok := strings.CutPrefix(p.rest, prefix)
	p.rest = rest
	return ok
}

func (p *patternParser) character() rune {
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

// choice parses sequences between bars up to ) or the end. A (?i) counts to the end of the group that it
// is in.
func (p *patternParser) choice(depth int) (*patternNode, error) {
	if depth > nestingMax {
		return nil, fmt.Errorf("more than %d groups inside each other", nestingMax)
	}
	folded := p.folded
	defer func() { p.folded = folded }()
	node := &patternNode{kind: nodeChoice}
	for {
		part, err := p.sequence(depth)
		if err != nil {
			return nil, err
		}
		node.parts = append(node.parts, part)
		if !p.take("|") {
			break
		}
	}
	if len(node.parts) == 1 {
		return node.parts[0], nil
	}
	return node, nil
}

func (p *patternParser) sequence(depth int) (*patternNode, error) {
	node := &patternNode{kind: nodeSequence}
	last := rune(0) // the letter before, where case does not count
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		letter := rune(0)
		if p.folded {
			letter, _ = utf8.DecodeRuneInString(strings.ToLower(p.rest[:1]))
		}
		switch string([]rune{last, letter}) {
		case "ss", "st", "ff", "fi", "fl":
			return nil, fmt.Errorf("%q under (?i), which one ligature also matches", string([]rune{last, letter}))
		}
		last = letter
		part, err := p.atom(depth)
		if err != nil {
			return nil, err
		}
		if part == nil && len(node.parts) > 0 {
			return nil, errors.New("(?i) inside a branch is not supported, want it first")
		}
		if part == nil {
			continue
		}
		if part, err = p.quantified(part); err != nil {
			return nil, err
		}
		node.parts = append(node.parts, part)
	}
	return node, nil
}

// atom parses what a repetition can follow. It returns nil after (?i), which takes no text.
func (p *patternParser) atom(depth int) (*patternNode, error) {
	switch p.rest[0] {
	case '(':
		p.rest = p.rest[1:]
		return p.group(depth)
	case '[':
		p.rest = p.rest[1:]
		return p.class()
	case '\\':
		p.rest = p.rest[1:]
		item, err := p.escape()
		if err != nil {
			return nil, err
		}
		return p.literal(item)
	case '.':
		p.rest = p.rest[1:]
		return &patternNode{kind: nodeSet, set: newSet([]setItem{{low: '\n', high: '\n'}}, true)}, nil
	case '^', '$':
		return nil, fmt.Errorf("anchor %c is not supported", p.rest[0])
	case '*', '+', '?':
		return nil, fmt.Errorf("%c has nothing to repeat", p.rest[0])
	}
	r := p.character()
	return p.literal(setItem{low: r, high: r})
}

// literal makes a set of one item and, under (?i), of its other cases. The long s and the Kelvin sign are
// the only others of ASCII letters.
func (p *patternParser) literal(item setItem) (*patternNode, error) {
	if !p.folded {
		return setNode(item), nil
	}
	if item.classes|uint32(item.flags) != 0 {
		return nil, errors.New("a character class under (?i) is not supported")
	}
	if item.high >= utf8.RuneSelf {
		return nil, fmt.Errorf("%q under (?i), want ASCII", item.low)
	}
	items := []setItem{item}
	lower := item.low | 0x20
	if lower >= 'a' && lower <= 'z' {
		items = []setItem{{low: lower, high: lower}, {low: lower - 0x20, high: lower - 0x20}}
	}
	switch lower {
	case 's':
		items = append(items, setItem{low: 0x17F, high: 0x17F})
	case 'k':
		items = append(items, setItem{low: 0x212A, high: 0x212A})
	}
	return setNode(items...), nil
}

func (p *patternParser) group(depth int) (*patternNode, error) {
	node := &patternNode{kind: nodeSequence}
	folded := p.folded
	switch {
	case p.take("?i)"):
		p.folded = true
		return nil, nil
	case p.take("?i:"):
		p.folded = true
	case p.take("?:"):
	case p.take("?="):
		node = &patternNode{kind: nodeLook}
	case p.take("?!"):
		node = &patternNode{kind: nodeLook, negative: true}
	case strings.HasPrefix(p.rest, "?"):
		return nil, fmt.Errorf("group (%.3s is not supported, want (, (?:, (?i:, (?= or (?!", p.rest)
	}
	inner, err := p.choice(depth + 1)
	p.folded = folded
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, errors.New("( without )")
	}
	node.parts = []*patternNode{inner}
	if node.kind == nodeSequence && inner.kind == nodeSet {
		return inner, nil
	}
	return node, nil
}

// quantified parses the repetition after part, if there is one.
func (p *patternParser) quantified(part *patternNode) (*patternNode, error) {
	least, most, counted := 0, 0, false
	switch {
	case p.take("?"):
		least, most = 0, 1
	case p.take("*"):
		least, most = 0, repeatEndless
	case p.take("+"):
		least, most = 1, repeatEndless
	case p.take("{"):
		var err error
		if least, most, err = p.counts(); err != nil {
			return nil, err
		}
		counted = true
	default:
		return part, nil
	}
	if part.kind == nodeLook {
		return nil, errors.New("repetition of a look-ahead is not supported")
	}
	node := &patternNode{kind: nodeRepeat, parts: []*patternNode{part}, least: least, most: most}
	switch {
	case counted && least == most:
	case p.take("?"):
		node.lazy = true
	case counted:
	case p.take("+"):
		node.exclusive = true
	}
	if p.rest != "" && strings.ContainsRune("?*+{", rune(p.rest[0])) {
		return nil, errors.New("repetition of a repetition is not supported, want a group around the first")
	}
	return node, nil
}

// counts parses the inside of {least,most} and its closing brace.
func (p *patternParser) counts() (least, most int, err error) {
	inside, rest, ok := strings.Cut(p.rest, "}")
	if !ok {
		return 0, 0, errors.New("{ without }")
	}
	low, high, pair := strings.Cut(inside, ",")
	if least, err = strconv.Atoi(low); err != nil {
		return 0, 0, fmt.Errorf("repetition {%s}, want {n}, {n,} or {n,m}", inside)
	}
	switch {
	case !pair:
		most = least
	case high == "":
		most = repeatEndless
	default:
		if most, err = strconv.Atoi(high); err != nil {
			return 0, 0, fmt.Errorf("repetition {%s}, want {n}, {n,} or {n,m}", inside)
		}
	}
	if least < 0 || least > repeatMax || most < least || most > repeatMax && most != repeatEndless {
		return 0, 0, fmt.Errorf("repetition {%s}, want 0 <= n <= m <= %d", inside, repeatMax)
	}
	p.rest = rest
	return least, most, nil
}

// class parses the inside of [...] and its closing bracket.
func (p *patternParser) class() (*patternNode, error) {
	if p.folded {
		return nil, errors.New("a character class under (?i) is not supported")
	}
	negated := p.take("^")
	var items []setItem
	for !p.take("]") || items == nil {
		item, literal, err := p.classItem()
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") {
			p.rest = p.rest[1:]
			last, ok, err := p.classItem()
			if err != nil {
				return nil, err
			}
			if !literal || !ok || last.low < item.low {
				return nil, errors.New("range of a character class, want two characters in order")
			}
			item.high = last.low
		}
		items = append(items, item)
	}
	return &patternNode{kind: nodeSet, set: newSet(items, negated)}, nil
}

// classItem parses a character or an escape; literal tells which.
func (p *patternParser) classItem() (item setItem, literal bool, err error) {
	switch {
	case p.rest == "":
		return setItem{}, false, errors.New("[ without ]")
	case p.rest[0] == '[' || strings.HasPrefix(p.rest, "&&"):
		return setItem{}, false, errors.New("set operations and [ in a character class are not supported")
	case p.take(`\`):
		item, err = p.escape()
		return item, item.classes|uint32(item.flags) == 0 && !item.negated, err
	}
	r := p.character()
	if r == ']' {
		return setItem{}, false, errors.New("empty character class")
	}
	return setItem{low: r, high: r}, true, nil
}

// escape parses what follows a backslash.
func (p *patternParser) escape() (setItem, error) {
	if p.rest == "" {
		return setItem{}, errors.New(`\ at the end`)
	}
	r := p.character()
	if i := strings.IndexRune("nrtfva", r); i >= 0 {
		control := rune("\n\r\t\f\v\a"[i])
		return setItem{low: control, high: control}, nil
	}
	switch r {
	case 's', 'S':
		return setItem{flags: attrSpace, negated: r == 'S'}, nil
	case 'w', 'W':
		return setItem{flags: attrWord, negated: r == 'W'}, nil
	case 'd', 'D':
		return setItem{classes: classBits("Nd"), negated: r == 'D'}, nil
	case 'p', 'P':
		return p.property(r == 'P')
	case 'u':
		return p.hexadecimal(4)
	case 'x':
		if p.take("{") {
			digits, _, _ := strings.Cut(p.rest, "}")
			item, err := p.hexadecimal(len(digits))
			if err == nil && !p.take("}") {
				err = errors.New(`\x{ without }`)
			}
			return item, err
		}
		return p.hexadecimal(2)
	}
	if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
		return setItem{}, fmt.Errorf(`\%c is not supported`, r)
	}
	return setItem{low: r, high: r}, nil
}

func (p *patternParser) property(negated bool) (setItem, error) {
	if !p.take("{") {
		return setItem{}, errors.New(`\p without {`)
	}
	if p.take("^") {
		negated = !negated
	}
	name, rest, ok := strings.Cut(p.rest, "}")
	bits := classBits(name)
	if !ok || bits == 0 {
		return setItem{}, fmt.Errorf(`\p{%.20s is not supported, want a general category such as L or Lu`, p.rest)
	}
	p.rest = rest
	return setItem{classes: bits, negated: negated}, nil
}

func (p *patternParser) hexadecimal(digits int) (setItem, error) {
	if digits < 1 || digits > 6 || len(p.rest) < digits {
		return setItem{}, errors.New("want hexadecimal digits of a code point")
	}
	value, err := strconv.ParseUint(p.rest[:digits], 16, 32)
	if err != nil || !utf8.ValidRune(rune(value)) {
		return setItem{}, fmt.Errorf("%q, want hexadecimal digits of a code point", p.rest[:digits])
	}
	p.rest = p.rest[digits:]
	return setItem{low: rune(value), high: rune(value)}, nil
}
