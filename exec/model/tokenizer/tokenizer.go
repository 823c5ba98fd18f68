package tokenizer

import (
	"slices"
	"sync"
)

// Tokenizer turns text into the token ids of a model and back. It is safe for several goroutines at once.
type Tokenizer struct {
	model       *bpe
	normalizers []normalizer
	splitters   []splitter
	before      matcher // added tokens that are found in the text as it is
	after       matcher // added tokens that are found in normalised text
	added       map[int32]addedToken
	addedIDs    map[string]int32
	special     map[string]bool // contents of special tokens
	template    []templatePiece // nil: the text alone
	decoder     []stageMaker
	encoders    sync.Pool // of *encoder
}

// templatePiece is the text, or tokens put around it.
type templatePiece struct {
	text bool
	ids  []int32
}

// Options says how Encode treats special tokens.
type Options struct {
	// AddSpecial puts the tokens of the file's template (such as the beginning of text) around the text.
	AddSpecial bool
	// ParseSpecial turns the contents of special tokens in the text (such as "<|im_end|>") into their ids. Leave
	// it off for text of users: then they are text like any other. Added tokens that the file does not call
	// special are found in any case, as the library does with encode_special_tokens.
	ParseSpecial bool
}

// encoder is what one call of Encode works with.
type encoder struct {
	words    wordEncoder
	from, to []string
}

// Encode returns the ids of text, the same as the library's encode(text, add_special_tokens=AddSpecial) with
// encode_special_tokens = !ParseSpecial. Bytes that are not UTF-8 count as U+FFFD, one for each longest
// ill-formed piece, as with Python's decode("utf-8", "replace").
func (t *Tokenizer) Encode(text string, o Options) []int32 {
	e, ok := t.encoders.Get().(*encoder)
	if !ok {
		e = &encoder{words: wordEncoder{model: t.model, known: map[string][]int32{}}}
	}
	defer t.encoders.Put(e)
	e.words.literal = !o.ParseSpecial
	text = validText(text)
	ids := make([]int32, 0, len(text)/3+4)
	if t.template == nil {
		return t.appendText(ids, e, text, o.ParseSpecial)
	}
	for _, piece := range t.template {
		if piece.text {
			ids = t.appendText(ids, e, text, o.ParseSpecial)
		} else if o.AddSpecial {
			ids = append(ids, piece.ids...)
		}
	}
	return ids
}

func (t *Tokenizer) appendText(ids []int32, e *encoder, text string, parseSpecial bool) []int32 {
	t.before.split(text, parseSpecial, func(piece string, id int32, start bool) {
		if id != none {
			ids = append(ids, id)
			return
		}
		for _, normalize := range t.normalizers {
			piece = normalize(piece)
		}
		t.after.split(piece, parseSpecial, func(piece string, id int32, first bool) {
			if id != none {
				ids = append(ids, id)
				return
			}
			ids = t.appendWords(ids, e, piece, start && first)
		})
	})
	return ids
}

func (t *Tokenizer) appendWords(ids []int32, e *encoder, piece string, start bool) []int32 {
	e.from = append(e.from[:0], piece)
	for _, split := range t.splitters {
		e.to = e.to[:0]
		for _, word := range e.from {
			if word != "" {
				e.to = split(e.to, word, start)
			}
		}
		e.from, e.to = e.to, e.from
	}
	for _, word := range e.from {
		if word != "" {
			ids = e.words.append(ids, word)
		}
	}
	clear(e.from) // lets go of the text
	clear(e.to)
	return ids
}

// Decode returns the text of ids, the same as the library's decode. With skipSpecial, special tokens give no
// text; ids that the vocabulary lacks never do.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	c := newChain(t.decoder, false)
	for _, id := range ids {
		if token, ok := t.decoded(id, skipSpecial); ok {
			c.push(token)
		}
	}
	c.flush()
	return c.take()
}

// decoded returns what the decoder gets for id; ok is false where it gets nothing.
func (t *Tokenizer) decoded(id int32, skipSpecial bool) (token string, ok bool) {
	if a, found := t.added[id]; found {
		token = a.pattern
	} else if id >= 0 && int(id) < len(t.model.tokens) && t.model.tokens[id] != "" {
		token = t.model.tokens[id]
	} else {
		return "", false
	}
	return token, !skipSpecial || !t.special[token]
}

// VocabSize returns the number of tokens, added ones included. A model's logits may be wider.
func (t *Tokenizer) VocabSize() int {
	size := len(t.model.vocab)
	for content := range t.addedIDs {
		if _, ok := t.model.vocab[content]; !ok {
			size++
		}
	}
	return size
}

// End returns the end of the ids: one more than the largest. There may be gaps below it.
func (t *Tokenizer) End() int {
	end := 0
	for id, left := int32(0), t.VocabSize(); left > 0; id++ {
		if _, ok := t.Token(id); ok {
			left--
			end = int(id) + 1
		}
	}
	return end
}

// TokenID returns the id of the token with this content, as it stands in the file (in the byte-level alphabet
// where the vocabulary is of that kind; an added token in plain text).
func (t *Tokenizer) TokenID(token string) (id int32, ok bool) {
	if id, ok = t.addedIDs[token]; ok {
		return id, true
	}
	id, ok = t.model.vocab[token]
	return id, ok
}

// Token returns the content of the token with this id, as it stands in the file.
func (t *Tokenizer) Token(id int32) (token string, ok bool) {
	if a, found := t.added[id]; found {
		return a.content, true
	}
	if id < 0 || int(id) >= len(t.model.tokens) || t.model.tokens[id] == "" {
		return "", false
	}
	return t.model.tokens[id], true
}

// IsSpecial reports whether id is a special token, one that Decode can skip.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.added[id].special
}

// SpecialIDs returns the ids of all special tokens in order.
func (t *Tokenizer) SpecialIDs() []int32 {
	var ids []int32
	for id, token := range t.added {
		if token.special {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
