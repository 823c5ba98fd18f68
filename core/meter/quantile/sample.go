package quantile

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

const (
	// ExactCount is how many values a Sample keeps as they are. Beyond it, it keeps a histogram.
	ExactCount = 4096
	// RelativeError bounds |reported - true| / true of a quantile once a Sample is a histogram.
	RelativeError = 0x1p-10

	// A bucket index is shift*512 + value>>shift, with the shift that leaves ten significant bits:
	// values below 1024 have a bucket each, larger ones share 512 buckets an octave.
	bucketBits  = 9
	bucketCount = (63-bucketBits-1)<<bucketBits + 2<<bucketBits
)

// Sample collects whole numbers of at least 0 and answers for their quantiles, mean and extremes.
// The first ExactCount values are kept, and quantiles are exact; after that it is a log-linear
// histogram of fixed size (220 KiB), whose quantiles are within RelativeError. Count, mean,
// least and greatest value are always exact.
//
// What a Sample holds depends only on the multiset of values added, not on their order or on how
// they were spread over Samples before Merge. The zero value is ready. Not safe for concurrent use.
type Sample struct {
	count        int64
	below, above int64 // Add is quick strictly between them: min-1 and max+1, or 0 and 0 while exact
	min, max     int64
	sumHi, sumLo uint64
	buckets      *[bucketCount]uint64
	exact        []int64
	binned       bool // the buckets hold all values and exact holds none
	sorted       bool // exact is in ascending order
}

// Reserve allocates all that a Sample ever needs, so that no later Add or AddN allocates.
func (s *Sample) Reserve() {
	if s.buckets == nil {
		s.buckets = new([bucketCount]uint64)
	}
	if !s.binned {
		s.exact = slices.Grow(s.exact, ExactCount-len(s.exact))
	}
}

// Reset forgets all values and keeps the memory.
func (s *Sample) Reset() {
	if s.binned {
		clear(s.buckets[:])
	}
	*s = Sample{buckets: s.buckets, exact: s.exact[:0]}
}

// Add adds one value. It panics when the value is negative: times and counts are not.
func (s *Sample) Add(value int64) {
	if value <= s.below || value >= s.above { // a new extreme, still exact, or negative
		s.AddN(value, 1)
		return
	}
	s.count++
	s.sumLo += uint64(value)
	if s.sumLo < uint64(value) {
		s.sumHi++
	}
	s.buckets[bucketOf(value)]++
}

// AddN adds a value n times in constant time once the Sample is a histogram. Adding 0 times does
// nothing. It panics when the value or n is negative.
func (s *Sample) AddN(value, n int64) {
	if value < 0 || n < 0 {
		panic(fmt.Sprintf("quantile: AddN(%d, %d), want a value and a count of at least 0", value, n))
	}
	if n == 0 {
		return
	}
	if s.count == 0 {
		s.min, s.max = value, value
	}
	if s.count > math.MaxInt64-n {
		panic(fmt.Sprintf("quantile: AddN(%d, %d) to %d values exceeds int64", value, n, s.count))
	}
	s.min = min(s.min, value)
	s.max = max(s.max, value)
	s.count += n
	hi, lo := bits.Mul64(uint64(value), uint64(n))
	var carry uint64
	s.sumLo, carry = bits.Add64(s.sumLo, lo, 0)
	s.sumHi += hi + carry
	if !s.binned && s.count <= ExactCount {
		s.sorted = false
		for range n {
			s.exact = append(s.exact, value)
		}
		return
	}
	s.bin()
	s.buckets[bucketOf(value)] += uint64(n)
}

// hasten sets the span of values for which Add needs no look at the extremes.
func (s *Sample) hasten() {
	s.below, s.above = s.min-1, s.max
	if s.max < math.MaxInt64 {
		s.above++
	}
}

// Merge adds all values of other, which stays as it is. The result does not depend on the order in
// which Samples are merged.
func (s *Sample) Merge(other *Sample) {
	if other.count == 0 {
		return
	}
	if s == other {
		panic("quantile: a Sample merged into itself")
	}
	if s.count > math.MaxInt64-other.count {
		panic(fmt.Sprintf("quantile: a merge of %d and %d values exceeds int64", s.count, other.count))
	}
	if s.count == 0 {
		s.min, s.max = other.min, other.max
	}
	s.min = min(s.min, other.min)
	s.max = max(s.max, other.max)
	s.count += other.count
	var carry uint64
	s.sumLo, carry = bits.Add64(s.sumLo, other.sumLo, 0)
	s.sumHi += other.sumHi + carry
	if s.count <= ExactCount {
		s.sorted = false
		s.exact = append(s.exact, other.exact...)
		return
	}
	s.bin()
	for _, value := range other.exact {
		s.buckets[bucketOf(value)]++
	}
	if other.binned {
		for i, n := range other.buckets {
			s.buckets[i] += n
		}
	}
}

// bin moves the values kept so far into buckets. The extremes must be up to date.
func (s *Sample) bin() {
	s.hasten()
	if s.binned {
		return
	}
	if s.buckets == nil {
		s.buckets = new([bucketCount]uint64)
	}
	for _, value := range s.exact {
		s.buckets[bucketOf(value)]++
	}
	s.binned, s.exact = true, s.exact[:0]
}

// Count returns how many values were added.
func (s *Sample) Count() int64 { return s.count }

// Exact reports whether quantiles are exact rather than within RelativeError.
func (s *Sample) Exact() bool { return !s.binned }

// Mean returns the arithmetic mean, or ok = false when there is no value. The sum is kept in 128 bits.
func (s *Sample) Mean() (mean float64, ok bool) {
	if s.count == 0 {
		return 0, false
	}
	quotient, remainder := bits.Div64(s.sumHi, s.sumLo, uint64(s.count))
	return float64(quotient) + float64(remainder)/float64(s.count), true
}

// Min returns the least value, or ok = false when there is none.
func (s *Sample) Min() (value int64, ok bool) { return s.min, s.count > 0 }

// Max returns the greatest value, or ok = false when there is none.
func (s *Sample) Max() (value int64, ok bool) { return s.max, s.count > 0 }

// Quantile returns the p-quantile by nearest rank, or ok = false when there is no value. It panics
// unless 0 <= p <= 1. The quantiles 0 and 1 are exact always.
func (s *Sample) Quantile(p float64) (value int64, ok bool) {
	if s.count == 0 {
		return 0, false
	}
	rank := Rank(p, s.count)
	switch {
	case rank == 1:
		return s.min, true
	case rank == s.count:
		return s.max, true
	case !s.binned:
		if !s.sorted {
			slices.Sort(s.exact)
			s.sorted = true
		}
		return s.exact[rank-1], true
	}
	below := uint64(0)
	for i, n := range s.buckets {
		below += n
		if below >= uint64(rank) {
			low, high := bucketRange(i)
			return min(max(low+(high-low+1)/2, s.min), s.max), true
		}
	}
	panic(fmt.Sprintf("quantile: buckets hold %d values, count says %d", below, s.count))
}

// bucketOf returns the bucket of a value of at least 0.
func bucketOf(value int64) int {
	shift := bits.Len64(uint64(value)|(2<<bucketBits-1)) - bucketBits - 1
	return shift<<bucketBits + int(uint64(value)>>(uint(shift)&63))
}

// bucketRange returns the least and greatest value of bucket i.
func bucketRange(i int) (low, high int64) {
	shift := max(i>>bucketBits-1, 0)
	low = int64(i-shift<<bucketBits) << shift
	return low, low + (1<<shift - 1)
}
