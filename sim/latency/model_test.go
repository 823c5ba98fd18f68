package latency

import (
	"math"
	"strings"
	"testing"
)

const ms = 1_000_000 // ns

func rows(n int) Shape { return Shape{Rows: n, FreshTokens: n} }

// refused checks that err speaks of each word.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want an error with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q, want one with %q", err, word)
		}
	}
}

func TestConstant(t *testing.T) {
	c, err := NewConstant(27_900_000)
	if err != nil {
		t.Fatal(err)
	}
	prefill := Shape{Rows: 1, FreshTokens: 8192, ContextTokens: 1 << 30, Returns: 1}
	for _, s := range []Shape{rows(1), rows(64), prefill} {
		if ns, inRange := c.StepNs(s); ns != 27_900_000 || !inRange {
			t.Errorf("StepNs(%+v) = %d, %t, want 27900000 in range", s, ns, inRange)
		}
	}
	for _, ns := range []int64{0, -1, MaxStepNs + 1, math.MinInt64} {
		_, err := NewConstant(ns)
		refused(t, err, "want 1 to")
	}
}

func TestConstantNs(t *testing.T) {
	affine, _ := NewAffine(Coefficients{BaseNs: 1})
	plain, _ := NewOverhead(Constant(5), 3, 0)
	handoff, _ := NewOverhead(Constant(5), 3, 1)
	around, _ := NewOverhead(affine, 3, 0)
	beyond, _ := NewOverhead(Constant(MaxStepNs), 1, 0)
	tests := []struct {
		name  string
		model Model
		ns    int64
		ok    bool
	}{
		{"constant", Constant(5), 5, true},
		{"constant with step overhead", plain, 8, true},
		{"constant with hand-off overhead", handoff, 0, false},
		{"affine", affine, 0, false},
		{"constant that NewConstant refuses", Constant(0), 0, false},
		{"constant pushed beyond the longest step", beyond, 0, false},
		{"affine with step overhead", around, 0, false},
	}
	for _, test := range tests {
		ns, ok := ConstantNs(test.model)
		if ok != test.ok || ok && ns != test.ns {
			t.Errorf("%s: ConstantNs = %d, %t, want %d, %t", test.name, ns, ok, test.ns, test.ok)
		}
	}
}

func TestAffine(t *testing.T) {
	a, err := NewAffine(Coefficients{BaseNs: 5 * ms, PerRowNs: 100_000, PerFreshNs: 1000, PerContextNs: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		s    Shape
		want int64
	}{
		{"one row", Shape{1, 1, 0, 0}, 5_101_000},
		{"context costs a quarter of a nanosecond", Shape{1, 1, 4000, 0}, 5_102_000},
		{"rounds half up", Shape{1, 1, 2, 0}, 5_101_001},
		{"a prefill", Shape{2, 513, 100, 0}, 5*ms + 200_000 + 513_000 + 25},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if ns, inRange := a.StepNs(test.s); ns != test.want || !inRange {
				t.Errorf("StepNs(%+v) = %d, %t, want %d in range", test.s, ns, inRange, test.want)
			}
		})
	}
	if ns, inRange := a.StepNs(Shape{math.MaxInt, math.MaxInt, math.MaxInt, 0}); ns != Refused || inRange {
		t.Errorf("a step longer than MaxStepNs = %d, %t, want it refused", ns, inRange)
	}
	tiny, _ := NewAffine(Coefficients{PerRowNs: 1e-3})
	if ns, _ := tiny.StepNs(rows(1)); ns != 1 {
		t.Errorf("a step of less than a nanosecond = %d, want 1: time must pass", ns)
	}
}

func TestAffineWithin(t *testing.T) {
	terms, valid := Coefficients{BaseNs: 100, PerRowNs: 10}, Range{Rows: Between(8, 32)}
	for _, outside := range []Outside{Clamp, Refuse} {
		model, err := NewAffineWithin(terms, valid, outside)
		if err != nil {
			t.Fatal(err)
		}
		below := map[Outside]int64{Clamp: 180, Refuse: Refused}[outside]
		if ns, inRange := model.StepNs(rows(4)); ns != below || inRange {
			t.Errorf("%v, 4 rows: %d, %t, want %d out of range", outside, ns, inRange, below)
		}
		if ns, inRange := model.StepNs(rows(8)); ns != 180 || !inRange {
			t.Errorf("%v, 8 rows: %d, %t, want 180 in range", outside, ns, inRange)
		}
		if got, ok := RangeOf(model); got != valid || !ok || model.Coefficients() != terms {
			t.Errorf("range %v, %t and terms %+v, want those given", got, ok, model.Coefficients())
		}
	}
	free, err := NewAffine(terms)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := RangeOf(free); ok {
		t.Error("an affine model that is valid everywhere has a range")
	}
	refused(t, OutOfRangeError("large", free, rows(1<<60)), "large", "takes longer than")
}

func TestAffineRefuses(t *testing.T) {
	within := Range{Rows: Between(8, 32)}
	tests := []struct {
		name  string
		build func() (*Affine, error)
		want  string
	}{
		{"negative base", func() (*Affine, error) { return NewAffine(Coefficients{BaseNs: -1}) }, "base = -1"},
		{"negative slope", func() (*Affine, error) {
			return NewAffine(Coefficients{BaseNs: 1, PerRowNs: -1})
		}, "per row"},
		{"NaN", func() (*Affine, error) { return NewAffine(Coefficients{BaseNs: math.NaN()}) }, "NaN"},
		{"infinite", func() (*Affine, error) { return NewAffine(Coefficients{PerFreshNs: math.Inf(1)}) }, "+Inf"},
		{"all zero", func() (*Affine, error) { return NewAffine(Coefficients{}) }, "all terms 0"},
		{"reversed range", func() (*Affine, error) {
			return NewAffineWithin(Coefficients{BaseNs: 1}, Range{Rows: Between(9, 8)}, Clamp)
		}, "rows 9..8"},
		{"no outside", func() (*Affine, error) {
			return NewAffineWithin(Coefficients{BaseNs: 1}, within, 0)
		}, "outside"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.build()
			refused(t, err, test.want)
		})
	}
}

func TestOverhead(t *testing.T) {
	// Table 10 of TokenRouter (arXiv 2610.12242), standard serving: the host part of an SLM step of 37.2 ms.
	model, err := NewOverhead(Constant(1_560_000), 4_080_000, 31_520_000)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		s    Shape
		want int64
	}{
		{"no returns", Shape{Rows: 4, FreshTokens: 4}, 5_640_000},
		{"one return", Shape{Rows: 1, FreshTokens: 1, Returns: 1}, 37_160_000},
		{"three returns", Shape{Rows: 4, FreshTokens: 7, Returns: 3}, 100_200_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if ns, inRange := model.StepNs(test.s); ns != test.want || !inRange {
				t.Errorf("StepNs = %d, %t, want %d in range", ns, inRange, test.want)
			}
		})
	}
	huge, _ := NewOverhead(Constant(1), 0, MaxStepNs)
	if ns, inRange := huge.StepNs(Shape{Rows: 3, Returns: 3}); ns != Refused || inRange {
		t.Errorf("three hand-offs of MaxStepNs = %d, %t, want refused", ns, inRange)
	}
	if ns, _ := huge.StepNs(Shape{Rows: 1, Returns: 1}); ns != Refused {
		t.Errorf("1 + MaxStepNs = %d, want refused", ns)
	}
	_, err = NewOverhead(Constant(1), -1, 0)
	refused(t, err, "-1 ns a step")
	_, err = NewOverhead(Constant(1), 0, -1)
	refused(t, err, "-1 ns a hand-off")
	_, err = NewOverhead(nil, 0, 0)
	refused(t, err, "no model")
}

func TestPadded(t *testing.T) {
	affine, _ := NewAffine(Coefficients{PerRowNs: 100, PerFreshNs: 10, PerContextNs: 1})
	padded, err := NewPadded(affine, []int{1, 2, 4, 8})
	if err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[int]int64{1: 110, 2: 220, 3: 440, 4: 440, 5: 880, 8: 880, 9: 990} {
		if ns, _ := padded.StepNs(Shape{Rows: rows, FreshTokens: rows}); ns != want {
			t.Errorf("%d rows take %d, want %d", rows, ns, want)
		}
	}
	if ns, _ := padded.StepNs(Shape{Rows: 3, FreshTokens: 9, ContextTokens: 50}); ns != 400+100+50 {
		t.Errorf("3 rows with 9 fresh tokens take %d, want 550: one padding row feeds one token", ns)
	}
	_, err = NewPadded(affine, []int{4, 2})
	refused(t, err, "rising")
	_, err = NewPadded(affine, nil)
	refused(t, err, "no points")
}

func TestLink(t *testing.T) {
	// Table 9 of TokenRouter: two nodes over RoCE at 3.7 GB/s.
	roce, err := NewLink(5_000, 3.7e9)
	if err != nil {
		t.Fatal(err)
	}
	infinite, _ := NewLink(7, math.Inf(1))
	slow, _ := NewLink(1, 1e-9)
	tests := []struct {
		name  string
		link  Link
		bytes int64
		want  int64
	}{
		{"empty message", roce, 0, 5_000},
		{"37 bytes", roce, 37, 5_010},
		{"38 bytes round up", roce, 38, 5_011},
		{"3.7 GB", roce, 3_700_000_000, 1_000_005_000},
		{"infinite bandwidth", infinite, 1 << 40, 7},
		{"saturates", slow, math.MaxInt64, MaxStepNs},
		{"the zero link is free", Link{}, 1 << 40, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.link.TransferNs(test.bytes); got != test.want {
				t.Errorf("TransferNs(%d) = %d, want %d", test.bytes, got, test.want)
			}
		})
	}
	for _, bandwidth := range []float64{0, -1, math.NaN()} {
		_, err := NewLink(0, bandwidth)
		refused(t, err, "bandwidth")
	}
	_, err = NewLink(-1, 1)
	refused(t, err, "latency of -1 ns")
}

func BenchmarkConstant(b *testing.B) { benchmarkStep(b, Constant(6*ms)) }

func BenchmarkAffine(b *testing.B) {
	model, _ := NewAffineWithin(Coefficients{BaseNs: 5 * ms, PerRowNs: 1000, PerContextNs: 0.1},
		Range{Rows: Between(1, 64)}, Clamp)
	benchmarkStep(b, model)
}

func BenchmarkTable(b *testing.B) {
	model, _ := NewTable(Grid{Rows: []int{1, 2, 4, 8, 16, 32}, Ns: []int64{6, 7, 8, 9, 10, 12}}, Clamp)
	benchmarkStep(b, model)
}

func BenchmarkRoofline(b *testing.B) {
	benchmarkStep(b, mustRoofline(b, "Qwen3-0.6B", "H200", 1))
}

func benchmarkStep(b *testing.B, model Model) {
	s, sum := Shape{Rows: 1, FreshTokens: 1, ContextTokens: 512}, int64(0)
	for b.Loop() {
		ns, _ := model.StepNs(s)
		sum += ns
		s.Rows = s.Rows&15 + 1
	}
	sink = sum
}

var sink int64

func TestOutsideNames(t *testing.T) {
	for _, outside := range []Outside{Refuse, Clamp} {
		if got, err := ParseOutside(outside.String()); got != outside || err != nil {
			t.Errorf("ParseOutside(%q) = %v, %v, want itself", outside, got, err)
		}
	}
	_, err := ParseOutside("Clamp")
	refused(t, err, `outside = "Clamp"`, `want "refuse" or "clamp"`)
	if got := Outside(7).String(); got != "Outside(7)" {
		t.Errorf("an unknown Outside prints %q, want Outside(7)", got)
	}
	valid := Range{Rows: Between(1, 2)}
	if got := valid.String(); got != "rows 1..2" {
		t.Errorf("range %q, want rows 1..2", got)
	}
	if got := (Range{}).String(); got != "any shape" {
		t.Errorf("the zero range prints %q, want any shape", got)
	}
	if got := valid.Fresh.String(); got != "any" {
		t.Errorf("the zero span prints %q, want any", got)
	}
}
