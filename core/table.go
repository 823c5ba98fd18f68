package core

import "math/bits"

// table maps uint64 keys to int32 values >= 0. Its room is fixed: open addressing at most
// half full, deletion by moving later entries back, so that it never allocates (I12).
type table struct {
	keys   []uint64
	values []int32 // -1: empty
	shift  uint
}

func newTable(room int) table {
	width := max(bits.Len(uint(2*room-1)), 2)
	t := table{make([]uint64, 1<<width), make([]int32, 1<<width), uint(64 - width)}
	for i := range t.values {
		t.values[i] = -1
	}
	return t
}

func (t *table) home(key uint64) int { return int(key * 0x9E3779B97F4A7C15 >> t.shift) }

func (t *table) find(key uint64) int {
	mask := len(t.keys) - 1
	i := t.home(key)
	for t.values[i] >= 0 && t.keys[i] != key {
		i = (i + 1) & mask
	}
	return i
}

// get returns the value of key, or -1.
func (t *table) get(key uint64) int32 { return t.values[t.find(key)] }

func (t *table) put(key uint64, value int32) {
	i := t.find(key)
	t.keys[i], t.values[i] = key, value
}

func (t *table) remove(key uint64) {
	hole := t.find(key)
	if t.values[hole] < 0 {
		return
	}
	mask := len(t.keys) - 1
	for i := (hole + 1) & mask; t.values[i] >= 0; i = (i + 1) & mask {
		// The entry at i may fill the hole unless its home lies after the hole.
		if (i-t.home(t.keys[i]))&mask >= (i-hole)&mask {
			t.keys[hole], t.values[hole] = t.keys[i], t.values[i]
			hole = i
		}
	}
	t.values[hole] = -1
}
