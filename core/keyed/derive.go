package keyed

import "encoding/binary"

// Label is one part of the name of a derived seed: a text or a number.
type Label struct {
	text   string
	number uint64
	kind   labelKind
}

type labelKind uint8

const (
	labelText labelKind = iota + 1
	labelNumber
)

// Text is a label made of a string, such as the name of a swept key.
func Text(s string) Label { return Label{text: s, kind: labelText} }

// Number is a label made of a whole number, such as the index of a replicate.
func Number(n uint64) Label { return Label{number: n, kind: labelNumber} }

// Derive makes a seed from a parent seed and a name. Different names give different seeds (up to
// chance collisions of 64 bit values), and order and grouping count: ("ab", "c") is not ("a", "bc").
//
// Name a sweep point by its values (Text("n"), Number(8)), not by its place in the list: then a point
// put in front changes no other. Leave the swept keys out to compare points under common random
// numbers.
func Derive(seed uint64, labels ...Label) uint64 {
	h := mix(seed + fracPi)
	for _, label := range labels {
		switch label.kind {
		case labelNumber:
			h = absorb(absorb(h, uint64(labelNumber)), label.number)
		case labelText:
			h = absorbText(h, label.text)
		default:
			panic("keyed: Derive with a zero Label, want one made by Text or Number")
		}
	}
	return mix(h ^ uint64(len(labels))*golden)
}

// absorb is a bijection of h for a fixed word and of the word for a fixed h.
func absorb(h, word uint64) uint64 { return mix(h*golden + mix(word+fracE)) }

func absorbText(h uint64, text string) uint64 {
	h = absorb(absorb(h, uint64(labelText)), uint64(len(text)))
	for len(text) > 0 {
		var word [8]byte
		n := copy(word[:], text)
		h = absorb(h, binary.LittleEndian.Uint64(word[:]))
		text = text[n:]
	}
	return h
}
