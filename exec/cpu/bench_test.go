package cpu

import (
	"fmt"
	"testing"
	"time"
)

// benchBytes is how much memory benchmarks go round in, so that no cache holds it.
const benchBytes = 600 << 20

// best is the shortest of many calls of each function, taken in turn: the machine may be shared, and what
// disturbs one disturbs the others.
func best(b *testing.B, rounds int, calls ...func(round int) error) []time.Duration {
	b.Helper()
	shortest := make([]time.Duration, len(calls))
	for round := range rounds {
		for i, call := range calls {
			start := time.Now()
			if err := call(round); err != nil {
				b.Fatal(err)
			}
			if d := time.Since(start); round > 0 && (shortest[i] == 0 || d < shortest[i]) {
				shortest[i] = d
			}
		}
	}
	return shortest
}

// BenchmarkGemm compares products of M rows with a pure read of the same weights and with the product of one
// row. Report: read-ratio is time over the time of the read, m1-ratio over the time at M = 1.
func BenchmarkGemm(b *testing.B) {
	for _, s := range []struct{ depth, columns int }{{2048, 6144}, {1024, 3072}} {
		r := source(1)
		first := randomWeights(b, r, s.columns, s.depth)
		matrices := []*weights{first}
		for len(matrices)*first.bytes() < benchBytes {
			copied, err := newWeights(s.columns, s.depth, make([]uint16, s.columns*s.depth))
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(copied.close)
			matrices = append(matrices, copied)
		}
		for _, n := range []int{1, 2} {
			w := threads(b, n)
			for _, p := range []Path{AVX2, AVX512, AVX512BF16, AMX} {
				if !p.Available() {
					b.Logf("%v: unavailable on this machine", p)
					continue
				}
				b.Run(fmt.Sprintf("K=%d/N=%d/threads=%d/%v", s.depth, s.columns, n, p), func(b *testing.B) {
					benchRows(b, w, p, matrices)
				})
			}
		}
	}
}

func benchRows(b *testing.B, w *workers, p Path, matrices []*weights) {
	counts := []int{1, 2, 4, 8, 16, 32, 128, 512}
	first := matrices[0]
	y := make([]float32, 512*first.paddedColumns())
	stride := first.activationStride()
	x := activations(source(2), 512, first.depth, stride)
	at := 0
	next := func() *weights { at = (at + 1) % len(matrices); return matrices[at] }
	calls := []func(int) error{func(int) error { _, err := stream(w, next()); return err }}
	for _, rows := range counts {
		calls = append(calls, func(int) error {
			return gemm(w, p, rows, x[:rows*stride], next(), y[:rows*first.paddedColumns()])
		})
	}
	var shortest []time.Duration
	for b.Loop() {
		shortest = best(b, 60, calls...)
	}
	read := float64(shortest[0])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(first.bytes())/read, "read-GB/s")
	for i, rows := range counts {
		took := float64(shortest[i+1])
		b.ReportMetric(took/read, fmt.Sprintf("read-ratio-M%d", rows))
		b.ReportMetric(took/float64(shortest[1]), fmt.Sprintf("m1-ratio-M%d", rows))
		flop := 2 * float64(rows) * float64(first.depth) * float64(first.columns)
		b.ReportMetric(flop/took/1000, fmt.Sprintf("TFLOP/s-M%d", rows))
	}
}

// BenchmarkAttention compares decoding, 8 requests of 2048 tokens at one layer of Qwen3-0.6B's shape, with a
// pure read of as many bytes. Report: read-ratio is time over the time of the read.
func BenchmarkAttention(b *testing.B) {
	const requests, length = 8, 2048
	s := shape{"", 16, 8, 128, 32, 0, nil, nil}
	for range requests {
		s.rows, s.kvLengths = append(s.rows, 1), append(s.kvLengths, length)
	}
	bytes := requests * length * s.kvHeads * s.headDim * 4
	// As many layers as fill the memory that no cache holds.
	var layers []*attention
	var read []*weights
	for len(layers)*bytes < benchBytes {
		layers = append(layers, newAttention(b, s, uint64(len(layers))))
		w, err := newWeights(bytes/2/1024, 1024, make([]uint16, bytes/2))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(w.close)
		read = append(read, w)
	}
	out := make([]float32, len(layers[0].q))
	for _, n := range []int{1, 2} {
		w := threads(b, n)
		for _, p := range []Path{AVX2, AVX512, AMX} {
			if !p.Available() {
				b.Logf("%v: unavailable on this machine", p)
				continue
			}
			b.Run(fmt.Sprintf("threads=%d/%v", n, p), func(b *testing.B) {
				var shortest []time.Duration
				for b.Loop() {
					shortest = best(b, 30,
						func(round int) error { _, err := stream(w, read[round%len(read)]); return err },
						func(round int) error { return layers[round%len(layers)].attend(w, p, out) })
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(float64(bytes)/float64(shortest[0]), "read-GB/s")
				b.ReportMetric(float64(bytes)/float64(shortest[1]), "kv-GB/s")
				b.ReportMetric(float64(shortest[1])/float64(shortest[0]), "read-ratio")
			})
		}
	}
}

// BenchmarkPrefill takes a prompt of 512 tokens through one layer of the shape of Qwen3-0.6B: its four
// products and its attention. Report: milliseconds of both, and attention over products.
func BenchmarkPrefill(b *testing.B) {
	const tokens, layers = 512, 4 // of attention, so that keys and values are not as near as the last call's
	s := shape{"", 16, 8, 128, 32, 0, []int64{tokens}, []int64{tokens}}
	var attentions []*attention
	for i := range layers {
		attentions = append(attentions, newAttention(b, s, uint64(i)))
	}
	var matrices []*weights
	for _, m := range []struct{ depth, columns int }{{1024, 4096}, {2048, 1024}, {1024, 6144}, {3072, 1024}} {
		matrices = append(matrices, randomWeights(b, source(1), m.columns, m.depth))
	}
	x, y := make([]uint16, tokens*(3072+32)), make([]float32, tokens*6144)
	out := make([]float32, len(attentions[0].q))
	for _, n := range []int{1, 2} {
		w := threads(b, n)
		for _, p := range []Path{AVX512, AMX} {
			if !p.Available() {
				b.Logf("%v: unavailable on this machine", p)
				continue
			}
			products := func(int) error {
				for _, m := range matrices {
					in, made := x[:tokens*m.activationStride()], y[:tokens*m.paddedColumns()]
					if err := gemm(w, p, tokens, in, m, made); err != nil {
						return err
					}
				}
				return nil
			}
			b.Run(fmt.Sprintf("threads=%d/%v", n, p), func(b *testing.B) {
				var shortest []time.Duration
				for b.Loop() {
					shortest = best(b, 10, products,
						func(round int) error { return attentions[round%layers].attend(w, p, out) })
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(shortest[0].Seconds()*1e3, "products-ms")
				b.ReportMetric(shortest[1].Seconds()*1e3, "attention-ms")
				b.ReportMetric(float64(shortest[1])/float64(shortest[0]), "attention-ratio")
			})
		}
	}
}
