package quantile

import "testing"

func BenchmarkSampleAdd(b *testing.B) {
	var s Sample
	s.AddN(6_000_000, ExactCount+1)
	value := int64(6_000_000)
	for b.Loop() {
		s.Add(value)
		value ^= 0x5555
	}
}
