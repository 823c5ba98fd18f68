package tokenizer

import "slices"

// Hangul syllables are composed by arithmetic (The Unicode Standard, section 3.12).
const (
	hangulBase  = 0xAC00
	leadBase    = 0x1100
	vowelBase   = 0x1161
	tailBase    = 0x11A7
	leadCount   = 19
	vowelCount  = 21
	tailCount   = 28
	hangulCount = leadCount * vowelCount * tailCount
)

// composed returns text in normalisation form C as the library has it. Unlike
// golang.org/x/text/unicode/norm it follows the library's older Unicode version and never puts a joiner
// into a long run of marks.
func composed(text string) string {
	t := characters()
	if !t.mayChange(text) {
		return text
	}
	decomposed := make([]rune, 0, len(text))
	for _, r := range text {
		decomposed = t.appendDecomposed(decomposed, r)
	}
	t.sortMarks(decomposed)
	return string(t.recompose(decomposed))
}

// mayChange reports whether text has a character that composition can touch: one that decomposes, one that
// combines, or the second half of a composite.
func (t *unicodeTable) mayChange(text string) bool {
	for _, r := range text {
		if r < 0x80 {
			continue
		}
		if _, ok := t.combining[r]; ok {
			return true
		}
		if _, ok := t.decompose[r]; ok {
			return true
		}
		if _, ok := t.joins[r]; ok || r > leadBase && r < leadBase+0x100 {
			return true
		}
	}
	return false
}

func (t *unicodeTable) appendDecomposed(dst []rune, r rune) []rune {
	if r >= hangulBase && r < hangulBase+hangulCount {
		index := r - hangulBase
		dst = append(dst, leadBase+index/(vowelCount*tailCount), vowelBase+index/tailCount%vowelCount)
		if tail := index % tailCount; tail != 0 {
			dst = append(dst, tailBase+tail)
		}
		return dst
	}
	if whole, ok := t.decompose[r]; ok {
		return append(dst, whole...)
	}
	return append(dst, r)
}

// sortMarks puts each run of combining marks in the order of their classes, equal classes as they stand.
func (t *unicodeTable) sortMarks(text []rune) {
	for i := 0; i < len(text); i++ {
		if t.combining[text[i]] == 0 {
			continue
		}
		end := i + 1
		for end < len(text) && t.combining[text[end]] != 0 {
			end++
		}
		slices.SortStableFunc(text[i:end], func(a, b rune) int {
			return int(t.combining[a]) - int(t.combining[b])
		})
		i = end
	}
}

// recompose joins starters with the characters that follow them, in place.
func (t *unicodeTable) recompose(text []rune) []rune {
	out := text[:0]
	starter := -1   // index in out
	lastClass := -1 // class of the last character kept after the starter, -1 if there is none
	for _, r := range text {
		class := int(t.combining[r])
		if starter >= 0 && lastClass < class {
			if whole, ok := t.pair(out[starter], r); ok {
				out[starter] = whole
				continue
			}
		}
		if class == 0 {
			starter, lastClass = len(out), -1
		} else {
			lastClass = class
		}
		out = append(out, r)
	}
	return out
}

func (t *unicodeTable) pair(first, second rune) (rune, bool) {
	lead, vowel := first-leadBase, second-vowelBase
	if lead >= 0 && lead < leadCount && vowel >= 0 && vowel < vowelCount {
		return hangulBase + (lead*vowelCount+vowel)*tailCount, true
	}
	syllable, tail := first-hangulBase, second-tailBase
	if syllable >= 0 && syllable < hangulCount && syllable%tailCount == 0 && tail > 0 && tail < tailCount {
		return first + tail, true
	}
	whole, ok := t.compose[[2]rune{first, second}]
	return whole, ok
}
