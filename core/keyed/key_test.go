package keyed

import (
	"math"
	"math/bits"
	"testing"
)

// TestHashGolden pins the bits, because every result of the simulator rests on them. The values were
// computed apart, with whole numbers of any size, from the definition in key.go.
func TestHashGolden(t *testing.T) {
	tests := []struct {
		name            string
		seed, request   uint64
		position, model uint32
		purpose         Purpose
		want            uint64
	}{
		{"all zero", 0, 0, 0, 0, Route, 0x5d7875ec32db146b},
		{"seed", 1, 0, 0, 0, Route, 0x59c7b64070616102},
		{"request", 0, 1, 0, 0, Route, 0x33212541b2caae6f},
		{"position", 0, 0, 1, 0, Route, 0xb366f7a38de1091e},
		{"model", 0, 0, 0, 1, Route, 0xcee4ae50f5c61e4b},
		{"purpose", 0, 0, 0, 0, Token, 0xfac9373c48bc03b1},
		{"largest", math.MaxUint64, math.MaxUint64, math.MaxUint32, math.MaxUint32, 255, 0x96fd12af2869a78},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Hash(test.seed, test.request, test.position, test.model, test.purpose)
			if got != test.want {
				t.Errorf("Hash = %#x, want %#x", got, test.want)
			}
		})
	}
}

func TestStreamGolden(t *testing.T) {
	stream := NewKey(7, 3).Stream(2, 1, Arrival)
	other := stream // a copy goes on by itself
	if got, want := other.Float64(), float64(0x40c3ffebae4081c7>>11)/(1<<53); got != want {
		t.Errorf("first float = %v, want %v", got, want)
	}
	for i, want := range [...]uint64{0x40c3ffebae4081c7, 0xda467ede455e0453, 0xb8d77e8320608410} {
		if got := stream.Uint64(); got != want {
			t.Errorf("draw %d = %#x, want %#x", i, got, want)
		}
	}
}

// TestDistinct is case 30: seeds, sweep points, replicates and streams of small numbers must not meet, as
// seed x id would (2 x 3 = 3 x 2).
func TestDistinct(t *testing.T) {
	seen := map[uint64]bool{}
	add := func(h uint64) {
		if seen[h] {
			t.Fatalf("%#x occurs twice among %d", h, len(seen))
		}
		seen[h] = true
	}
	for seed := range uint64(4) {
		for _, n := range []uint64{1, 2, 4} {
			for replicate := range uint64(5) {
				derived := Derive(seed, Text("n"), Number(n), Text("replicate"), Number(replicate))
				add(derived)
				for _, purpose := range []Purpose{Arrival, Route, Length} {
					add(Hash(derived, 0, 0, 0, purpose))
				}
			}
		}
	}
	if want := 4*3*5 + 4*3*5*3; len(seen) != want {
		t.Errorf("%d values, want %d", len(seen), want)
	}
	for seed := range uint64(8) {
		for request := range uint64(8) {
			for position := range uint32(8) {
				for model := range uint32(8) {
					for purpose := Route; purpose <= Cancel; purpose++ {
						add(Hash(seed, request, position, model, purpose))
					}
				}
			}
		}
	}
}

// TestDrawsDoNotDependOnOrder: a dropped draft's draw shifts nothing, since there is no state.
func TestDrawsDoNotDependOnOrder(t *testing.T) {
	key := NewKey(5, 9)
	forward := make([]uint64, 100)
	for i := range forward {
		forward[i] = key.At(uint32(i), 0, Route)
	}
	for i := len(forward) - 1; i >= 0; i-- {
		if got := Hash(5, 9, uint32(i), 0, Route); got != forward[i] {
			t.Fatalf("position %d: %#x backwards, %#x forwards", i, got, forward[i])
		}
	}
}

// sequences walk one argument at a time, since structure would show there.
var sequences = []struct {
	name string
	at   func(i int) uint64
}{
	{"seed", func(i int) uint64 { return Hash(uint64(i), 3, 5, 1, Route) }},
	{"request", func(i int) uint64 { return Hash(1, uint64(i), 5, 1, Route) }},
	{"position", func(i int) uint64 { return Hash(1, 3, uint32(i), 1, Route) }},
	{"model", func(i int) uint64 { return Hash(1, 3, 5, uint32(i), Route) }},
	{"purpose and position", func(i int) uint64 { return Hash(1, 3, uint32(i/8), 1, Purpose(i%8+1)) }},
	{"seed = request", func(i int) uint64 { return Hash(uint64(i), uint64(i), 0, 0, Route) }},
	{"request = position", func(i int) uint64 { return Hash(0, uint64(i), uint32(i), 0, Route) }},
	{"high bits of seed", func(i int) uint64 { return Hash(uint64(i)<<40, 0, 0, 0, Route) }},
	{"high bits of request", func(i int) uint64 { return Hash(0, uint64(i)<<40, 0, 0, Route) }},
	{"derived", func(i int) uint64 { return Derive(0, Text("n"), Number(uint64(i))) }},
	{"stream", func() func(int) uint64 {
		stream := NewKey(1, 2).Stream(3, 0, Token)
		return func(int) uint64 { return stream.Uint64() }
	}()},
	{"streams of neighbours", func(i int) uint64 {
		stream := NewKey(1, uint64(i/4)).Stream(0, 0, Token)
		for range i % 4 {
			stream.Uint64()
		}
		return stream.Uint64()
	}},
}

// TestUniform counts the top and the bottom byte of 2^16 hashes and compares with chi-square. With 255
// degrees of freedom the statistic has mean 255 and deviation 22.6; 5.5 deviations are allowed, which a
// uniform law exceeds less than once in a million tests.
func TestUniform(t *testing.T) {
	const n = 1 << 16
	for _, sequence := range sequences {
		t.Run(sequence.name, func(t *testing.T) {
			var top, bottom [256]float64
			for i := range n {
				h := sequence.at(i)
				top[h>>56]++
				bottom[h&255]++
			}
			for name, counts := range map[string][256]float64{"top": top, "bottom": bottom} {
				chi := 0.0
				for _, count := range counts {
					chi += (count - n/256) * (count - n/256) / (n / 256)
				}
				if math.Abs(chi-255) > 5.5*22.6 {
					t.Errorf("chi-square of the %s byte = %.1f, want 255 +- 124", name, chi)
				}
			}
		})
	}
}

// TestLagCorrelation compares neighbours at several lags: the correlation of n independent uniforms has
// deviation 1/sqrt(n).
func TestLagCorrelation(t *testing.T) {
	const n = 1 << 15
	for _, sequence := range sequences {
		t.Run(sequence.name, func(t *testing.T) {
			values := make([]float64, n)
			for i := range values {
				values[i] = Float(sequence.at(i)) - 0.5
			}
			for _, lag := range []int{1, 2, 3, 4, 8, 16, 64, 1024} {
				sum := 0.0
				for i := lag; i < n; i++ {
					sum += values[i] * values[i-lag]
				}
				correlation := sum / float64(n-lag) * 12
				if math.Abs(correlation) > 5.5/math.Sqrt(float64(n-lag)) {
					t.Errorf("lag %d: correlation %.4f, want 0 +- %.4f", lag, correlation, 5.5/math.Sqrt(n))
				}
			}
		})
	}
}

// TestAvalanche flips every input bit of many names: every output bit must flip half of the time.
func TestAvalanche(t *testing.T) {
	const trials = 2000
	inputs := []struct {
		name string
		bits int
		hash func(base uint64, flip uint64) uint64
	}{
		{"seed", 64, func(b, f uint64) uint64 { return Hash(b^f, 7, 3, 1, Route) }},
		{"request", 64, func(b, f uint64) uint64 { return Hash(7, b^f, 3, 1, Route) }},
		{"position", 32, func(b, f uint64) uint64 { return Hash(7, b>>32, uint32(b^f), 1, Route) }},
		{"model", 32, func(b, f uint64) uint64 { return Hash(7, b>>32, 3, uint32(b^f), Route) }},
		{"purpose", 7, func(b, f uint64) uint64 { return Hash(7, b>>8, 3, 1, Purpose(b^f)) }},
	}
	for _, input := range inputs {
		t.Run(input.name, func(t *testing.T) {
			for bit := range input.bits {
				var flips [64]int
				for i := range trials {
					changed := input.hash(uint64(i), 0) ^ input.hash(uint64(i), 1<<bit)
					for changed != 0 {
						flips[bits.TrailingZeros64(changed)]++
						changed &= changed - 1
					}
				}
				for out, count := range flips {
					// 0.5 +- 5.5 deviations of sqrt(0.25/trials).
					if share := float64(count) / trials; math.Abs(share-0.5) > 5.5*0.5/math.Sqrt(trials) {
						t.Errorf("input bit %d flips output bit %d in %.3f of cases, want 0.5", bit, out, share)
					}
				}
			}
		})
	}
}

func TestDeriveTellsNamesApart(t *testing.T) {
	names := map[string][]Label{
		"none":             nil,
		"empty text":       {Text("")},
		"two empty texts":  {Text(""), Text("")},
		"zero":             {Number(0)},
		"two zeros":        {Number(0), Number(0)},
		"ab, c":            {Text("ab"), Text("c")},
		"a, bc":            {Text("a"), Text("bc")},
		"abc":              {Text("abc")},
		"abc and a NUL":    {Text("abc\x00")},
		"c, ab":            {Text("c"), Text("ab")},
		"number 97":        {Number(97)},
		"text a":           {Text("a")},
		"longer than word": {Text("replicate")},
		"one byte more":    {Text("replicate\x00")},
		"1, 2":             {Number(1), Number(2)},
		"2, 1":             {Number(2), Number(1)},
	}
	seen := map[uint64]string{}
	for name, labels := range names {
		for _, seed := range []uint64{0, 1} {
			h := Derive(seed, labels...)
			if other, ok := seen[h]; ok {
				t.Errorf("%q and %q with seed %d give the same seed %#x", name, other, seed, h)
			}
			seen[h] = name
		}
	}
	if got, want := Derive(1, Text("n"), Number(8)), uint64(0x5a87379b884f680a); got != want {
		t.Errorf("Derive(1, n, 8) = %#x, want %#x", got, want)
	}
}

func BenchmarkHash(b *testing.B) {
	i, sum := uint64(0), uint64(0)
	for b.Loop() {
		sum += Hash(1, i, 0, 0, Route)
		i++
	}
	sink = sum
}

// BenchmarkKeyAt draws 64 positions an iteration, as a launch does, and reports the time of one.
func BenchmarkKeyAt(b *testing.B) {
	key := NewKey(1, 2)
	sum := uint64(0)
	for b.Loop() {
		for i := range uint32(64) {
			sum += key.At(i, 0, Route)
		}
	}
	sink = sum
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/draw")
}

func BenchmarkStream(b *testing.B) {
	stream := NewKey(1, 2).Stream(0, 0, Token)
	sum := uint64(0)
	for b.Loop() {
		sum += stream.Uint64()
	}
	sink = sum
}

var sink uint64
