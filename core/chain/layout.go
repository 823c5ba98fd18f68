package chain

import (
	"fmt"
	"math/bits"
)

// maxTicks is the longest step time in quanta that a state can hold.
const maxTicks = 1 << 40

// layout says where the numbers of a state lie in its packed key: for each model the waiting requests k, the
// rows b of the running batch (0: idle) and its residual time r in ticks (0: idle). The three of one model
// share a word.
type layout struct {
	models, words int
	fields        []field
}

// field is the place of one model in a key.
type field struct {
	word                      int
	waiting, running, residue uint // shifts
	countMask, residueMask    uint64
}

// newLayout returns the layout for n requests and the step times of l.
func newLayout(l *lattice, n int) (*layout, error) {
	out := &layout{models: len(l.ticks)}
	countBits := uint(bits.Len(uint(n)))
	used, word := uint(0), 0
	for i, ticks := range l.ticks {
		longest := int64(0)
		for _, t := range ticks {
			longest = max(longest, t)
		}
		if longest > maxTicks {
			return nil, fmt.Errorf("chain: a step of model %d takes %d quanta of %d ns, want at most %d",
				i, longest, l.quantumNs, int64(maxTicks))
		}
		residueBits := uint(bits.Len64(uint64(longest)))
		need := 2*countBits + residueBits
		if used+need > 64 {
			used, word = 0, word+1
		}
		out.fields = append(out.fields, field{
			word: word, waiting: used, running: used + countBits, residue: used + 2*countBits,
			countMask: 1<<countBits - 1, residueMask: 1<<residueBits - 1,
		})
		used += need
	}
	out.words = word + 1
	return out, nil
}

// state is an unpacked key, and what advance finds of it.
type state struct {
	waiting, running []int
	residue          []int64
	ends             []bool
	left             []int64
}

// newState returns an empty state of the given number of models.
func newState(models int) *state {
	return &state{
		waiting: make([]int, models), running: make([]int, models), residue: make([]int64, models),
		ends: make([]bool, models), left: make([]int64, models),
	}
}

// unpack writes key into s.
func (l *layout) unpack(key []uint64, s *state) {
	for i, f := range l.fields {
		w := key[f.word]
		s.waiting[i] = int(w >> f.waiting & f.countMask)
		s.running[i] = int(w >> f.running & f.countMask)
		s.residue[i] = int64(w >> f.residue & f.residueMask)
	}
}

// pack returns the bits of one model's numbers in its word.
func (f field) pack(waiting, running int, residue int64) uint64 {
	return uint64(waiting)<<f.waiting | uint64(running)<<f.running | uint64(residue)<<f.residue
}

// index finds the number of a key. It is a hash table with open addressing; keys of states are never removed.
type index struct {
	words int
	keys  []uint64 // words a state, by number
	slots []slot
	shift uint
}

// slot holds a state's number plus one (0: free) and the first word of its key.
type slot struct {
	head   uint64
	number int32
}

// newIndex returns an empty index of keys of the given number of words.
func newIndex(words int) *index {
	const logSlots = 12
	return &index{words: words, slots: make([]slot, 1<<logSlots), shift: 64 - logSlots}
}

// size returns the number of keys.
func (x *index) size() int { return len(x.keys) / x.words }

// key returns the key of a state.
func (x *index) key(number int32) []uint64 {
	at := int(number) * x.words
	return x.keys[at : at+x.words]
}

// add returns the number of key, a new one if it is not known.
func (x *index) add(key []uint64) int32 {
	at := x.hash(key)
	mask := uint64(len(x.slots) - 1)
	for {
		found := &x.slots[at]
		if found.number == 0 {
			break
		}
		if found.head == key[0] && (x.words == 1 || x.equalTail(found.number-1, key)) {
			return found.number - 1
		}
		at = (at + 1) & mask
	}
	number := int32(x.size())
	x.keys = append(x.keys, key...)
	x.slots[at] = slot{head: key[0], number: number + 1}
	if 2*x.size() > len(x.slots) {
		x.grow()
	}
	return number
}

func (x *index) equalTail(number int32, key []uint64) bool {
	known := x.key(number)
	for w := 1; w < x.words; w++ {
		if known[w] != key[w] {
			return false
		}
	}
	return true
}

func (x *index) hash(key []uint64) uint64 {
	h := uint64(0)
	for _, w := range key {
		h = (h ^ w ^ w>>29) * 0x9e3779b97f4a7c15
	}
	return h >> x.shift
}

// grow doubles the table.
func (x *index) grow() {
	x.slots = make([]slot, 2*len(x.slots))
	x.shift--
	mask := uint64(len(x.slots) - 1)
	for number := range int32(x.size()) {
		key := x.key(number)
		at := x.hash(key)
		for x.slots[at].number != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = slot{head: key[0], number: number + 1}
	}
}
