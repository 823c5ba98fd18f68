package cpu

import (
	"fmt"
	"testing"
)

// int8Copies are matrices of one shape that fill the memory which no cache holds.
func int8Copies(b *testing.B, columns, depth, groupInputs int) []*int8Weights {
	b.Helper()
	weights := bf16s(source(1), columns*depth, 0.05)
	matrices := []*int8Weights{packInt8(b, columns, depth, groupInputs, weights)}
	for len(matrices)*matrices[0].bytes() < benchBytes {
		matrices = append(matrices, packInt8(b, columns, depth, groupInputs, weights))
	}
	return matrices
}

// BenchmarkGemmInt8 compares products of M rows, activations quantised anew in each, with a pure read of the
// same weights, with the product of one row, and with the product of bf16 weights. Report: read-ratio is time
// over the time of the read, m1-ratio over the time at M = 1, bf16-ratio over the time of bf16 at the same M.
func BenchmarkGemmInt8(b *testing.B) {
	for _, s := range []struct{ depth, columns int }{{2048, 6144}, {1024, 3072}} {
		halves := randomWeights(b, source(1), s.columns, s.depth)
		wide := []*weights{halves}
		for len(wide)*halves.bytes() < benchBytes {
			wide = append(wide, randomWeights(b, source(1), s.columns, s.depth))
		}
		for _, groupInputs := range []int{0, 128} {
			matrices := int8Copies(b, s.columns, s.depth, groupInputs)
			for _, n := range []int{1, 2} {
				w := threads(b, n)
				for _, p := range []Path{AVX2, AVX512, AVX512BF16, AMX} {
					if !p.Available() {
						b.Logf("%v: unavailable on this machine", p)
						continue
					}
					name := fmt.Sprintf("K=%d/N=%d/group=%d/threads=%d/%v", s.depth, s.columns, groupInputs, n, p)
					b.Run(name, func(b *testing.B) { benchInt8Rows(b, w, p, matrices, wide) })
				}
			}
		}
	}
}

func benchInt8Rows(b *testing.B, w *workers, p Path, matrices []*int8Weights, wide []*weights) {
	counts := []int{1, 2, 4, 8, 16, 32}
	first, stride := matrices[0], wide[0].activationStride()
	y := make([]float32, 32*first.paddedColumns())
	x := activations(source(2), 32, first.depth, stride)
	q := newQuantised(32, first.activationStride(), first)
	at := 0
	next := func() int { at++; return at }
	calls := []func(int) error{
		func(int) error { _, err := streamInt8(w, matrices[next()%len(matrices)]); return err },
	}
	for _, rows := range counts {
		in, out, some := x[:rows*stride], y[:rows*first.paddedColumns()], q.first(rows)
		calls = append(calls, func(int) error {
			m := matrices[next()%len(matrices)]
			if err := quantise(w, p, m, in, some); err != nil {
				return err
			}
			return gemmInt8(w, p, some, m, out)
		}, func(int) error { return gemm(w, p, rows, in, wide[next()%len(wide)], out) })
	}
	for b.Loop() {
		shortest := best(b, 60, calls...)
		read := float64(shortest[0])
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(first.bytes())/read, "read-GB/s")
		for i, rows := range counts {
			took := float64(shortest[1+2*i])
			b.ReportMetric(took/read, fmt.Sprintf("read-ratio-M%d", rows))
			b.ReportMetric(took/float64(shortest[1]), fmt.Sprintf("m1-ratio-M%d", rows))
			b.ReportMetric(took/float64(shortest[2+2*i]), fmt.Sprintf("bf16-ratio-M%d", rows))
		}
	}
}

// BenchmarkQuantise compares quantising 16 rows of 2048 inputs, one thread, with rounding them to bf16.
func BenchmarkQuantise(b *testing.B) {
	const rows, depth = 16, 2048
	w := threads(b, 1)
	m := packInt8(b, 1, depth, 0, make([]uint16, depth))
	x := normals(source(1), rows*depth, 1)
	halves, q := make([]uint16, rows*depth), newQuantised(rows, m.activationStride(), m)
	for _, p := range []Path{Plain, AVX2, AVX512} {
		if !p.Available() {
			b.Logf("%v: unavailable on this machine", p)
			continue
		}
		b.Run(p.String(), func(b *testing.B) {
			for b.Loop() {
				shortest := best(b, 200,
					func(int) error { return round(w, p, rows, x, halves) },
					func(int) error { return quantise(w, p, m, halves, q) },
					func(int) error { return quantiseFloats(w, p, m, x, q) })
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(shortest[1].Nanoseconds())/1000, "bf16-us")
				b.ReportMetric(float64(shortest[1])/float64(shortest[0]), "bf16-round-ratio")
				b.ReportMetric(float64(shortest[2])/float64(shortest[0]), "fp32-round-ratio")
			}
		})
	}
}

// BenchmarkPackInt8 is the speed of quantising weights at load, one thread.
func BenchmarkPackInt8(b *testing.B) {
	const columns, depth = 1024, 3072
	weights := bf16s(source(1), columns*depth, 0.05)
	for _, groupInputs := range []int{0, 128} {
		b.Run(fmt.Sprintf("group=%d", groupInputs), func(b *testing.B) {
			m := packInt8(b, columns, depth, groupInputs, weights)
			b.SetBytes(2 * columns * depth)
			for b.Loop() {
				if err := m.pack(0, weights); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
