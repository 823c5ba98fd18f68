package tokenizer

import (
	"unicode/utf8"
)

// addedToken is a token that is found in the text before the model sees it.
type addedToken struct {
	id                         int32
	content                    string
	pattern                    string // what is looked for: content, normalised if normalized
	singleWord, lstrip, rstrip bool
	normalized, special        bool
}

// trieNode is a node of a trie over bytes.
type trieNode struct {
	children map[byte]int32
	token    int32 // index into the tokens, none inside a word
}

// matcher finds added tokens: the leftmost, and of these the longest.
type matcher struct {
	tokens []addedToken
	nodes  []trieNode
	first  [256]bool
}

// add reports false where the pattern is there already.
func (m *matcher) add(token addedToken) bool {
	if len(m.nodes) == 0 {
		m.nodes = []trieNode{{token: none}}
	}
	m.first[token.pattern[0]] = true
	at := int32(0)
	for i := range len(token.pattern) {
		child, ok := m.nodes[at].children[token.pattern[i]]
		if !ok {
			child = int32(len(m.nodes))
			m.nodes = append(m.nodes, trieNode{token: none})
			if m.nodes[at].children == nil {
				m.nodes[at].children = map[byte]int32{}
			}
			m.nodes[at].children[token.pattern[i]] = child
		}
		at = child
	}
	if m.nodes[at].token != none {
		return false
	}
	m.nodes[at].token = int32(len(m.tokens))
	m.tokens = append(m.tokens, token)
	return true
}

// find returns the next token at or after position and its bounds; token is nil where there is none.
func (m *matcher) find(text string, position int) (token *addedToken, start, end int) {
	for ; position < len(text); position++ {
		if !m.first[text[position]] {
			continue
		}
		at := int32(0)
		for i := position; i < len(text); i++ {
			child, ok := m.nodes[at].children[text[i]]
			if !ok {
				break
			}
			at = child
			if index := m.nodes[at].token; index != none {
				token, start, end = &m.tokens[index], position, i+1
			}
		}
		if token != nil {
			return token, start, end
		}
	}
	return nil, 0, 0
}

// split calls yield for the pieces of text in order: (piece, none) or ("", id of an added token). start
// tells whether the piece begins the text. Unless parseSpecial, special tokens are found and left in the
// text, which also hides tokens inside of them, as in the library.
func (m *matcher) split(text string, parseSpecial bool, yield func(piece string, id int32, start bool)) {
	done := 0
	if len(m.tokens) > 0 {
		for position := 0; ; {
			token, start, end := m.find(text, position)
			if token == nil {
				break
			}
			position = end
			if token.special && !parseSpecial || token.singleWord && inWord(text, start, end) {
				continue
			}
			if token.lstrip {
				start = max(spaceBefore(text, start), done)
			}
			if token.rstrip {
				end = spaceAfter(text, end)
			}
			if done < start {
				yield(text[done:start], none, done == 0)
			}
			yield("", token.id, false)
			done = end
		}
	}
	if done < len(text) {
		yield(text[done:], none, done == 0)
	}
}

// inWord reports whether a letter, digit or the like stands beside text[start:end].
func inWord(text string, start, end int) bool {
	table := characters()
	if start > 0 {
		r, _ := utf8.DecodeLastRuneInString(text[:start])
		if table.attributes(r)&attrWordAdded != 0 {
			return true
		}
	}
	if end < len(text) {
		r, _ := utf8.DecodeRuneInString(text[end:])
		return table.attributes(r)&attrWordAdded != 0
	}
	return false
}

func spaceBefore(text string, position int) int {
	table := characters()
	for position > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:position])
		if table.attributes(r)&attrSpace == 0 {
			break
		}
		position -= size
	}
	return position
}

func spaceAfter(text string, position int) int {
	table := characters()
	for position < len(text) {
		r, size := utf8.DecodeRuneInString(text[position:])
		if table.attributes(r)&attrSpace == 0 {
			break
		}
		position += size
	}
	return position
}
