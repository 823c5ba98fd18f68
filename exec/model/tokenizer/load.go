package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tokenrouter/exec/model"
)

// idEnd is one past the largest id that a file may give; a table of all ids is kept.
const idEnd = 1 << 21

// fileBytesMax bounds a file; published ones have some tens of MB.
const fileBytesMax = 1 << 28

// Load reads a tokenizer.json of the Hugging Face tokenizers library. What it would not do exactly as the
// library does, it refuses with file and key; see the package comment for what it does.
func Load(path string) (*Tokenizer, error) {
	data, err := model.ReadFile(path, fileBytesMax)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is Load for the content of a file; errors name file.
func Parse(file string, data []byte) (*Tokenizer, error) {
	var problem error
	root := value{file: file, raw: data, problem: &problem}
	top := root.object("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
		"post_processor", "decoder", "model")
	if problem != nil {
		return nil, problem
	}
	if version := top.at("version"); !version.isNull() && version.text() != "1.0" {
		version.refuse(" = %s, want \"1.0\"", version.given())
	}
	for _, key := range []string{"truncation", "padding"} {
		if v := top.at(key); !v.isNull() {
			v.refuse(" = %s, want null", v.given())
		}
	}
	t := &Tokenizer{added: map[int32]addedToken{}, addedIDs: map[string]int32{}, special: map[string]bool{}}
	t.model = readModel(top.at("model"))
	changesLength := false
	if v := top.at("normalizer"); !v.isNull() {
		t.normalizers, changesLength = readNormalizer(v, 0)
	}
	if v := top.at("pre_tokenizer"); !v.isNull() {
		t.readSplitters(v, changesLength)
	}
	if v := top.at("post_processor"); !v.isNull() {
		t.template, _ = readTemplate(v, 0)
	}
	t.decoder = readDecoder(top.at("decoder"))
	if problem == nil {
		t.readAdded(top.at("added_tokens"))
	}
	t.checkUnknown(top.at("model"))
	if problem != nil {
		return nil, problem
	}
	return t, nil
}

// readModel reads the BPE model.
func readModel(v value) *bpe {
	o := v.object("type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
		"byte_fallback", "ignore_merges", "vocab", "merges")
	if kind := o.at("type"); !kind.isNull() && kind.text() != "BPE" {
		kind.refuse(" = %s, want \"BPE\"", kind.given())
	}
	if dropout := o.at("dropout"); !dropout.isNull() && read[float64](dropout, "null") != 0 {
		dropout.refuse(" = %s, want null: ids would be random", dropout.given())
	}
	for _, key := range []string{"continuing_subword_prefix", "end_of_word_suffix"} {
		if affix := o.at(key); !affix.isNull() && affix.text() != "" {
			affix.refuse(" = %s, want null or \"\"", affix.given())
		}
	}
	m := &bpe{unknown: none}
	m.fuseUnknown = o.at("fuse_unk").flag(false)
	m.ignoreMerges = o.at("ignore_merges").flag(false)
	m.readVocab(o.at("vocab"))
	m.readMerges(o.at("merges"))
	if unknown := o.at("unk_token"); !unknown.isNull() {
		if id, ok := m.vocab[unknown.text()]; ok {
			m.unknown = id
		}
	}
	if o.at("byte_fallback").flag(false) {
		m.fallback = &[256]int32{}
		for b := range m.fallback {
			id, ok := m.vocab[fmt.Sprintf("<0x%02X>", b)]
			if !ok {
				id = none
			}
			m.fallback[b] = id
		}
	}
	return m
}

// vocabID is an id of the vocabulary, which unlike an int32 cannot be null.
type vocabID int32

// UnmarshalJSON reads a whole number.
func (id *vocabID) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 32)
	*id = vocabID(n)
	return err
}

// readVocab reads the vocabulary. Of several problems it names that of the first token in order.
func (m *bpe) readVocab(v value) {
	given := read[map[string]vocabID](v, "an object of token: id")
	m.vocab = make(map[string]int32, len(given))
	largest, good := int32(-1), true
	for token, id := range given {
		m.vocab[token] = int32(id)
		largest = max(largest, int32(id))
		good = good && id >= 0 && id < idEnd && token != ""
	}
	if !good {
		for _, token := range slices.Sorted(maps.Keys(given)) {
			if id := given[token]; id < 0 || id >= idEnd || token == "" {
				v.refuse("[%q] = %d, want 0 to %d for a token that is not empty", token, id, idEnd-1)
				return
			}
		}
	}
	m.tokens = make([]string, largest+1)
	for token, id := range m.vocab {
		good = good && m.tokens[id] == ""
		m.tokens[id] = token
	}
	if good {
		return
	}
	clear(m.tokens)
	for _, token := range slices.Sorted(maps.Keys(m.vocab)) {
		id := m.vocab[token]
		if other := m.tokens[id]; other != "" {
			v.refuse("[%q] = %d, want an id that %q does not have", token, id, other)
			return
		}
		m.tokens[id] = token
	}
}

// readMerges reads merges as lists of two or as strings with one space.
func (m *bpe) readMerges(v value) {
	pairs := readPairs(v)
	m.merges = make(map[uint64]merge, len(pairs))
	for rank, pair := range pairs {
		if len(pair) != 2 {
			v.refuse("[%d] = %q, want [\"left\", \"right\"] or \"left right\"", rank, pair)
			return
		}
		var ids [3]int32
		for i, token := range []string{pair[0], pair[1], pair[0] + pair[1]} {
			id, ok := m.vocab[token]
			if !ok {
				v.refuse("[%d] = %q, want %q in the vocabulary", rank, pair, token)
				return
			}
			ids[i] = id
		}
		m.merges[pairKey(ids[0], ids[1])] = merge{rank: int32(rank), id: ids[2]}
	}
}

// readPairs reads the merges of a file, all of which have one form.
func readPairs(v value) [][]string {
	var pairs [][]string
	if json.Unmarshal(v.raw, &pairs) == nil && pairs != nil {
		return pairs
	}
	lines := read[[]string](v, `a list, all of ["left", "right"] or all of "left right"`)
	pairs = make([][]string, len(lines))
	for i, line := range lines {
		pairs[i] = strings.Split(line, " ")
	}
	return pairs
}

// checkUnknown refuses an unk_token that the vocabulary lacks, unless no character can be unknown.
func (t *Tokenizer) checkUnknown(v value) {
	if *v.problem != nil {
		return
	}
	unknown := v.object().at("unk_token")
	if unknown.isNull() || t.model.unknown != none {
		return
	}
	if t.model.byteLevel {
		complete := true
		for _, id := range t.model.byteTokens {
			complete = complete && id != none
		}
		if complete {
			return
		}
	}
	unknown.refuse(" = %s, want a token of the vocabulary", unknown.given())
}

// readAdded reads the added tokens and gives them ids as the library does; the file's ids must be the same.
func (t *Tokenizer) readAdded(v value) {
	if v.isNull() {
		return
	}
	next := int32(len(t.model.vocab))
	for _, item := range v.list() {
		o := item.object("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
		a := addedToken{
			content: o.at("content").text(), singleWord: read[bool](o.at("single_word"), "true or false"),
			lstrip: read[bool](o.at("lstrip"), "true or false"), rstrip: read[bool](o.at("rstrip"), "true or false"),
			normalized: read[bool](o.at("normalized"), "true or false"),
			special:    read[bool](o.at("special"), "true or false"),
		}
		given := int32(o.at("id").number(idEnd - 1))
		if _, ok := t.addedIDs[a.content]; ok || a.content == "" {
			o.at("content").refuse(" = %q, want text that no other added token has", a.content)
		}
		if *v.problem != nil {
			return
		}
		id, ok := t.model.vocab[a.content]
		if !ok {
			id = next
			next++
		}
		if _, taken := t.added[id]; taken || id != given || !ok && t.inVocab(id) {
			o.at("id").refuse(" = %d for %q, want %d, the next free id", given, a.content, id)
			return
		}
		a.id, a.pattern = id, a.content
		into := &t.before
		if a.normalized {
			into = &t.after
			for _, normalize := range t.normalizers {
				a.pattern = normalize(a.pattern)
			}
		}
		if a.pattern == "" || !into.add(a) {
			o.at("content").refuse(" = %q, want text that stays, and stays its own, when normalised", a.content)
			return
		}
		t.added[id], t.addedIDs[a.content] = a, id
		if a.special {
			t.special[a.content] = true
		}
	}
	t.model.controls = t.controls()
}

func (t *Tokenizer) inVocab(id int32) bool {
	return int(id) < len(t.model.tokens) && t.model.tokens[id] != ""
}

// controls returns the words that ignore_merges would turn into a special token.
func (t *Tokenizer) controls() map[string]bool {
	words := map[string]bool{}
	for content := range t.special {
		if data, ok := levelBytes(content); ok && t.model.byteLevel {
			words[string(data)] = true
		} else {
			words[content] = true
		}
	}
	return words
}
