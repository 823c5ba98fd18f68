package tokenizer

// Limits of an encoder's cache of words.
const (
	cacheWordsMax = 20_000
	cacheBytesMax = 256 // of one word
)

// none is an id that no token has.
const none int32 = -1

// merge is what a pair of tokens becomes, and when: low ranks first.
type merge struct{ rank, id int32 }

// bpe is a byte-pair encoding model.
type bpe struct {
	vocab        map[string]int32
	tokens       []string // by id; "" where an id is unused
	merges       map[uint64]merge
	unknown      int32 // for characters outside of the vocabulary; none: they vanish
	fuseUnknown  bool
	fallback     *[256]int32 // the tokens <0x00> to <0xFF>, none where absent; nil without byte_fallback
	ignoreMerges bool        // words of the vocabulary are one token, whatever the merges

	byteLevel  bool // words come as raw bytes, not in the byte-level alphabet
	byteTokens [256]int32
	byteWords  map[string]int32 // raw bytes -> id, for ignoreMerges
	controls   map[string]bool  // words that are special tokens, for ignoreMerges
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) }

// useBytes prepares the model for words of raw bytes.
func (m *bpe) useBytes() {
	m.byteLevel = true
	for b, r := range byteRunes {
		m.byteTokens[b] = none
		if id, ok := m.vocab[string(r)]; ok {
			m.byteTokens[b] = id
		}
	}
	m.byteWords = map[string]int32{}
	if !m.ignoreMerges {
		return
	}
	for token, id := range m.vocab {
		if data, ok := levelBytes(token); ok {
			m.byteWords[string(data)] = id
		}
	}
}

// whole returns the token that word is under ignore_merges.
func (m *bpe) whole(word string) (int32, bool) {
	if !m.ignoreMerges {
		return none, false
	}
	words := m.vocab
	if m.byteLevel {
		words = m.byteWords
	}
	id, ok := words[word]
	return id, ok
}

// symbol is a token of a word that is being merged. Merged ones leave the list through next and previous.
type symbol struct {
	id             int32
	previous, next int32 // positions, none at the ends
	gone           bool
}

// candidate is a merge that was possible when it was pushed: rank in the high half of key, position in
// the low.
type candidate struct {
	key uint64
	id  int32
}

// wordEncoder turns words into tokens. It remembers words and reuses its memory; one goroutine at a time.
type wordEncoder struct {
	model   *bpe
	known   map[string][]int32
	symbols []symbol
	heap    []candidate
	arena   []int32 // ids of known words, cut from the front
	literal bool    // no word becomes a special token
}

// append appends the tokens of a word that is not empty.
func (e *wordEncoder) append(dst []int32, word string) []int32 {
	control := e.literal && e.model.controls[word]
	if ids, ok := e.known[word]; ok && !control {
		return append(dst, ids...)
	}
	from := len(dst)
	if id, ok := e.model.whole(word); ok && !control {
		dst = append(dst, id)
	} else {
		e.symbols = e.symbols[:0]
		e.begin(word)
		e.mergeAll()
		for i := range e.symbols {
			if !e.symbols[i].gone {
				dst = append(dst, e.symbols[i].id)
			}
		}
	}
	if !control && len(word) <= cacheBytesMax && len(e.known) < cacheWordsMax {
		e.known[string([]byte(word))] = e.keep(dst[from:])
	}
	return dst
}

// keep copies ids to memory that stays.
func (e *wordEncoder) keep(ids []int32) []int32 {
	if len(e.arena) < len(ids) {
		e.arena = make([]int32, 4096+len(ids))
	}
	kept := e.arena[:len(ids):len(ids)]
	e.arena = e.arena[len(ids):]
	copy(kept, ids)
	return kept
}

func (e *wordEncoder) push(id int32) {
	position := int32(len(e.symbols))
	e.symbols = append(e.symbols, symbol{id: id, previous: position - 1, next: position + 1})
}

// begin splits word into the tokens of its characters (bytes in a byte-level model).
//
// The order is the library's: a waiting unknown token is put down before the next known character, but
// after the byte tokens of a fallback.
func (e *wordEncoder) begin(word string) {
	m := e.model
	waiting := false
	single := func(id int32, character string) {
		if id != none {
			if waiting {
				e.push(m.unknown)
				waiting = false
			}
			e.push(id)
			return
		}
		if e.pushBytes(character) || m.unknown == none {
			return
		}
		if waiting && !m.fuseUnknown {
			e.push(m.unknown)
		}
		waiting = true
	}
	if m.byteLevel {
		for i := range len(word) {
			id := m.byteTokens[word[i]]
			if id != none && !waiting {
				e.push(id)
				continue
			}
			single(id, string(byteRunes[word[i]]))
		}
	} else {
		for start, r := range word {
			character := word[start : start+len(string(r))]
			id, ok := m.vocab[character]
			if !ok {
				id = none
			}
			single(id, character)
		}
	}
	if waiting {
		e.push(m.unknown)
	}
	if len(e.symbols) > 0 {
		e.symbols[len(e.symbols)-1].next = none
	}
}

// pushBytes puts down the byte tokens of a character, if all of them exist.
func (e *wordEncoder) pushBytes(character string) bool {
	if e.model.fallback == nil {
		return false
	}
	for i := range len(character) {
		if e.model.fallback[character[i]] == none {
			return false
		}
	}
	for i := range len(character) {
		e.push(e.model.fallback[character[i]])
	}
	return true
}

// consider pushes the merge of the symbols at left and its next, if there is one.
func (e *wordEncoder) consider(left, right int32) {
	m, ok := e.model.merges[pairKey(e.symbols[left].id, e.symbols[right].id)]
	if !ok {
		return
	}
	e.heap = append(e.heap, candidate{key: uint64(m.rank)<<32 | uint64(left), id: m.id})
	e.up(len(e.heap) - 1)
}

// mergeAll merges the pair of the lowest rank, the leftmost of equals, until no pair has a merge. An
// entry whose pair has changed counts still if the new pair merges to the same token, as in the library.
func (e *wordEncoder) mergeAll() {
	e.heap = e.heap[:0]
	for i := 1; i < len(e.symbols); i++ {
		e.consider(int32(i-1), int32(i))
	}
	for len(e.heap) > 0 {
		top := e.pop()
		position := int32(uint32(top.key))
		left := &e.symbols[position]
		if left.gone || left.next == none {
			continue
		}
		right := &e.symbols[left.next]
		if m, ok := e.model.merges[pairKey(left.id, right.id)]; !ok || m.id != top.id {
			continue
		}
		left.id = top.id
		left.next = right.next
		right.gone = true
		if left.next != none {
			e.symbols[left.next].previous = position
		}
		if left.previous != none {
			e.consider(left.previous, position)
		}
		if left.next != none {
			e.consider(position, left.next)
		}
	}
}

func (e *wordEncoder) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if e.heap[parent].key <= e.heap[i].key {
			return
		}
		e.heap[parent], e.heap[i] = e.heap[i], e.heap[parent]
		i = parent
	}
}

func (e *wordEncoder) pop() candidate {
	top := e.heap[0]
	last := len(e.heap) - 1
	e.heap[0] = e.heap[last]
	e.heap = e.heap[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && e.heap[child+1].key < e.heap[child].key {
			child++
		}
		if e.heap[i].key <= e.heap[child].key {
			return top
		}
		e.heap[i], e.heap[child] = e.heap[child], e.heap[i]
		i = child
	}
}
