package chain

import (
	"context"
	"runtime"
	"testing"
)

// benchmarkSearch searches figure 10's model on one core and reports the memory that the process took from
// the system.
func benchmarkSearch(b *testing.B, n int, fixed []int) {
	sets := 0
	for b.Loop() {
		r, err := Search(context.Background(), figure10(0.35), n, fixed, SearchOptions{})
		if err != nil {
			b.Fatal(err)
		}
		sets = len(r.Points)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.ReportMetric(float64(stats.Sys)/(1<<20), "MiB-sys")
	b.ReportMetric(float64(sets), "sets")
}

// The three targets: at most 2 s; 3 s; 40 s and 2 GiB, on one core.
func BenchmarkSearch16All(b *testing.B)   { benchmarkSearch(b, 16, nil) }
func BenchmarkSearch32Large(b *testing.B) { benchmarkSearch(b, 32, []int{1, 0}) }
func BenchmarkSearch64Large(b *testing.B) { benchmarkSearch(b, 64, []int{1, 0}) }

// BenchmarkSolve holds single chains: large constant, by iteration with three models, and affine.
func BenchmarkSolve(b *testing.B) {
	mixture := Mixture([]float64{0.5, 0.3, 0.2}, Constant(6e6), Constant(10e6), Constant(28e6))
	for _, c := range []struct {
		name string
		m    Model
		n    int
		b    []int
	}{
		{"R2R-64", figure10(0.35), 64, []int{1, 1}},
		{"ME-8", mixture, 8, []int{1, 1, 1}},
		{"affine-16", R2R(0.35, Affine(5e6, 1e5), Affine(27e6, 3e5)), 16, []int{1, 1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.m.Solve(c.n, c.b, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
