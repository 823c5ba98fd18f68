package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// instructionsMax bounds a compiled pattern: counted repetitions of groups are written out.
const instructionsMax = 20_000

// nestingMax bounds the groups inside groups.
const nestingMax = 50

type nodeKind int

const (
	nodeSet nodeKind = iota + 1
	nodeSequence
	nodeChoice
	nodeRepeat
	nodeLook
)

// patternNode is a part of a parsed pattern.
type patternNode struct {
	kind            nodeKind
	set             *charSet
	parts           []*patternNode
	least, most     int
	lazy, exclusive bool
	negative        bool
}

// shortest returns the fewest characters that n takes.
func (n *patternNode) shortest() int {
	switch n.kind {
	case nodeSet:
		return 1
	case nodeSequence:
		sum := 0
		for _, part := range n.parts {
			sum = min(sum+part.shortest(), repeatEndless)
		}
		return sum
	case nodeChoice:
		least := repeatEndless
		for _, part := range n.parts {
			least = min(least, part.shortest())
		}
		return least
	case nodeRepeat:
		return min(n.least*min(n.parts[0].shortest(), 1), repeatEndless)
	case nodeLook:
		return 0
	default:
		panic("tokenizer: unknown pattern node")
	}
}

// compileRegex compiles a pattern of the library's regular expressions (Oniguruma): literals, escapes,
// classes, \s \d \w and \p{category}, groups, (?i), choices, repetitions (greedy, lazy, possessive)
// and look-ahead. It refuses what it would not match exactly so: back references, look-behind, anchors,
// scripts, set operations, endless repetition of a group, and patterns that match the empty text.
func compileRegex(pattern string) (*regex, error) {
	p := &patternParser{rest: pattern}
	tree, err := p.choice(0)
	if err != nil {
		return nil, fmt.Errorf("pattern %q, at byte %d: %w", pattern, len(pattern)-len(p.rest), err)
	}
	if p.rest != "" {
		return nil, fmt.Errorf("pattern %q, at byte %d: ) without (", pattern, len(pattern)-len(p.rest))
	}
	if tree.shortest() == 0 {
		return nil, fmt.Errorf("pattern %q matches the empty text, want one that takes a character", pattern)
	}
	c := &patternCompiler{}
	start := c.compile(tree, c.add(instruction{op: opAccept}))
	if c.err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, c.err)
	}
	start.findFirst()
	return &regex{start: start}, nil
}

// literalRegex compiles a pattern that matches text itself.
func literalRegex(text string) (*regex, error) {
	if text == "" {
		return nil, errors.New(`pattern "" matches the empty text, want one that takes a character`)
	}
	tree := &patternNode{kind: nodeSequence}
	for _, r := range text {
		tree.parts = append(tree.parts, setNode(setItem{low: r, high: r}))
	}
	c := &patternCompiler{}
	start := c.compile(tree, c.add(instruction{op: opAccept}))
	if c.err != nil {
		return nil, c.err
	}
	start.findFirst()
	return &regex{start: start}, nil
}

func setNode(items ...setItem) *patternNode {
	return &patternNode{kind: nodeSet, set: newSet(items, false)}
}

type patternCompiler struct {
	count int
	err   error
}

func (c *patternCompiler) add(i instruction) *instruction {
	c.count++
	if c.count > instructionsMax && c.err == nil {
		c.err = fmt.Errorf("more than %d instructions", instructionsMax)
	}
	return &i
}

// compile returns the instructions of n with next after them.
func (c *patternCompiler) compile(n *patternNode, next *instruction) *instruction {
	if c.err != nil {
		return next
	}
	switch n.kind {
	case nodeSet:
		return c.add(instruction{op: opSet, set: n.set, next: next})
	case nodeSequence:
		for i := len(n.parts) - 1; i >= 0; i-- {
			next = c.compile(n.parts[i], next)
		}
		return next
	case nodeChoice:
		choices := make([]*instruction, len(n.parts))
		for i, part := range n.parts {
			choices[i] = c.compile(part, next)
		}
		return c.add(instruction{op: opChoice, choices: choices})
	case nodeRepeat:
		return c.repeat(n, next)
	case nodeLook:
		inner := c.compile(n.parts[0], c.add(instruction{op: opAccept}))
		return c.add(instruction{op: opLook, choices: []*instruction{inner}, negative: n.negative, next: next})
	default:
		panic("tokenizer: unknown pattern node")
	}
}

func (c *patternCompiler) repeat(n *patternNode, next *instruction) *instruction {
	body := n.parts[0]
	if body.kind == nodeSet {
		return c.add(instruction{op: opRun, set: body.set, least: n.least, most: n.most,
			lazy: n.lazy, exclusive: n.exclusive, next: next})
	}
	if n.most == repeatEndless || n.exclusive {
		c.err = errors.New("endless or possessive repetition of a group, want one of a single character")
		return next
	}
	after := next
	for range n.most - n.least {
		if c.err != nil {
			return next
		}
		choices := []*instruction{c.compile(body, next), after}
		if n.lazy {
			choices[0], choices[1] = choices[1], choices[0]
		}
		next = c.add(instruction{op: opChoice, choices: choices})
	}
	for range n.least {
		if c.err != nil {
			return next
		}
		next = c.compile(body, next)
	}
	return next
}

// classBits returns the categories whose names begin with name ("L", "Lu"), 0 where there is none.
func classBits(name string) uint32 {
	var bits uint32
	if len(name) != 1 && len(name) != 2 {
		return 0
	}
	for i, category := range categories {
		if strings.HasPrefix(category, name) {
			bits |= 1 << i
		}
	}
	return bits
}
