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
	plain, _ := NewOverhead(Constant(5), Host{StepNs: 3})
	call, _ := NewOverhead(Constant(5), Host{StepNs: 3, CallNs: 1})
	token, _ := NewOverhead(Constant(5), Host{CallPerContextNs: 0.5})
	around, _ := NewOverhead(affine, Host{StepNs: 3})
	beyond, _ := NewOverhead(Constant(MaxStepNs), Host{StepNs: 1})
	tests := []struct {
		name  string
		model Model
		ns    int64
		ok    bool
	}{
		{"constant", Constant(5), 5, true},
		{"constant with step overhead", plain, 8, true},
		{"constant with overhead a call", call, 0, false},
		{"constant with overhead a token of a call", token, 0, false},
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
		{"one row", Shape{Rows: 1, FreshTokens: 1}, 5_101_000},
		{"context costs a quarter of a nanosecond", Shape{Rows: 1, FreshTokens: 1, ContextTokens: 4000}, 5_102_000},
		{"rounds half up", Shape{Rows: 1, FreshTokens: 1, ContextTokens: 2}, 5_101_001},
		{"a prefill", Shape{Rows: 2, FreshTokens: 513, ContextTokens: 100}, 5*ms + 200_000 + 513_000 + 25},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if ns, inRange := a.StepNs(test.s); ns != test.want || !inRange {
				t.Errorf("StepNs(%+v) = %d, %t, want %d in range", test.s, ns, inRange, test.want)
			}
		})
	}
	huge := Shape{Rows: math.MaxInt, FreshTokens: math.MaxInt, ContextTokens: math.MaxInt}
	if ns, inRange := a.StepNs(huge); ns != Refused || inRange {
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
	// Here matching, locking, releasing and updating, 31.52 ms at 2,048 tokens, are in proportion to them.
	sum := Host{StepNs: 4_080_000, CallNs: 31_520_000}
	linear := Host{StepNs: 4_080_000, CallPerContextNs: 31_520_000.0 / 2048}
	tests := []struct {
		name string
		host Host
		s    Shape
		want int64
	}{
		{"no returns", sum, Shape{Rows: 4, FreshTokens: 4}, 5_640_000},
		{"one return", sum, Shape{Rows: 1, FreshTokens: 1, Returns: 1}, 37_160_000},
		{"three returns", sum, Shape{Rows: 4, FreshTokens: 7, Returns: 3}, 100_200_000},
		{"no call", linear, Shape{Rows: 4, FreshTokens: 4, ContextTokens: 8192}, 5_640_000},
		{"2048 tokens", linear, Shape{Rows: 1, FreshTokens: 1, Returns: 1, ReturnTokens: 2048}, 37_160_000},
		{"8192 tokens", linear, Shape{Rows: 1, FreshTokens: 1, Returns: 1, ReturnTokens: 8192}, 131_720_000},
		{"a token, rounded", linear, Shape{Rows: 1, FreshTokens: 1, Returns: 1, ReturnTokens: 1}, 5_655_391},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			model, err := NewOverhead(Constant(1_560_000), test.host)
			if err != nil {
				t.Fatal(err)
			}
			if ns, inRange := model.StepNs(test.s); ns != test.want || !inRange {
				t.Errorf("StepNs = %d, %t, want %d in range", ns, inRange, test.want)
			}
			if got, want := CountsReturnTokens(model), test.host.CallNs == 0; got != want || !CountsReturns(model) {
				t.Errorf("counts tokens of returns %t, want %t; counts returns %t, want true", got, want,
					CountsReturns(model))
			}
		})
	}
	rows, _ := NewOverhead(Constant(1_000), Host{RowNs: 10})
	if ns, inRange := rows.StepNs(Shape{Rows: 3}); ns != 1_030 || !inRange {
		t.Errorf("1,000 ns and 10 for each of 3 rows = %d, %t", ns, inRange)
	}
	if _, ok := ConstantNs(rows); ok {
		t.Error("a step with host time a row is constant")
	}
	huge, _ := NewOverhead(Constant(1), Host{CallNs: MaxStepNs})
	if ns, inRange := huge.StepNs(Shape{Rows: 3, Returns: 3}); ns != Refused || inRange {
		t.Errorf("three calls of MaxStepNs = %d, %t, want refused", ns, inRange)
	}
	if ns, _ := huge.StepNs(Shape{Rows: 1, Returns: 1}); ns != Refused {
		t.Errorf("1 + MaxStepNs = %d, want refused", ns)
	}
	long, _ := NewOverhead(Constant(1), Host{CallPerContextNs: float64(MaxStepNs)})
	if ns, _ := long.StepNs(Shape{Rows: 1, Returns: 1, ReturnTokens: 1 << 40}); ns != Refused {
		t.Errorf("2^40 tokens of MaxStepNs = %d, want refused", ns)
	}
	_, err := NewOverhead(Constant(1), Host{StepNs: -1})
	refused(t, err, "-1 ns a step")
	_, err = NewOverhead(Constant(1), Host{CallNs: -1})
	refused(t, err, "-1 ns a call")
	_, err = NewOverhead(Constant(1), Host{CallPerContextNs: math.NaN()})
	refused(t, err, "NaN ns a token")
	_, err = NewOverhead(nil, Host{})
	refused(t, err, "no model")
}

// TestLaunched: a model of 100 ns a row, 10 a fresh token, 1 a token in KV; an eager launch costs 5000 ns,
// 7 a row and half a nanosecond a fresh token.
func TestLaunched(t *testing.T) {
	affine, _ := NewAffine(Coefficients{PerRowNs: 100, PerFreshNs: 10, PerContextNs: 1})
	grid := Launching{Graphs: ExtendGraphs, Rows: []int{1, 2, 4, 8}, Fresh: []int{4, 16},
		EagerNs: 5000, EagerRowNs: 7, EagerFreshNs: 0.5}
	decode, none := grid, grid
	decode.Graphs, none.Graphs = DecodeGraphs, NoGraphs
	all := Launching{Graphs: ExtendGraphs, EagerNs: 5000}
	rowsOnly := Launching{Graphs: ExtendGraphs, Rows: []int{1, 2, 4, 8}}
	for _, test := range []struct {
		name string
		how  Launching
		s    Shape
		want int64
	}{
		{"on the grid", grid, Shape{Rows: 4, FreshTokens: 16}, 560},
		{"padded to the next rows, each with a token", grid, Shape{Rows: 3, FreshTokens: 15}, 560},
		{"padded tokens", grid, Shape{Rows: 3, FreshTokens: 3, ContextTokens: 50}, 400 + 40 + 50},
		{"padding rows lead to more tokens", grid, Shape{Rows: 3, FreshTokens: 4}, 400 + 160},
		{"too many rows", grid, Shape{Rows: 9, FreshTokens: 9}, 990 + 5000 + 63 + 5},
		{"too many tokens", grid, Shape{Rows: 1, FreshTokens: 17}, 270 + 5000 + 7 + 9},
		{"too many with padding", grid, Shape{Rows: 3, FreshTokens: 16}, 460 + 5000 + 21 + 8},
		{"decode", decode, Shape{Rows: 3, FreshTokens: 3}, 440},
		{"a return with two tokens", decode, Shape{Rows: 3, FreshTokens: 4}, 340 + 5000 + 21 + 2},
		{"too many rows to decode", decode, Shape{Rows: 9, FreshTokens: 9}, 990 + 5000 + 63 + 5},
		{"an eager launch beside the step before", decode, Shape{Rows: 3, FreshTokens: 4, Ahead: true}, 340},
		{"a replay beside it", grid, Shape{Rows: 3, FreshTokens: 4, Ahead: true}, 400 + 160},
		{"no graphs", none, Shape{Rows: 4, FreshTokens: 16}, 560 + 5000 + 28 + 8},
		{"no graphs beside it", none, Shape{Rows: 4, FreshTokens: 16, Ahead: true}, 560 + 5000 + 28 + 8},
		{"no grid: all is captured", all, Shape{Rows: 3, FreshTokens: 999}, 300 + 9990},
		{"rows only", rowsOnly, Shape{Rows: 3, FreshTokens: 9, ContextTokens: 50}, 400 + 100 + 50},
		{"rows only, beyond", rowsOnly, Shape{Rows: 9, FreshTokens: 9}, 990},
	} {
		t.Run(test.name, func(t *testing.T) {
			model, err := NewLaunched(affine, test.how)
			if err != nil {
				t.Fatal(err)
			}
			if ns, inRange := model.StepNs(test.s); ns != test.want || !inRange {
				t.Errorf("StepNs(%+v) = %d, %t, want %d in range", test.s, ns, inRange, test.want)
			}
		})
	}
	long, _ := NewLaunched(Constant(1), Launching{Graphs: NoGraphs, EagerNs: MaxStepNs})
	if ns, inRange := long.StepNs(rows(1)); ns != Refused || inRange {
		t.Errorf("1 + MaxStepNs = %d, %t, want refused", ns, inRange)
	}
}

func TestLaunchedRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		how  Launching
		want string
	}{
		"falling rows":  {Launching{Graphs: ExtendGraphs, Rows: []int{4, 2}}, "captured rows[1] = 2 after 4"},
		"no rows":       {Launching{Graphs: DecodeGraphs, Rows: []int{}}, "captured rows: no points"},
		"no tokens":     {Launching{Graphs: ExtendGraphs, Fresh: []int{0}}, "captured fresh tokens[0] = 0"},
		"no word":       {Launching{}, "graphs Graphs(0), want extend, decode or none"},
		"negative":      {Launching{Graphs: NoGraphs, EagerNs: -1}, "eager launch of -1 ns"},
		"not a number":  {Launching{Graphs: NoGraphs, EagerFreshNs: math.NaN()}, "NaN"},
		"negative rows": {Launching{Graphs: NoGraphs, EagerRowNs: -2}, "-2 ns"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewLaunched(Constant(1), test.how)
			refused(t, err, test.want)
		})
	}
	_, err := NewLaunched(nil, Launching{Graphs: NoGraphs})
	refused(t, err, "no model")
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
