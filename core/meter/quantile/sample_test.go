package quantile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSampleExact(t *testing.T) {
	var s Sample
	for _, value := range rand.New(rand.NewPCG(1, 2)).Perm(100) {
		s.Add(int64(value) + 1)
	}
	for p, want := range map[float64]int64{0: 1, 0.07: 7, 0.5: 50, 0.9: 90, 0.95: 95, 0.99: 99, 1: 100} {
		if got, ok := s.Quantile(p); !ok || got != want {
			t.Errorf("Quantile(%v) of 1..100 = %d, %t, want %d", p, got, ok, want)
		}
	}
	if mean, ok := s.Mean(); !ok || mean != 50.5 {
		t.Errorf("mean of 1..100 = %v, want 50.5", mean)
	}
	if s.Count() != 100 || !s.Exact() {
		t.Errorf("count %d, exact %t, want 100 and true", s.Count(), s.Exact())
	}
}

func TestSampleEmpty(t *testing.T) {
	var s Sample
	s.AddN(5, 0)
	s.Merge(&Sample{})
	_, okQuantile := s.Quantile(0.5)
	_, okMean := s.Mean()
	_, okMin := s.Min()
	_, okMax := s.Max()
	if okQuantile || okMean || okMin || okMax || s.Count() != 0 {
		t.Errorf("an empty Sample knows something: quantile %t, mean %t, min %t, max %t, count %d",
			okQuantile, okMean, okMin, okMax, s.Count())
	}
}

// TestBuckets: buckets tile the whole numbers without gap or overlap, each narrow enough.
func TestBuckets(t *testing.T) {
	next := int64(0)
	for i := range bucketCount {
		low, high := bucketRange(i)
		if low != next || high < low {
			t.Fatalf("bucket %d is %d..%d, want it to begin at %d", i, low, high, next)
		}
		if bucketOf(low) != i || bucketOf(high) != i {
			t.Fatalf("ends %d and %d of bucket %d fall into %d and %d", low, high, i, bucketOf(low), bucketOf(high))
		}
		middle := low + (high-low+1)/2
		if worst := float64(max(middle-low, high-middle)); worst > RelativeError*float64(low) && low > 0 {
			t.Fatalf("bucket %d, %d..%d: error %v of its middle exceeds 2^-10", i, low, high, worst)
		}
		next = high + 1
	}
	if next != math.MinInt64 { // one past the largest value wraps
		t.Errorf("buckets end at %d, want the largest int64", next-1)
	}
}

// TestSampleError compares quantiles of large sets with those of the sorted values.
func TestSampleError(t *testing.T) {
	const n = 50_000
	random := rand.New(rand.NewPCG(3, 4))
	laws := []struct {
		name string
		draw func() int64
	}{
		{"exponential, 6 ms", func() int64 { return int64(random.ExpFloat64() * 6e6) }},
		{"narrow", func() int64 { return 27_900_000 + random.Int64N(1000) }},
		{"every magnitude", func() int64 { return int64(random.Uint64() >> (1 + random.IntN(63))) }},
		{"constant", func() int64 { return 6_000_000 }},
		{"two values", func() int64 { return []int64{1, 1 << 40}[random.IntN(2)] }},
	}
	for _, law := range laws {
		t.Run(law.name, func(t *testing.T) {
			var s Sample
			values, sum := make([]int64, n), 0.0
			for i := range values {
				values[i] = law.draw()
				s.Add(values[i])
				sum += float64(values[i])
			}
			slices.Sort(values)
			for _, p := range []float64{0, 0.001, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1} {
				want := values[Rank(p, n)-1]
				got, _ := s.Quantile(p)
				if math.Abs(float64(got-want)) > RelativeError*float64(want) {
					t.Errorf("Quantile(%v) = %d, want %d within 2^-10", p, got, want)
				}
			}
			if mean, _ := s.Mean(); math.Abs(mean/(sum/n)-1) > 1e-12 {
				t.Errorf("mean %v, want %v", mean, sum/n)
			}
			if s.Exact() {
				t.Error("still exact beyond ExactCount")
			}
		})
	}
}

func TestSampleSumNeedsMoreThan64Bits(t *testing.T) {
	var s Sample
	s.AddN(math.MaxInt64, 10_000)
	for range 10_000 {
		s.Add(math.MaxInt64)
	}
	if mean, _ := s.Mean(); mean != math.MaxInt64 {
		t.Errorf("mean of the largest value = %v, want %v", mean, float64(math.MaxInt64))
	}
	if got, _ := s.Quantile(0.5); got != math.MaxInt64 {
		t.Errorf("median of the largest value = %d, want it", got)
	}
}

// TestSampleState: what a Sample holds depends on the multiset of its values only.
func TestSampleState(t *testing.T) {
	for _, n := range []int{10, ExactCount - 1, ExactCount, ExactCount + 1, 3 * ExactCount} {
		values := make([]int64, n)
		for i := range values {
			values[i] = int64(i * i % 10_007)
		}
		var straight, backward, weighted Sample
		var shards [3]Sample
		counts := map[int64]int64{}
		for i, value := range values {
			straight.Add(value)
			backward.Add(values[n-1-i])
			shards[i%3].Add(value)
			counts[value]++
		}
		for value := range int64(10_007) {
			weighted.AddN(value, counts[value])
		}
		var merged, mergedOtherWay Sample
		for i := range shards {
			merged.Merge(&shards[i])
			mergedOtherWay.Merge(&shards[2-i])
		}
		for name, s := range map[string]*Sample{
			"backward": &backward, "weighted": &weighted, "merged": &merged, "merged the other way": &mergedOtherWay,
		} {
			if s.Exact() != straight.Exact() || s.Count() != straight.Count() {
				t.Fatalf("%d values %s: exact %t, count %d; straight %t, %d",
					n, name, s.Exact(), s.Count(), straight.Exact(), straight.Count())
			}
			for percent := range 101 {
				got, _ := s.Quantile(float64(percent) / 100)
				if want, _ := straight.Quantile(float64(percent) / 100); got != want {
					t.Fatalf("%d values %s: p%d = %d, straight %d", n, name, percent, got, want)
				}
			}
			got, _ := s.Mean()
			if want, _ := straight.Mean(); got != want {
				t.Fatalf("%d values %s: mean %v, straight %v", n, name, got, want)
			}
		}
	}
}

func TestSampleResetAndReserve(t *testing.T) {
	var s Sample
	s.Reserve()
	value := int64(0)
	if allocations := testing.AllocsPerRun(3*ExactCount, func() { s.Add(value); value++ }); allocations != 0 {
		t.Errorf("%v allocations an Add after Reserve, want 0", allocations)
	}
	s.Reset()
	if s.Count() != 0 || !s.Exact() {
		t.Errorf("after Reset: count %d, exact %t, want 0 and true", s.Count(), s.Exact())
	}
	s.AddN(7, 2*ExactCount)
	if got, _ := s.Quantile(0.01); got != 7 {
		t.Errorf("p1 after Reset = %d, want 7: an old value is left", got)
	}
}

func BenchmarkSampleAdd(b *testing.B) {
	var s Sample
	s.AddN(6_000_000, ExactCount+1)
	value := int64(6_000_000)
	for b.Loop() {
		s.Add(value)
		value ^= 0x5555
	}
}

// BenchmarkSampleAddEach adds a launch's worth of equal gaps one by one, as a batch of 64 tokens does.
func BenchmarkSampleAddEach(b *testing.B) {
	var s Sample
	s.AddN(6_000_000, ExactCount+1)
	for b.Loop() {
		for i := range int64(64) {
			s.Add(6_000_000 + i<<12)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/value")
}

func BenchmarkSampleAddN(b *testing.B) {
	var s Sample
	s.AddN(6_000_000, ExactCount+1)
	for b.Loop() {
		s.AddN(6_000_000, 64)
	}
}
