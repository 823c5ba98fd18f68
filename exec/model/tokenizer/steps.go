package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// normalizer changes the text before it is split.
type normalizer func(text string) string

func prepend(prefix string) normalizer {
	return func(text string) string {
		if text == "" {
			return text
		}
		return prefix + text
	}
}

func replace(pattern *regex, content string) normalizer {
	return func(text string) string {
		var out strings.Builder
		position := 0
		for {
			start, end, ok := pattern.find(text, position)
			if !ok {
				break
			}
			out.WriteString(text[position:start])
			out.WriteString(content)
			position = end
		}
		if position == 0 {
			return text
		}
		out.WriteString(text[position:])
		return out.String()
	}
}

// splitter splits a piece of text into words that it appends to dst, empty ones maybe among them. start tells
// whether the piece begins the text.
type splitter func(dst []string, piece string, start bool) []string

// behavior says where a match goes when text is split.
type behavior int

const (
	removed behavior = iota + 1
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

var behaviors = map[string]behavior{
	"Removed": removed, "Isolated": isolated, "MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext": mergedWithNext, "Contiguous": contiguous,
}

// finder returns the bounds of the next match; ok is false where there is none.
type finder func(text string, position int) (start, end int, ok bool)

// splitOn splits at the matches of find, or with invert at what is between them.
func splitOn(find finder, b behavior, invert bool) splitter {
	if b == isolated || b == removed {
		return splitPlain(find, b == removed && !invert, b == removed && invert)
	}
	return func(dst []string, piece string, _ bool) []string {
		type part struct {
			start, end int
			match      bool
		}
		var parts []part
		position := 0
		for {
			start, end, ok := find(piece, position)
			if !ok {
				break
			}
			if position < start {
				parts = append(parts, part{position, start, invert})
			}
			parts = append(parts, part{start, end, !invert})
			position = end
		}
		if position < len(piece) {
			parts = append(parts, part{position, len(piece), invert})
		}
		for i, p := range parts {
			joined := false
			switch b {
			case contiguous:
				joined = i > 0 && p.match == parts[i-1].match
			case mergedWithPrevious:
				joined = i > 0 && p.match && !parts[i-1].match
			case mergedWithNext:
				joined = i > 0 && parts[i-1].match && !p.match
			default:
				panic("tokenizer: unknown behavior")
			}
			if joined {
				last := dst[len(dst)-1]
				dst[len(dst)-1] = piece[p.start-len(last) : p.end]
				continue
			}
			dst = append(dst, piece[p.start:p.end])
		}
		return dst
	}
}

// splitPlain gives matches and what is between them as words of their own, but for those dropped.
func splitPlain(find finder, dropMatches, dropRest bool) splitter {
	return func(dst []string, piece string, _ bool) []string {
		position := 0
		for {
			start, end, ok := find(piece, position)
			if !ok {
				break
			}
			if position < start && !dropRest {
				dst = append(dst, piece[position:start])
			}
			if !dropMatches {
				dst = append(dst, piece[start:end])
			}
			position = end
		}
		if position < len(piece) && !dropRest {
			dst = append(dst, piece[position:])
		}
		return dst
	}
}

// findNumeric finds one character that is numeric.
func findNumeric(text string, position int) (start, end int, ok bool) {
	table := characters()
	for position < len(text) {
		r, size := utf8.DecodeRuneInString(text[position:])
		if table.attributes(r)&attrNumeric != 0 {
			return position, position + size, true
		}
		position += size
	}
	return 0, 0, false
}

// scheme says where Metaspace puts its mark in front.
type scheme int

const (
	schemeAlways scheme = iota + 1
	schemeFirst
	schemeNever
)

// metaspace writes spaces as mark and, with split, begins a word at each.
func metaspace(mark string, s scheme, split bool) splitter {
	find := func(text string, position int) (start, end int, ok bool) {
		i := strings.Index(text[position:], mark)
		return position + i, position + i + len(mark), i >= 0
	}
	words := splitOn(find, mergedWithNext, false)
	return func(dst []string, piece string, start bool) []string {
		piece = strings.ReplaceAll(piece, " ", mark)
		if (s == schemeAlways || s == schemeFirst && start) && !strings.HasPrefix(piece, mark) {
			piece = mark + piece
		}
		if !split {
			return append(dst, piece)
		}
		return words(dst, piece, start)
	}
}

// gpt2Pattern is the split of ByteLevel with use_regex.
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// byteLevel is ByteLevel but for the change of alphabet, which the model does.
func byteLevel(prefixSpace bool, pattern *regex) splitter {
	words := splitter(func(dst []string, piece string, _ bool) []string { return append(dst, piece) })
	if pattern != nil {
		words = splitOn(pattern.find, isolated, false)
	}
	return func(dst []string, piece string, start bool) []string {
		if prefixSpace && !strings.HasPrefix(piece, " ") {
			piece = " " + piece
		}
		return words(dst, piece, start)
	}
}
