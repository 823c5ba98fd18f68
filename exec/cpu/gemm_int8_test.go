package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// bf16s are n draws of a normal law, rounded.
func bf16s(r *rand.Rand, n int, deviation float64) []uint16 {
	s := make([]uint16, n)
	for i := range s {
		s[i] = toBF16(float32(r.NormFloat64() * deviation))
	}
	return s
}

// packInt8 packs source[columns][depth], closed at the end of the test.
func packInt8(t testing.TB, columns, depth, groupInputs int, source []uint16) *int8Weights {
	t.Helper()
	w, err := newInt8Weights(columns, depth, groupInputs, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// quantiseOn quantises rows of x with room as a forward pass has.
func quantiseOn(t testing.TB, w *workers, p Path, rows int, x []uint16, m *int8Weights) quantised {
	t.Helper()
	q := newQuantised(rows, m.activationStride(), m)
	if err := quantise(w, p, m, x, q); err != nil {
		t.Fatal(err)
	}
	return q
}

func productInt8(t testing.TB, w *workers, p Path, x quantised, m *int8Weights) []float32 {
	t.Helper()
	y := make([]float32, x.rows*m.paddedColumns())
	if err := gemmInt8(w, p, x, m, y); err != nil {
		t.Fatal(err)
	}
	return y
}

// int8Shapes are shapes of products with and without groups.
var int8Shapes = []struct {
	name                              string
	columns, depth, groupInputs, rows int
}{
	{"one weight", 1, 1, 0, 1},
	{"one tile", 16, 64, 0, 1},
	{"one block", 64, 64, 64, 16},
	{"just short of a block", 63, 63, 0, 17},
	{"just over a block", 65, 65, 64, 3},
	{"odd depth", 130, 1001, 0, 5},
	{"odd depth, groups", 130, 1001, 128, 5},
	{"a group longer than a row", 70, 100, 256, 4},
	{"tiny model", 256, 256, 0, 33},
	{"tiny model, groups", 256, 256, 128, 70},
	{"Qwen3-0.6B down", 1024, 3072, 0, 2},
	{"Qwen3-0.6B down, groups", 1024, 3072, 128, 2},
	{"Qwen3 vocabulary, fewer inputs", 151936, 64, 0, 2},
}

// TestGemmInt8 compares the product on every path with the exact product of the quantised numbers, and wants
// the same bits of all paths: sums of whole numbers are exact, and the rest has one order.
func TestGemmInt8(t *testing.T) {
	w := threads(t, 2)
	for i, s := range int8Shapes {
		t.Run(s.name, func(t *testing.T) {
			r := source(uint64(i))
			m := packInt8(t, s.columns, s.depth, s.groupInputs, bf16s(r, s.columns*s.depth, 0.05))
			x := quantiseOn(t, w, Plain, s.rows, activations(r, s.rows, s.depth, s.depth), m)
			want, magnitude, err := gemmInt8Reference(x, m)
			if err != nil {
				t.Fatal(err)
			}
			plain := productInt8(t, w, Plain, x, m)
			bound := gemmInt8Tolerance() * float64(m.groups+2)
			for j, v := range plain {
				row, column := j/m.paddedColumns(), j%m.paddedColumns()
				if column >= m.columns {
					if v != 0 {
						t.Fatalf("y[%d][%d] = %v beyond the columns, want 0", row, column, v)
					}
					continue
				}
				at := row*m.columns + column
				if miss := math.Abs(float64(v) - want[at]); !(miss <= bound*magnitude[at]) {
					t.Fatalf("y[%d][%d] = %v, want %v within %v x %v", row, column, v, want[at], bound,
						magnitude[at])
				}
			}
			onEachPath(t, func(t *testing.T, p Path) {
				y := productInt8(t, w, p, x, m)
				if at := sameBits(y, plain); at >= 0 {
					t.Fatalf("y[%d] = %v, plain %v", at, y[at], plain[at])
				}
			})
		})
	}
}

// TestGemmInt8ByHand: x = (127, -50, 10) and W = [[1, 2, -4], [-3, 0.5, 127]]: scales are 4/127 and 1, so
// that the weights are (32, 64, -127) (31.75 and 63.5 rounded, to even at .5) and (-3, 0, 127) (0.5 to even);
// the activations have scale 1. Sums: 127*32 - 50*64 - 10*127 = -406 and -381 + 1270 = 889.
func TestGemmInt8ByHand(t *testing.T) {
	weights := []float32{1, 2, -4, -3, 0.5, 127}
	m := packInt8(t, 2, 3, 0, make([]uint16, 6))
	if err := m.packFloats(0, weights); err != nil {
		t.Fatal(err)
	}
	onEachPath(t, func(t *testing.T, p Path) {
		w := threads(t, 1)
		q := newQuantised(1, m.paddedDepth(), m)
		if err := quantiseFloats(w, p, m, []float32{127, -50, 10}, q); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(q.values[:4], []int8{127, -50, 10, 0}) || q.groups[0] != (rowGroup{1, 128 * 87}) {
			t.Errorf("values %v, %+v, want 127, -50, 10, 0 of scale 1 and offset %d", q.values[:4],
				q.groups[0], 128*87)
		}
		y := productInt8(t, w, p, q, m)
		if want := -406 * (float32(4) / 127); y[0] != want || y[1] != 889 {
			t.Errorf("y = %v, %v, want %v, 889", y[0], y[1], want)
		}
	})
}

// TestGemmInt8Extremes: the largest sums that 32 bits must hold, all factors at their ends, and products that
// would saturate sums of 16 bits. 131072 inputs of 127 times 127 are 2114060288.
func TestGemmInt8Extremes(t *testing.T) {
	const depth, columns = 1 << 17, 3
	weights := make([]float32, columns*depth)
	for k := range depth {
		weights[k], weights[depth+k], weights[2*depth+k] = 127, -127, float32(127-k%2*254)
	}
	m := packInt8(t, columns, depth, 0, make([]uint16, columns*depth))
	if err := m.packFloats(0, weights); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, 2*depth)
	for k := range depth {
		x[k], x[depth+k] = 127, -127
	}
	const all = 2114060288
	onEachPath(t, func(t *testing.T, p Path) {
		w := threads(t, 2)
		q := newQuantised(2, m.paddedDepth(), m)
		if err := quantiseFloats(w, p, m, x, q); err != nil {
			t.Fatal(err)
		}
		y := productInt8(t, w, p, q, m)
		for row, want := range [][]float32{{all, -all, 0}, {-all, all, 0}} {
			if got := y[row*64:][:3]; !slices.Equal(got, want) {
				t.Errorf("row %d is %v, want %v", row, got, want)
			}
		}
	})
}

// TestGemmInt8SameAnswerInAnyBatch: a row has the same bits alone, in every batch, on every path, and for any
// number of threads.
func TestGemmInt8SameAnswerInAnyBatch(t *testing.T) {
	const columns, depth, rowsMax = 200, 480, 100
	r := source(7)
	for _, groupInputs := range []int{0, 128} {
		m := packInt8(t, columns, depth, groupInputs, bf16s(r, columns*depth, 0.05))
		x := activations(r, rowsMax, depth, depth)
		pools := []*workers{threads(t, 1), threads(t, 2), threads(t, 3)}
		var alone []float32
		for row := range rowsMax {
			q := quantiseOn(t, pools[0], Plain, 1, x[row*depth:][:depth], m)
			alone = append(alone, productInt8(t, pools[0], Plain, q, m)...)
		}
		batches := []int{rowsMax, 64, 63}
		for rows := 1; rows <= 40; rows++ {
			batches = append(batches, rows)
		}
		onEachPath(t, func(t *testing.T, p Path) {
			for _, rows := range batches {
				for _, w := range pools {
					q := quantiseOn(t, w, p, rows, x[:rows*depth], m)
					y := productInt8(t, w, p, q, m)
					if at := sameBits(y, alone); at >= 0 {
						t.Fatalf("%d rows: y[%d] = %v, alone %v", rows, at, y[at], alone[at])
					}
				}
			}
		})
	}
}

// TestGemmInt8NaNStaysInItsRow: not a number and infinity in one row make it NaN and reach no other.
func TestGemmInt8NaNStaysInItsRow(t *testing.T) {
	const columns, depth, rows = 64, 192, 20
	w := threads(t, 1)
	for _, groupInputs := range []int{0, 64} {
		m := packInt8(t, columns, depth, groupInputs, bf16s(source(8), columns*depth, 0.05))
		onEachPath(t, func(t *testing.T, p Path) {
			x := activations(source(9), rows, depth, depth)
			clean := productInt8(t, w, p, quantiseOn(t, w, p, rows, x, m), m)
			x[3*depth+5] = 0x7fc0    // NaN
			x[18*depth+100] = 0xff80 // -Inf
			y := productInt8(t, w, p, quantiseOn(t, w, p, rows, x, m), m)
			for i, v := range y {
				switch row := i / columns; row {
				case 3, 18:
					if !isNaN(v) {
						t.Fatalf("y[%d] of row %d is %v, want NaN", i, row, v)
					}
				default:
					if v != clean[i] {
						t.Fatalf("y[%d] of row %d is %v, want %v", i, row, v, clean[i])
					}
				}
			}
		})
	}
}

// TestInt8NaNStaysInItsColumn: a weight that is no finite number makes its column NaN and no other.
func TestInt8NaNStaysInItsColumn(t *testing.T) {
	const columns, depth = 64, 192
	weights := bf16s(source(8), columns*depth, 0.05)
	weights[5*depth+100], weights[40*depth] = 0x7f80, 0xffc0 // +Inf, NaN
	m := packInt8(t, columns, depth, 64, weights)
	w := threads(t, 1)
	onEachPath(t, func(t *testing.T, p Path) {
		x := quantiseOn(t, w, p, 1, activations(source(9), 1, depth, depth), m)
		for column, v := range productInt8(t, w, p, x, m) {
			if isNaN(v) != (column == 5 || column == 40) {
				t.Errorf("y[%d] = %v, want NaN in columns 5 and 40 only", column, v)
			}
		}
	})
}

// TestInt8AgainstBF16: what rounding both factors can cost. With scales u and v of a group's activations and
// weights, a product differs by at most |x| v/2 + |w| u/2 + u v/4.
func TestInt8AgainstBF16(t *testing.T) {
	w := threads(t, 2)
	for i, s := range int8Shapes {
		t.Run(s.name, func(t *testing.T) {
			r := source(uint64(i))
			weights := bf16s(r, s.columns*s.depth, 0.05)
			x := activations(r, s.rows, s.depth, s.depth)
			m := packInt8(t, s.columns, s.depth, s.groupInputs, weights)
			y := productInt8(t, w, Best(), quantiseOn(t, w, Best(), s.rows, x, m), m)
			group := s.groupInputs
			if group == 0 {
				group = s.depth
			}
			for row := range s.rows {
				for column := range s.columns {
					exact, bound := boundInt8(x[row*s.depth:][:s.depth], weights[column*s.depth:][:s.depth], group)
					got := float64(y[row*m.paddedColumns()+column])
					if !(math.Abs(got-exact) <= bound) {
						t.Fatalf("y[%d][%d] = %v, want %v within %v", row, column, got, exact, bound)
					}
				}
			}
		})
	}
}

// boundInt8 is the product of a row and a column in double and the most that quantising them may change.
func boundInt8(x, w []uint16, group int) (exact, bound float64) {
	const rounding = 1 + 1e-5 // of scales, of quotients and of the sum, in fp32
	for begin := 0; begin < len(x); begin += group {
		end := min(begin+group, len(x))
		u, v := scaleOf(x[begin:end]), scaleOf(w[begin:end])
		for k := begin; k < end; k++ {
			a, b := float64(fromBF16(x[k])), float64(fromBF16(w[k]))
			exact += a * b
			bound += rounding * (math.Abs(a)*v/2 + math.Abs(b)*u/2 + u*v/4)
		}
	}
	return exact, bound
}

// scaleOf is the largest magnitude over 127.
func scaleOf(s []uint16) float64 {
	most := 0.0
	for _, b := range s {
		most = max(most, math.Abs(float64(fromBF16(b))))
	}
	return most / 127
}

// TestInt8WeightsWithinHalfAScale: gathered weights are within half a scale of what was packed, and the
// largest of a group is exact but for the rounding of its scale.
func TestInt8WeightsWithinHalfAScale(t *testing.T) {
	const columns, depth = 130, 1001
	weights := bf16s(source(3), columns*depth, 0.05)
	for _, groupInputs := range []int{0, 128} {
		m := packInt8(t, columns, depth, groupInputs, weights)
		group := groupInputs
		if group == 0 {
			group = depth
		}
		for _, column := range []int32{0, 15, 63, 64, 129} {
			got, err := gatherInt8(m, []int32{column})
			if err != nil {
				t.Fatal(err)
			}
			row := weights[int(column)*depth:][:depth]
			for begin := 0; begin < depth; begin += group {
				end := min(begin+group, depth)
				scale := scaleOf(row[begin:end])
				for k := begin; k < end; k++ {
					want := float64(fromBF16(row[k]))
					miss := math.Abs(float64(got[k]) - want)
					if !(miss <= scale/2*(1+1e-5)) || math.Abs(want) == 127*scale && miss > 1e-6*127*scale {
						t.Fatalf("column %d, weight %d is %v, want %v within half of %v", column, k, got[k],
							want, scale)
					}
				}
			}
		}
	}
}

// TestInt8PackInParts: columns packed one by one, in any order, from bf16 or from float32, give the same
// bytes as all at once.
func TestInt8PackInParts(t *testing.T) {
	const columns, depth = 70, 200
	weights := bf16s(source(4), columns*depth, 0.05)
	for _, groupInputs := range []int{0, 64} {
		whole := packInt8(t, columns, depth, groupInputs, weights)
		parts := packInt8(t, columns, depth, groupInputs, bf16s(source(5), columns*depth, 1))
		if whole.equal(parts) {
			t.Fatal("other weights have the same bytes")
		}
		for _, column := range source(6).Perm(columns) {
			row := weights[column*depth:][:depth]
			err := parts.pack(column, row)
			if column%2 == 1 {
				floats := make([]float32, depth)
				for k, b := range row {
					floats[k] = fromBF16(b)
				}
				err = parts.packFloats(column, floats)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !whole.equal(parts) {
			t.Errorf("groups of %d: packed in parts differs", groupInputs)
		}
	}
}
