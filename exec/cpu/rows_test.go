package cpu

import (
	"math"
	"testing"
)

// near wants bf16 results within the tolerance of exact ones, and zeros after them.
func near(t *testing.T, got []uint16, want []float64) {
	t.Helper()
	for i, b := range got {
		if i >= len(want) {
			if b != 0 {
				t.Fatalf("out[%d] = %#x beyond the row, want 0", i, b)
			}
			continue
		}
		if miss := math.Abs(float64(fromBF16(b)) - want[i]); !(miss <= roundedTolerance()*math.Abs(want[i])+1e-30) {
			t.Fatalf("out[%d] = %v, want %v", i, fromBF16(b), want[i])
		}
	}
}

var widths = []int{1, 6, 15, 16, 17, 64, 100, 1024, 3072}

func TestNorm(t *testing.T) {
	const epsilon = 1e-6
	onEachPath(t, func(t *testing.T, p Path) {
		for _, width := range widths {
			r := source(uint64(width))
			const rows = 3
			x, delta, weight := normals(r, rows*width, 3), normals(r, rows*width, 1), normals(r, width, 1)
			exact := make([]float64, len(x))
			for i, f := range x {
				exact[i] = float64(f)
			}
			padded := (width + 31) / 32 * 32
			out := make([]uint16, rows*padded)
			if err := norm(threads(t, 2), p, rows, x, delta, weight, epsilon, out); err != nil {
				t.Fatal(err)
			}
			for row := range rows {
				from, to := row*width, (row+1)*width
				near(t, out[row*padded:(row+1)*padded], normReference(exact[from:to], delta[from:to], weight,
					epsilon))
				for i := from; i < to; i++ {
					if math.Abs(float64(x[i])-exact[i]) > 1e-6*(1+math.Abs(exact[i])) {
						t.Fatalf("x[%d] + delta = %v, want %v", i, x[i], exact[i])
					}
				}
			}
		}
	})
}

// TestNormByHand: the root mean square of (3, 4) is sqrt(12.5); times weights (1, 2) that is (0.8485,
// 2.2627).
func TestNormByHand(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		out := make([]uint16, 2)
		if err := norm(threads(t, 1), p, 1, []float32{3, 4}, nil, []float32{1, 2}, 0, out); err != nil {
			t.Fatal(err)
		}
		near(t, out, []float64{0.848528137, 2.26274170})
	})
}

func TestSwiglu(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		for _, width := range widths {
			r := source(uint64(width))
			const rows = 2
			x := normals(r, rows*2*width, 4)
			x[0] = -200 // e^200 is beyond fp32: the result is 0 for all that bf16 can tell
			padded := (width + 31) / 32 * 32
			out := make([]uint16, rows*padded)
			if err := swiglu(threads(t, 2), p, rows, x, out); err != nil {
				t.Fatal(err)
			}
			for row := range rows {
				near(t, out[row*padded:(row+1)*padded], swigluReference(x[row*2*width:(row+1)*2*width]))
			}
		}
	})
}

// TestSwigluByHand: silu(1) * 2 = 1.4621172, silu(0) * 5 = 0.
func TestSwigluByHand(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		out := make([]uint16, 2)
		if err := swiglu(threads(t, 1), p, 1, []float32{1, 0, 2, 5}, out); err != nil {
			t.Fatal(err)
		}
		near(t, out, []float64{1.4621172, 0})
	})
}

// angles is a table of plain rotary embeddings with base theta.
func angles(positions, dim int, theta float64) ropeTable {
	table := ropeTable{dim: dim}
	for position := range positions {
		for i := range dim / 2 {
			angle := float64(position) * math.Pow(theta, -2*float64(i)/float64(dim))
			table.cosines = append(table.cosines, float32(math.Cos(angle)))
			table.sines = append(table.sines, float32(math.Sin(angle)))
		}
	}
	return table
}

func TestRotate(t *testing.T) {
	positions := []int32{0, 7, 6, 7, 500}
	const heads, epsilon = 3, 1e-6
	onEachPath(t, func(t *testing.T, p Path) {
		for _, dim := range []int{2, 4, 32, 64, 80, 128} {
			table := angles(501, dim, 1e6)
			for _, weight := range [][]float32{nil, normals(source(1), dim, 1)} {
				before := normals(source(uint64(dim)), len(positions)*heads*dim, 5)
				x := append([]float32(nil), before...)
				if err := rotate(threads(t, 2), p, heads, x, weight, epsilon, positions, table); err != nil {
					t.Fatal(err)
				}
				for head := range len(positions) * heads {
					at := int(positions[head/heads]) * dim / 2
					want := rotateReference(before[head*dim:(head+1)*dim], weight, epsilon,
						table.cosines[at:at+dim/2], table.sines[at:at+dim/2])
					largest := 0.0
					for _, v := range want {
						largest = max(largest, math.Abs(v))
					}
					for i, v := range want {
						if miss := math.Abs(float64(x[head*dim+i]) - v); miss > rotateTolerance()*largest {
							t.Fatalf("dim %d, head %d: x[%d] = %v, want %v", dim, head, i, x[head*dim+i], v)
						}
					}
				}
			}
		}
	})
}

// TestRotateByHand: a quarter turn takes the pair (x0, x2) = (1, 3) to (-3, 1); the pair (x1, x3) stays.
func TestRotateByHand(t *testing.T) {
	table := ropeTable{dim: 4, cosines: []float32{0, 1}, sines: []float32{1, 0}}
	onEachPath(t, func(t *testing.T, p Path) {
		x := []float32{1, 2, 3, 4}
		if err := rotate(threads(t, 1), p, 1, x, nil, 0, []int32{0}, table); err != nil {
			t.Fatal(err)
		}
		if at := sameBits(x, []float32{-3, 2, 1, 4}); at >= 0 {
			t.Errorf("x = %v, want [-3 2 1 4]", x)
		}
	})
	if err := rotate(threads(t, 1), Plain, 1, make([]float32, 4), nil, 0, []int32{1}, table); err == nil {
		t.Error("a position beyond the table was taken")
	}
}

// TestRounding: known float32 and bf16 bits, then all upper halves with lower halves around each tie, on
// every path.
func TestRounding(t *testing.T) {
	for _, c := range []struct {
		in   uint32
		want uint16
	}{
		{0x3f808000, 0x3f80}, // tie to even
		{0x3f818000, 0x3f82},
		{0x3f808001, 0x3f81},
		{0x4048f5c3, 0x4049}, // 3.14
		{0x00018000, 0x0002}, // subnormal
		{0x7f7fffff, 0x7f80}, // the largest float32 is infinity
		{0xbf808000, 0xbf80},
		{0x7f800001, 0x7fc0}, // NaN stays NaN
		{0x7fffffff, 0x7fff},
		{0x7f800000, 0x7f80},
		{0x80000000, 0x8000},
	} {
		if got := narrow(math.Float32frombits(c.in)); got != c.want {
			t.Errorf("%#08x becomes %#04x, want %#04x", c.in, got, c.want)
		}
	}
	var x []float32
	for upper := range uint32(1 << 16) {
		for _, lower := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			x = append(x, math.Float32frombits(upper<<16|lower))
		}
	}
	onEachPath(t, func(t *testing.T, p Path) {
		out := make([]uint16, len(x))
		if err := round(threads(t, 2), p, 1, x, out); err != nil {
			t.Fatal(err)
		}
		for i, f := range x {
			if isNaN(f) != isNaN(fromBF16(out[i])) || !isNaN(f) && out[i] != narrow(f) {
				t.Fatalf("%#08x becomes %#04x, want %#04x", math.Float32bits(f), out[i], narrow(f))
			}
		}
	})
}

func TestAddBias(t *testing.T) {
	onEachPath(t, func(t *testing.T, p Path) {
		x, bias := normals(source(1), 3*37, 1), normals(source(2), 37, 1)
		want := append([]float32(nil), x...)
		for i := range want {
			want[i] += bias[i%37]
		}
		if err := add(threads(t, 2), p, 3, x, bias); err != nil {
			t.Fatal(err)
		}
		if at := sameBits(x, want); at >= 0 {
			t.Errorf("x[%d] = %v, want %v", at, x[at], want[at])
		}
	})
}

func TestGather(t *testing.T) {
	const columns, depth = 100, 70
	s := make([]uint16, columns*depth)
	for i := range s {
		s[i] = toBF16(float32(i % 251))
	}
	w, err := newWeights(columns, depth, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	asked := []int32{99, 0, 64, 64}
	got, err := gather(w, asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range asked {
		for k := range depth {
			if want := fromBF16(s[int(column)*depth+k]); got[i*depth+k] != want {
				t.Fatalf("weight %d of column %d is %v, want %v", k, column, got[i*depth+k], want)
			}
		}
	}
	for _, column := range []int32{-1, columns} {
		if _, err := gather(w, []int32{column}); err == nil {
			t.Errorf("column %d was taken", column)
		}
	}
}

// TestRowsNaN: a row that is not a number reaches no other.
func TestRowsNaN(t *testing.T) {
	const width, rows = 40, 3
	onEachPath(t, func(t *testing.T, p Path) {
		x, weight := normals(source(1), rows*width, 1), normals(source(2), width, 1)
		x[width+3] = float32(math.NaN())
		out := make([]uint16, rows*width)
		if err := norm(threads(t, 1), p, rows, x, nil, weight, 1e-6, out); err != nil {
			t.Fatal(err)
		}
		for i, b := range out {
			if isNaN(fromBF16(b)) != (i/width == 1) {
				t.Fatalf("out[%d] of row %d is %v", i, i/width, fromBF16(b))
			}
		}
		gated := make([]uint16, width/2*rows)
		if err := swiglu(threads(t, 1), p, rows, x, gated); err != nil {
			t.Fatal(err)
		}
		for i, b := range gated {
			if isNaN(fromBF16(b)) != (i == width/2+3) {
				t.Fatalf("gated[%d] is %v", i, fromBF16(b))
			}
		}
	})
}
