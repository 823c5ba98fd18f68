package plots_test

import (
	"fmt"
	"math"
	"os"

	"tokenrouter/plots"
)

// A what-if of one's own: throughput against the routing probability for two policies.
func ExampleSweep() {
	figure, err := plots.Sweep(plots.SweepData{
		Title: "What if routing were rarer?",
		X:     plots.Axis{Label: "routing probability p"},
		Y:     plots.Axis{Label: "throughput (tok/s)", Zero: true},
		Series: []plots.Series{
			{Name: "eager", X: []float64{0.1, 0.2, 0.3}, Y: []float64{480, 310, 215}},
			{Name: "delayed", X: []float64{0.1, 0.2, 0.3}, Y: []float64{486, 325, 237},
				Low: []float64{480, 320, 233}, High: []float64{492, 330, 241}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "figures")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := figure.Write(dir, "rarer"); err != nil {
		fmt.Println(err)
		return
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, file := range files {
		fmt.Println(file.Name())
	}
	// Output:
	// rarer.png
	// rarer.svg
}

// Points that an axis cannot show are left out and counted.
func ExampleFigure_leftOut() {
	figure, err := plots.Sweep(plots.SweepData{
		Y:      plots.Axis{Label: "queue time (ms)", Log: true},
		Series: []plots.Series{{Name: "eager", X: []float64{1, 2, 4, 8}, Y: []float64{0, 3, math.NaN(), 40}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(figure.LeftOut, "point not drawn")
	// Output: 1 point not drawn
}

// The published measurements beside the throughput model, N = 2 and 3 (TokenRouter, arXiv 2610.12242,
// figure 10).
func ExampleThreshold() {
	figure, err := plots.Threshold(plots.ThresholdData{
		Title: "Predicted and measured throughput",
		Panels: []plots.ThresholdPanel{
			{Concurrency: 2,
				Predicted: plots.Series{X: []float64{1, 2}, Y: []float64{99.0, 110.3}},
				Measured:  plots.Series{X: []float64{1, 2}, Y: []float64{94.4, 122.3}}},
			{Concurrency: 3,
				Predicted: plots.Series{X: []float64{1, 2, 3}, Y: []float64{142.3, 158.1, 151.9}},
				Measured:  plots.Series{X: []float64{1, 2, 3}, Y: []float64{125.9, 169.0, 158.3}}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f in wide\n", figure.Width.Points()/72)
	// Output: 3.4 in wide
}

// One request under one policy: made by the small model, handed to the large one, finished there.
func ExampleSchedules() {
	figure, err := plots.Schedules(plots.SchedulesData{
		Title:     "A hand-off",
		TimeLabel: "time (SLM steps)",
		Models:    plots.ModelNames(),
		Requests:  []string{"r1"},
		Schedules: []plots.Schedule{{
			Policy: "eager",
			Launches: []plots.Launch{
				{Model: 0, Start: 0, End: 1, Requests: []int{0}},
				{Model: 1, Start: 2, End: 5.5, Requests: []int{0}},
			},
			Waits:       []plots.Wait{{Model: 1, Request: 0, From: 1, To: 2}},
			Finishes:    []plots.Finish{{Model: 1, Request: 0, At: 5.5}},
			MeanLatency: 5.5,
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	svg, err := figure.SVG()
	fmt.Println(len(svg) > 0, err)
	// Output: true <nil>
}
