package tokenizer

import (
	"math"
	"unicode/utf8"
)

// repeatEndless is the upper bound of a repetition that has none.
const repeatEndless = math.MaxInt32

// setItem is a range of code points, or, where classes or flags are not 0, all code points of some general
// categories or with one of some attributes; negated reverses it.
type setItem struct {
	low, high rune
	classes   uint32 // bit i: categories[i]
	flags     uint16
	negated   bool
}

// charSet is a set of code points.
type charSet struct {
	items   []setItem
	negated bool
	ascii   [2]uint64 // membership of U+0000 to U+007F, which is what most text asks for
	table   *unicodeTable
}

func newSet(items []setItem, negated bool) *charSet {
	s := &charSet{items: items, negated: negated, table: characters()}
	for r := rune(0); r < utf8.RuneSelf; r++ {
		if s.slow(r) {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

func (s *charSet) slow(r rune) bool {
	attributes := s.table.attributes(r)
	for i := range s.items {
		item := &s.items[i]
		var in bool
		if item.classes|uint32(item.flags) != 0 {
			in = item.classes>>(attributes&categoryBits)&1 != 0 || item.flags&attributes != 0
		} else {
			in = r >= item.low && r <= item.high
		}
		if in != item.negated {
			return !s.negated
		}
	}
	return s.negated
}

// step returns the bytes of the character at position if the set has it, 0 otherwise or at the end.
func (s *charSet) step(text string, position int) int {
	if position >= len(text) {
		return 0
	}
	if b := text[position]; b < utf8.RuneSelf {
		return int(s.ascii[b>>6] >> (b & 63) & 1)
	}
	r, size := utf8.DecodeRuneInString(text[position:])
	if !s.slow(r) {
		return 0
	}
	return size
}

type opcode int

const (
	opAccept opcode = iota + 1
	opSet           // one character
	opRun           // least to most characters of a set
	opChoice        // the first of choices that leads to a match
	opLook          // choices[0] matches here (or, negative, does not); takes nothing
)

// instruction is a step of a compiled pattern; next is what follows it. The graph has no cycles, so the depth
// of match is bounded by the pattern, whatever the text.
type instruction struct {
	op              opcode
	set             *charSet
	least, most     int
	lazy, exclusive bool // fewest first; no giving back
	negative        bool
	choices         []*instruction
	next            *instruction
	first           [2]uint64 // ASCII characters that a match can begin with
	firstKnown      bool
}

// Regex is a compiled pattern.
type regex struct{ start *instruction }

// find returns the bounds of the leftmost match at or after position; ok is false where there is none.
func (r *regex) find(text string, position int) (start, end int, ok bool) {
	for position < len(text) {
		size := 1
		if b := text[position]; b >= utf8.RuneSelf {
			_, size = utf8.DecodeRuneInString(text[position:])
		} else if r.start.first[b>>6]>>(b&63)&1 == 0 {
			position++
			continue
		}
		if end := match(r.start, text, position); end >= 0 {
			return position, end, true
		}
		position += size
	}
	return 0, 0, false
}

// match returns the end of the match of i and all that follows it at position, or -1.
func match(i *instruction, text string, position int) int {
	for {
		switch i.op {
		case opAccept:
			return position
		case opSet:
			size := i.set.step(text, position)
			if size == 0 {
				return -1
			}
			position += size
		case opRun:
			if i.lazy {
				return matchLazy(i, text, position)
			}
			if !i.exclusive && i.next.op != opAccept {
				return matchGreedy(i, text, position)
			}
			end, count := i.run(text, position)
			if count < i.least {
				return -1
			}
			position = end
		case opChoice:
			return matchChoice(i, text, position)
		case opLook:
			if (match(i.choices[0], text, position) >= 0) == i.negative {
				return -1
			}
		default:
			panic("tokenizer: unknown instruction")
		}
		i = i.next
	}
}

// run takes as many characters as it may.
func (i *instruction) run(text string, position int) (end, count int) {
	for count < i.most {
		size := i.set.step(text, position)
		if size == 0 {
			break
		}
		position += size
		count++
	}
	return position, count
}

func matchGreedy(i *instruction, text string, position int) int {
	end, count := i.run(text, position)
	for ; count >= i.least; count-- {
		if found := match(i.next, text, end); found >= 0 {
			return found
		}
		if count > 0 {
			_, size := utf8.DecodeLastRuneInString(text[:end])
			end -= size
		}
	}
	return -1
}

func matchLazy(i *instruction, text string, position int) int {
	for count := 0; ; count++ {
		if count >= i.least {
			if found := match(i.next, text, position); found >= 0 {
				return found
			}
		}
		size := i.set.step(text, position)
		if count == i.most || size == 0 {
			return -1
		}
		position += size
	}
}

func matchChoice(i *instruction, text string, position int) int {
	bit, word := uint64(0), 0
	if position < len(text) && text[position] < utf8.RuneSelf {
		bit, word = 1<<(text[position]&63), int(text[position]>>6)
	}
	for _, choice := range i.choices {
		if bit != 0 && choice.first[word]&bit == 0 {
			continue
		}
		if found := match(choice, text, position); found >= 0 {
			return found
		}
	}
	return -1
}

// findFirst sets first of i and of all that it leads to.
func (i *instruction) findFirst() [2]uint64 {
	if i.firstKnown {
		return i.first
	}
	i.firstKnown = true
	var next [2]uint64
	if i.next != nil {
		next = i.next.findFirst()
	}
	switch i.op {
	case opAccept:
		i.first = [2]uint64{math.MaxUint64, math.MaxUint64}
	case opSet:
		i.first = i.set.ascii
	case opRun:
		i.first = i.set.ascii
		if i.least == 0 {
			i.first = [2]uint64{i.first[0] | next[0], i.first[1] | next[1]}
		}
	case opChoice:
		for _, choice := range i.choices {
			first := choice.findFirst()
			i.first = [2]uint64{i.first[0] | first[0], i.first[1] | first[1]}
		}
	case opLook:
		i.choices[0].findFirst()
		i.first = next
	default:
		panic("tokenizer: unknown instruction")
	}
	return i.first
}
