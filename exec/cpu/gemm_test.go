package cpu

import (
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"
)

func product(t *testing.T, w *workers, p Path, rows int, x []uint16, m *weights) []float32 {
	t.Helper()
	y := make([]float32, rows*m.paddedColumns())
	if err := gemm(w, p, rows, x, m, y); err != nil {
		t.Fatal(err)
	}
	return y
}

func TestGemmAgainstDouble(t *testing.T) {
	shapes := []struct {
		name                 string
		columns, depth, rows int
	}{
		{"one weight", 1, 1, 1},
		{"one tile", 16, 32, 1},
		{"one block", 64, 32, 16},
		{"just short of a block", 63, 31, 17},
		{"just over a block", 65, 33, 3},
		{"odd depth", 130, 1001, 5},
		{"tiny model", 256, 256, 33},
		{"Qwen3-0.6B down", 1024, 3072, 2},
		{"Qwen3-0.6B gate, fewer inputs", 3072, 96, 18},
		{"Qwen3 vocabulary, fewer inputs", 151936, 32, 2},
		{"several panels of rows and inputs", 65, 4090, 250},
	}
	w := threads(t, 2)
	onEachPath(t, func(t *testing.T, p Path) {
		for i, s := range shapes {
			t.Run(s.name, func(t *testing.T) {
				r := source(uint64(i))
				m := randomWeights(t, r, s.columns, s.depth)
				x := activations(r, s.rows, s.depth, m.paddedDepth())
				want, magnitude, err := gemmReference(s.rows, x, m)
				if err != nil {
					t.Fatal(err)
				}
				checkProduct(t, product(t, w, p, s.rows, x, m), want, magnitude, m)
			})
		}
	})
}

// checkProduct compares a product with the reference, and wants zeros where columns were filled up.
func checkProduct(t *testing.T, y []float32, want, magnitude []float64, m *weights) {
	t.Helper()
	for i, v := range y {
		row, column := i/m.paddedColumns(), i%m.paddedColumns()
		if column >= m.columns {
			if v != 0 {
				t.Fatalf("y[%d][%d] = %v beyond the columns, want 0", row, column, v)
			}
			continue
		}
		at := row*m.columns + column
		if miss := math.Abs(float64(v) - want[at]); !(miss <= gemmTolerance()*magnitude[at]) {
			t.Fatalf("y[%d][%d] = %v, want %v within %v x %v", row, column, v, want[at], gemmTolerance(),
				magnitude[at])
		}
	}
}

// TestGemmByHand: two inputs, two outputs; W = [[1, 2], [-3, 0.5]], x = (10, 100) gives (210, 20).
func TestGemmByHand(t *testing.T) {
	m, err := newWeights(2, 2, []uint16{toBF16(1), toBF16(2), toBF16(-3), toBF16(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	x := make([]uint16, 32)
	x[0], x[1] = toBF16(10), toBF16(100)
	onEachPath(t, func(t *testing.T, p Path) {
		if y := product(t, threads(t, 1), p, 1, x, m); y[0] != 210 || y[1] != 20 {
			t.Errorf("y = %v, %v, want 210, 20", y[0], y[1])
		}
	})
}

// TestGemmSameAnswerInAnyBatch: a row has the same bits alone, in every batch, and for any number of threads.
func TestGemmSameAnswerInAnyBatch(t *testing.T) {
	batches := []int{100, 96, 81, 64, 63}
	for rows := 1; rows <= 49; rows++ {
		batches = append(batches, rows)
	}
	pools := []*workers{threads(t, 1), threads(t, 2), threads(t, 3)}
	for _, s := range []struct {
		name           string
		columns, depth int
		batches        []int // the largest first
	}{
		{"one panel", 200, 480, batches},
		{"several panels of rows and inputs", 65, 4090, []int{250}},
	} {
		t.Run(s.name, func(t *testing.T) {
			r := source(7)
			m := randomWeights(t, r, s.columns, s.depth)
			x := activations(r, s.batches[0], s.depth, m.paddedDepth())
			onEachPath(t, func(t *testing.T, p Path) {
				var alone []float32
				for row := range s.batches[0] {
					alone = append(alone, product(t, pools[0], p, 1, x[row*m.paddedDepth():][:m.paddedDepth()], m)...)
				}
				for _, rows := range s.batches {
					for _, w := range pools {
						y := product(t, w, p, rows, x[:rows*m.paddedDepth()], m)
						if at := sameBits(y, alone); at >= 0 {
							t.Fatalf("%d rows: y[%d] = %v, alone %v", rows, at, y[at], alone[at])
						}
					}
				}
			})
		})
	}
}

// TestGemmNaNStaysInItsRow: not a number and infinity in one row reach no other.
func TestGemmNaNStaysInItsRow(t *testing.T) {
	const columns, depth, rows = 64, 64, 20
	r := source(8)
	m := randomWeights(t, r, columns, depth)
	onEachPath(t, func(t *testing.T, p Path) {
		x := activations(source(9), rows, depth, depth)
		clean := product(t, threads(t, 1), p, rows, x, m)
		x[3*depth+5] = 0x7fc0  // NaN
		x[18*depth+9] = 0x7f80 // +Inf
		y := product(t, threads(t, 1), p, rows, x, m)
		for i, v := range y {
			bad := isNaN(v) || math.IsInf(float64(v), 0)
			switch row := i / columns; row {
			case 3, 18:
				if !bad {
					t.Fatalf("y[%d] of row %d is %v, want no finite value", i, row, v)
				}
			default:
				if bad || v != clean[i] {
					t.Fatalf("y[%d] of row %d is %v, want %v", i, row, v, clean[i])
				}
			}
		}
	})
}

// TestUnavailable: a path that the machine lacks, or that does not exist, is refused and computes nothing.
func TestUnavailable(t *testing.T) {
	m := randomWeights(t, source(1), 64, 32)
	w := threads(t, 1)
	y := make([]float32, 64)
	for _, p := range []Path{0, Plain, AVX2, AVX512, AVX512BF16, AMX, AMX + 1} {
		want := error(nil)
		switch {
		case p < Plain || p > AMX:
			want = syscall.EINVAL
		case !p.Available():
			want = syscall.ENOTSUP
		}
		if err := gemm(w, p, 1, make([]uint16, 32), m, y); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", p, err, want)
		}
	}
}

func TestGemmMisuse(t *testing.T) {
	m := randomWeights(t, source(1), 65, 33) // padded to 128 and 64
	w := threads(t, 1)
	for _, c := range []struct{ x, y int }{{63, 128}, {64, 127}} {
		err := gemm(w, Plain, 1, make([]uint16, c.x), m, make([]float32, c.y))
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("strides %d and %d: %v, want EINVAL", c.x, c.y, err)
		}
	}
	for _, c := range []struct{ columns, depth, given int }{{0, 1, 0}, {1, 0, 0}, {2, 3, 5}} {
		if _, err := newWeights(c.columns, c.depth, make([]uint16, c.given)); err == nil {
			t.Errorf("%d weights for %d x %d were taken", c.given, c.columns, c.depth)
		}
	}
}

func TestWorkersMisuse(t *testing.T) {
	for _, c := range []struct {
		name       string
		threads    int
		processors []int32
	}{
		{"none", 0, nil},
		{"too many", 257, nil},
		{"negative", -1, nil},
		{"processors do not match", 2, []int32{0}},
		{"no such processor", 1, []int32{1023}},
		{"negative processor", 1, []int32{-1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if w, err := newWorkers(c.threads, c.processors); err == nil {
				w.close()
				t.Error("no error")
			}
		})
	}
}

// TestStream: the measure of pure reading really reads all. Columns of ones: each 64 bit word is 4 times
// 0x3f80.
func TestStream(t *testing.T) {
	const columns, depth = 320, 288
	ones := make([]uint16, columns*depth)
	for i := range ones {
		ones[i] = 0x3f80
	}
	m, err := newWeights(columns, depth, ones)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	var want uint64
	for range m.bytes() / 8 {
		want += 0x3f803f803f803f80
	}
	for n := 1; n <= 3; n++ {
		t.Run(fmt.Sprint(n, " threads"), func(t *testing.T) {
			if sum, err := stream(threads(t, n), m); err != nil || sum != want {
				t.Errorf("sum %#x, %v, want %#x", sum, err, want)
			}
		})
	}
}
