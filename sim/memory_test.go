package sim_test

import (
	"context"
	"runtime"
	"testing"

	"tokenrouter/core"
	"tokenrouter/sim"
)

// peak runs the published R2R setting at N = 64, with requests of 512 tokens, and returns the
// most bytes in use beyond those before the run, looked at every so many turns after a
// collection.
func peak(tb testing.TB, requests uint64, everyTurns int) float64 {
	tb.Helper()
	held := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before := held()
	config := r2r(tb, 64, []int{1, 40}, requests, 512)
	turns, most := 0, 0.0
	config.Observe = func(int, core.Time, []core.Event, *core.Actions) {
		if turns++; turns%everyTurns == 0 {
			most = max(most, held()-before)
		}
	}
	if _, err := sim.Run(context.Background(), config); err != nil {
		tb.Fatal(err)
	}
	return max(most, held()-before)
}

// TestMemoryDoesNotGrow: memory is of the requests in flight: four times as many requests take no
// more of it, and far less than 100 MiB. (Up to 4096 values the meter keeps them as they are.)
func TestMemoryDoesNotGrow(t *testing.T) {
	const mib = 1 << 20
	few, many := peak(t, 5_000, 10_000), peak(t, 20_000, 20_000)
	if many > few+mib/4 || many > 10*mib {
		t.Errorf("%.2f MiB with 5,000 requests, %.2f MiB with 20,000, want no growth and at most 10",
			few/mib, many/mib)
	}
}

// BenchmarkMemory is 100,000 requests of 512 tokens at N = 64, once. It reports the peak in MiB.
func BenchmarkMemory(b *testing.B) {
	most := 0.0
	for b.Loop() {
		most = max(most, peak(b, 100_000, 50_000))
	}
	b.ReportMetric(most/(1<<20), "peak-MiB")
}
