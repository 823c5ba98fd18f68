package latency

import (
	"math"
	"testing"
)

// case34 is the grid of case 34: three measured batches whose straight line goes below 0.
var case34 = Grid{Rows: []int{8, 16, 32}, Ns: []int64{7 * ms, 12 * ms, 29 * ms}}

func TestTableOutsideItsRange(t *testing.T) {
	clamp, err := NewTable(case34, Clamp)
	if err != nil {
		t.Fatal(err)
	}
	refuse, err := NewTable(case34, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		rows    int
		clampNs int64
		inRange bool
	}{
		{1, 7 * ms, false}, {2, 7 * ms, false}, {4, 7 * ms, false}, // the lowest measured value, not -0.5625 ms
		{8, 7 * ms, true}, {12, 9_500_000, true}, {16, 12 * ms, true}, {24, 20_500_000, true}, {32, 29 * ms, true},
		{33, 29 * ms, false}, {64, 29 * ms, false}, {math.MaxInt, 29 * ms, false},
	}
	for _, test := range tests {
		if ns, inRange := clamp.StepNs(rows(test.rows)); ns != test.clampNs || inRange != test.inRange {
			t.Errorf("clamped, %d rows: %d, %t, want %d, %t", test.rows, ns, inRange, test.clampNs, test.inRange)
		}
		want := test.clampNs
		if !test.inRange {
			want = Refused
		}
		if ns, inRange := refuse.StepNs(rows(test.rows)); ns != want || inRange != test.inRange {
			t.Errorf("refusing, %d rows: %d, %t, want %d, %t", test.rows, ns, inRange, want, test.inRange)
		}
	}
	refused(t, OutOfRangeError("large", refuse, rows(64)), "large", "64 rows", "calibrated range rows 8..32")
}

func TestTallyWarning(t *testing.T) {
	table, _ := NewTable(case34, Clamp)
	wrapped, _ := NewOverhead(table, Host{StepNs: 5, CallNs: 5})
	padded, _ := NewLaunched(table, Launching{Graphs: ExtendGraphs, Rows: []int{48, 64}})
	around, _ := NewOverhead(padded, Host{StepNs: 5})
	tests := []struct {
		name  string
		model Model
		rows  []int
		want  string
	}{
		{"none outside", table, []int{8, 16, 32}, ""},
		{"below", table, []int{1, 2, 8}, "latency of small: 2 of 3 launches below the calibrated range rows 8..32"},
		{"above", table, []int{64, 8}, "latency of small: 1 of 2 launches above the calibrated range rows 8..32"},
		{"both", table, []int{1, 64, 4, 9},
			"latency of small: 2 of 4 launches below and 1 of 4 launches above the calibrated range rows 8..32"},
		{"through a wrapper", wrapped, []int{4},
			"latency of small: 1 of 1 launches below the calibrated range rows 8..32"},
		{"padded out of the range", padded, []int{9},
			"latency of small: 1 of 1 launches above the calibrated range rows 8..32"},
		{"the same inside another wrapper", around, []int{9},
			"latency of small: 1 of 1 launches above the calibrated range rows 8..32"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var tally Tally
			for _, n := range test.rows {
				_, inRange := test.model.StepNs(rows(n))
				tally.Note(test.model, rows(n), inRange)
			}
			if got := tally.Warning("small", test.model); got != test.want {
				t.Errorf("warning %q, want %q", got, test.want)
			}
		})
	}
}

func TestTableInterpolates(t *testing.T) {
	// ns = 1000 + 100 rows + 10 fresh + context is linear, so interpolation is exact.
	grid := Grid{Rows: []int{1, 4, 16}, Fresh: []int{1, 64}, Context: []int{0, 1024, 4096}}
	for _, r := range grid.Rows {
		for _, f := range grid.Fresh {
			for _, c := range grid.Context {
				grid.Ns = append(grid.Ns, int64(1000+100*r+10*f+c))
			}
		}
	}
	table, err := NewTable(grid, Clamp)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Shape{
		{Rows: 1, FreshTokens: 1}, {Rows: 16, FreshTokens: 64, ContextTokens: 4096},
		{Rows: 2, FreshTokens: 2, ContextTokens: 100}, {Rows: 9, FreshTokens: 33, ContextTokens: 1025},
		{Rows: 4, FreshTokens: 64, ContextTokens: 1023}, {Rows: 15, FreshTokens: 63, ContextTokens: 4095},
	} {
		want := int64(1000 + 100*s.Rows + 10*s.FreshTokens + s.ContextTokens)
		if ns, inRange := table.StepNs(s); ns != want || !inRange {
			t.Errorf("StepNs(%+v) = %d, %t, want %d in range", s, ns, inRange, want)
		}
	}
	beyond := Shape{Rows: 4, FreshTokens: 65, ContextTokens: 5000}
	if ns, inRange := table.StepNs(beyond); inRange || ns != 1000+400+640+4096 {
		t.Errorf("beyond fresh and context: %d, %t, want the corner, 6136, out of range", ns, inRange)
	}
	beyond = Shape{Rows: 20, FreshTokens: 20, ContextTokens: -1}
	if ns, inRange := table.StepNs(beyond); inRange || ns != 1000+1600+200 {
		t.Errorf("beyond rows and context: %d, %t, want the edge, 2800, out of range", ns, inRange)
	}
}

func TestTableOfOnePoint(t *testing.T) {
	table, err := NewTable(Grid{Rows: []int{8}, Context: []int{0}, Ns: []int64{7 * ms}}, Clamp)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		s       Shape
		inRange bool
	}{
		{rows(8), true}, {rows(7), false}, {rows(9), false},
		{Shape{Rows: 8, FreshTokens: 8, ContextTokens: 1}, false},
	}
	for _, test := range tests {
		if ns, inRange := table.StepNs(test.s); ns != 7*ms || inRange != test.inRange {
			t.Errorf("StepNs(%+v) = %d, %t, want 7 ms, %t", test.s, ns, inRange, test.inRange)
		}
	}
}

func TestTableRefuses(t *testing.T) {
	tests := []struct {
		name    string
		grid    Grid
		outside Outside
		want    string
	}{
		{"no rows", Grid{Ns: []int64{1}}, Clamp, "table rows: no points"},
		{"rows repeat", Grid{Rows: []int{8, 8}, Ns: []int64{1, 2}}, Clamp, "table rows[1] = 8 after 8"},
		{"rows fall", Grid{Rows: []int{8, 4}, Ns: []int64{1, 2}}, Clamp, "rising"},
		{"rows 0", Grid{Rows: []int{0, 4}, Ns: []int64{1, 2}}, Clamp, "table rows[0] = 0"},
		{"fresh empty", Grid{Rows: []int{1}, Fresh: []int{}, Ns: []int64{1}}, Clamp,
			"table fresh tokens: no points"},
		{"context negative", Grid{Rows: []int{1}, Context: []int{-1}, Ns: []int64{1}}, Clamp,
			"context tokens[0] = -1"},
		{"too few times", Grid{Rows: []int{1, 2}, Ns: []int64{1}}, Clamp, "1 times, want 2"},
		{"zero time", Grid{Rows: []int{1}, Ns: []int64{0}}, Clamp, "ns[0] = 0"},
		{"negative time", Grid{Rows: []int{1}, Ns: []int64{-562_500}}, Clamp, "ns[0] = -562500"},
		{"too long", Grid{Rows: []int{1}, Ns: []int64{math.MaxInt64}}, Clamp, "ns[0]"},
		{"no outside", Grid{Rows: []int{1}, Ns: []int64{1}}, 0, "want refuse or clamp"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewTable(test.grid, test.outside)
			refused(t, err, test.want)
		})
	}
}

func TestNewTableOf(t *testing.T) {
	point := func(r, f, c int, ns int64) Point {
		return Point{Shape{Rows: r, FreshTokens: f, ContextTokens: c}, ns}
	}
	// Decoding only, in any order, one shape measured twice: 6 and 8 average to 7.
	table, err := NewTableOf([]Point{
		point(16, 16, 0, 12*ms), point(8, 8, 0, 6*ms), point(32, 32, 0, 29*ms), point(8, 8, 0, 8*ms),
	}, Clamp)
	if err != nil {
		t.Fatal(err)
	}
	if ns, inRange := table.StepNs(rows(8)); ns != 7*ms || !inRange {
		t.Errorf("8 rows: %d, %t, want 7 ms, the mean of both samples", ns, inRange)
	}
	if _, inRange := table.StepNs(Shape{Rows: 8, FreshTokens: 500}); inRange {
		t.Error("a prefill of 500 tokens is in the range of samples that only decode")
	}
	if valid, _ := table.ValidRange(); valid.String() != "rows 8..32, fresh tokens 8..32" {
		t.Errorf("range %v, want rows 8..32, fresh tokens 8..32", valid)
	}

	full, err := NewTableOf([]Point{
		point(1, 1, 100, 10), point(1, 1, 200, 20), point(2, 8, 100, 30), point(2, 8, 200, 40),
		point(1, 8, 100, 50), point(1, 8, 200, 60), point(2, 1, 100, 70), point(2, 1, 200, 80),
	}, Refuse)
	if err != nil {
		t.Fatal(err)
	}
	if ns, _ := full.StepNs(Shape{Rows: 2, FreshTokens: 8, ContextTokens: 150}); ns != 35 {
		t.Errorf("between contexts 100 and 200: %d, want 35", ns)
	}

	_, err = NewTableOf(nil, Clamp)
	refused(t, err, "no samples")
	_, err = NewTableOf([]Point{point(1, 1, 0, -5)}, Clamp)
	refused(t, err, "sample 0 takes -5 ns")
	_, err = NewTableOf([]Point{point(1, 1, 100, 5), point(2, 2, 200, 5)}, Clamp)
	refused(t, err, "2 samples for 4 combinations")
	_, err = NewTableOf([]Point{
		point(1, 1, 100, 5), point(2, 2, 200, 5), point(2, 2, 100, 5), point(2, 2, 100, 5),
	}, Clamp)
	refused(t, err, "without a sample at 1 rows", "200 context tokens")
}
