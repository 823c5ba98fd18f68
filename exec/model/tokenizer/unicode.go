package tokenizer

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// unicodeData holds what the Hugging Face library knows of every code point, as testdata/make.py read it from
// the library: its regular expressions follow Unicode 16, its normalisation Unicode 9. Go's own tables follow
// another version, so some 5,000 code points would be split differently with them.
//
//go:embed unicode.gz
var unicodeData []byte

// Attributes of a code point: its general category in the low 5 bits, an index into categories, and flags.
const (
	categoryBits  = 31
	attrSpace     = 1 << 5 // \s
	attrWord      = 1 << 6 // \w in a split pattern
	attrNumeric   = 1 << 7 // the pre-tokenizer Digits
	attrWordAdded = 1 << 8 // \w beside an added token with single_word
)

// categories are the general categories in the order of their index.
var categories = [...]string{
	"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
	"Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn", "Cs",
}

const (
	runeEnd   = 0x110000 // one past the last code point
	blockSize = 256
)

// unicodeTable is the decoded form of unicodeData.
type unicodeTable struct {
	block     [runeEnd / blockSize]uint16 // code point / blockSize -> index into attr
	attr      [][blockSize]uint16
	combining map[rune]uint8    // canonical combining class, where it is not 0
	decompose map[rune][]rune   // full canonical decomposition, Hangul left out
	compose   map[[2]rune]rune  // primary composites, Hangul left out
	joins     map[rune]struct{} // second halves of primary composites
}

// characters is the table, decoded once.
var characters = sync.OnceValue(readUnicode)

// attributes returns the attributes of r.
func (t *unicodeTable) attributes(r rune) uint16 {
	return t.attr[t.block[uint32(r)/blockSize]][uint32(r)%blockSize]
}

// readUnicode decodes unicodeData. It panics where the embedded file is damaged.
func readUnicode() *unicodeTable {
	unzipped, err := gzip.NewReader(bytes.NewReader(unicodeData))
	if err != nil {
		panic(fmt.Sprintf("tokenizer: unicode.gz: %v", err))
	}
	data, err := io.ReadAll(unzipped)
	if err != nil {
		panic(fmt.Sprintf("tokenizer: unicode.gz: %v", err))
	}
	next := func() rune {
		value, size := binary.Uvarint(data)
		if size <= 0 || value > runeEnd {
			panic(fmt.Sprintf("tokenizer: unicode.gz: %d bytes before its end: want a number", len(data)))
		}
		data = data[size:]
		return rune(value)
	}
	t := &unicodeTable{
		combining: map[rune]uint8{}, decompose: map[rune][]rune{},
		compose: map[[2]rune]rune{}, joins: map[rune]struct{}{},
	}
	t.readAttributes(next)
	point := rune(0)
	for range next() {
		point += next()
		t.combining[point] = uint8(next())
	}
	point = 0
	for range next() {
		point += next()
		whole := make([]rune, next())
		for i := range whole {
			whole[i] = next()
		}
		t.decompose[point] = whole
	}
	for range next() {
		first, second := next(), next()
		t.compose[[2]rune{first, second}] = next()
		t.joins[second] = struct{}{}
	}
	return t
}

// readAttributes reads runs of equal attributes and folds equal blocks of the result into one.
func (t *unicodeTable) readAttributes(next func() rune) {
	flat := make([]uint16, runeEnd)
	runs := next()
	start, value := rune(0), uint16(0)
	for range runs {
		begin := start + next()
		for point := start; point < begin; point++ {
			flat[point] = value
		}
		start, value = begin, uint16(next())
	}
	for point := start; point < runeEnd; point++ {
		flat[point] = value
	}
	seen := map[[blockSize]uint16]uint16{}
	for i := range t.block {
		block := [blockSize]uint16(flat[i*blockSize:])
		index, ok := seen[block]
		if !ok {
			index = uint16(len(t.attr))
			seen[block] = index
			t.attr = append(t.attr, block)
		}
		t.block[i] = index
	}
}
