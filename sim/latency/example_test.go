package latency_test

import (
	"fmt"

	"tokenrouter/sim/latency"
)

// A table clamps outside its calibrated range, and the result says how often.
func ExampleTable() {
	table, err := latency.NewTable(latency.Grid{
		Rows: []int{8, 16, 32},
		Ns:   []int64{7_000_000, 12_000_000, 29_000_000},
	}, latency.Clamp)
	if err != nil {
		fmt.Println(err)
		return
	}
	var tally latency.Tally
	for _, rows := range []int{1, 12, 32} {
		shape := latency.Shape{Rows: rows, FreshTokens: rows}
		ns, inRange := table.StepNs(shape)
		tally.Note(table, shape, inRange)
		fmt.Println(rows, ns, inRange)
	}
	fmt.Println(tally.Warning("large", table))
	// Output:
	// 1 7000000 false
	// 12 9500000 true
	// 32 29000000 true
	// latency of large: 1 of 3 launches below the calibrated range rows 8..32
}

// A published model on a published device, with a guess of launch time and a measured host overhead.
func ExampleNewRoofline() {
	shape, _ := latency.DimensionsNamed("Qwen3-32B")
	device, _ := latency.DeviceNamed("A100")
	step, err := latency.NewRoofline(latency.RooflineSpec{
		Shape: shape, Device: device, Parallel: 2, LaunchNs: 500_000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	served, err := latency.NewOverhead(step, latency.Host{StepNs: 200_000, CallNs: 50_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	ns, _ := served.StepNs(latency.Shape{Rows: 4, FreshTokens: 9, ContextTokens: 4 * 1024, Returns: 4})
	fmt.Printf("%.1f ms, %d KiB of KV a token\n", float64(ns)/1e6, step.KVBytesPerToken()>>10)
	// Output: 20.9 ms, 256 KiB of KV a token
}

func ExampleFitAffine() {
	fit, err := latency.FitAffine([]latency.Point{
		{Shape: latency.Shape{Rows: 1, FreshTokens: 1}, Ns: 6_000_000},
		{Shape: latency.Shape{Rows: 4, FreshTokens: 4}, Ns: 6_450_000},
		{Shape: latency.Shape{Rows: 8, FreshTokens: 8}, Ns: 7_050_000},
	}, latency.RefuseNegative)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f + %.0f ns a row over %v; worst error %.1f %%\n",
		fit.BaseNs, fit.PerRowNs, fit.Valid, 100*fit.MaxRelative)
	// Output: 5850000 + 150000 ns a row over rows 1..8, fresh tokens 1..8; worst error 0.0 %
}
