package plots

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden images of testdata/golden")

// load reads figure data of testdata.
func load[T any](name string) (data T, err error) {
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		return data, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&data); err != nil {
		return data, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// sampleFigures are figures of real data, one or more of each function.
func sampleFigures() (map[string]*Figure, error) {
	threshold, err0 := load[ThresholdData]("threshold.json")
	speed, err1 := load[ThroughputSpeedData]("speed.json")
	schedules, err2 := load[SchedulesData]("schedules.json")
	timeline, err3 := load[TimelineData]("timeline.json")
	pareto, err4 := load[ParetoData]("pareto.json")
	if err := errors.Join(err0, err1, err2, err3, err4); err != nil {
		return nil, err
	}
	out := make(map[string]*Figure)
	var failed error
	add := func(name string) func(*Figure, error) {
		return func(f *Figure, err error) { out[name], failed = f, errors.Join(failed, err) }
	}
	add("threshold")(Threshold(threshold))
	add("threshold-real")(Threshold(realOf(threshold)))
	add("speed")(ThroughputSpeed(speed))
	add("schedules")(Schedules(schedules))
	add("timeline")(Timeline(timeline))
	add("pareto")(Pareto(pareto))
	add("bars")(Bars(ablation()))
	add("bars-log")(Bars(baselines()))
	add("sweep-published")(Sweep(sweepPublished()))
	add("sweep")(Sweep(sweepOfSpeed(speed)))
	add("sweep-gaps")(Sweep(sweepWithGaps()))
	add("sweep-empty")(Sweep(SweepData{
		Title: "Nothing measured yet", X: Axis{Label: "requests in flight, N", Log: true, Integer: true},
		Y: Axis{Label: "throughput (tok/s)", Log: true}, Series: []Series{{Name: "delayed"}},
	}))
	return out, failed
}

// ablation is table 6 of TokenRouter (arXiv 2610.12242), beside made up values.
func ablation() BarsData {
	d := BarsData{Title: "What each mechanism adds", X: "requests in flight, N",
		Y: Axis{Label: "throughput (tok/s)"}, Groups: []string{"1", "4", "8"}, Published: "published, 2 x A100"}
	for i, s := range []struct {
		name      string
		published []float64
	}{
		{"TokenRouter", []float64{73.02, 210.61, 372.48}},
		{"without delayed batching", []float64{73.02, 161.26, 296.86}},
		{"and without async", []float64{73.02, 143.88, 230.79}},
		{"and without router graph", []float64{72.62, 142.33, 228.10}},
		{"and without LLM extend graph", []float64{51.22, 95.55, 164.08}},
		{"and without SLM graph", []float64{34.20, 75.54, 132.78}},
		{"official R2R", []float64{36.17, 73.27, 134.89}},
	} {
		b := BarSeries{Name: s.name, Published: s.published}
		for k, v := range s.published {
			own := v * (0.92 + 0.03*float64((i+2*k)%5))
			b.Values, b.Low, b.High = append(b.Values, own), append(b.Low, own-6), append(b.High, own+6)
		}
		d.Series = append(d.Series, b)
	}
	return d
}

// baselines is on a log axis, with names of groups that are broken into lines and values that are missing.
func baselines() BarsData {
	return BarsData{
		Title: "Throughput over the stronger baseline", Y: Axis{Label: "throughput (tok/s)", Log: true},
		Groups: []string{"R2R, low effort", "R2R, high effort", "CITER", "Co-LLM, agentic workload"},
		Series: []BarSeries{
			{Name: "delayed", Values: []float64{197, 180, 149, 76}, Published: []float64{nan, nan, 149.31, 76.02}},
			{Name: "eager", Values: []float64{161, nan, 120, 60}},
			{Name: "official", Values: []float64{77, 70, 17, 3.46}, Published: []float64{77.08, nan, nan, 3.46}},
			{Name: "standard serving", Values: []float64{28, 0, 9, nan}},
		},
	}
}

// sweepPublished has published values beside each line.
func sweepPublished() SweepData {
	n := []float64{1, 4, 8}
	return SweepData{
		Title: "Throughput of two systems", X: Axis{Label: "requests in flight, N", Integer: true},
		Y: Axis{Label: "throughput (tok/s)", Zero: true}, Published: "table 6",
		Series: []Series{
			{Name: "full", X: n, Y: []float64{73, 215, 380}},
			{Name: "full", X: n, Y: []float64{73.02, 210.61, 372.48}, Published: true},
			{Name: "official", X: n, Y: []float64{36, 80, 125}},
			{Name: "official", X: n, Y: []float64{36.17, 73.27, 134.89}, Published: true},
		},
	}
}

func samples(t *testing.T) map[string]*Figure {
	t.Helper()
	out, err := sampleFigures()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// realOf turns simulated values into measured ones, 6 % below what was simulated, so that marks and lines
// stand apart.
func realOf(d ThresholdData) ThresholdData {
	out := ThresholdData{Title: "Throughput on this machine", Real: true}
	for _, q := range d.Panels {
		simulated, measured := q.Simulated, q.Simulated
		simulated.Name, simulated.Low, simulated.High = "simulated", nil, nil
		measured.Name, measured.Y = "measured, 95 % interval", nil
		measured.Low, measured.High = nil, nil
		simulated.Y = nil
		for i, y := range q.Simulated.Y {
			simulated.Y = append(simulated.Y, 0.985*y)
			half := 3 * (q.Simulated.High[i] - y)
			measured.Y = append(measured.Y, 0.94*y)
			measured.Low, measured.High = append(measured.Low, 0.94*y-half), append(measured.High, 0.94*y+half)
		}
		out.Panels = append(out.Panels, ThresholdPanel{
			Concurrency: q.Concurrency, Predicted: q.Predicted, Simulated: simulated, Measured: measured,
		})
	}
	return out
}

// sweepOfSpeed turns the curves into throughput against N.
func sweepOfSpeed(d ThroughputSpeedData) SweepData {
	out := SweepData{
		Title: "Throughput by policy", X: Axis{Label: "requests in flight, N", Log: true, Integer: true},
		Y: Axis{Label: "throughput (tok/s)", Log: true},
	}
	for _, q := range d.Curves {
		s := Series{Name: q.Policy, Y: q.Throughput, Low: q.ThroughputLow, High: q.ThroughputHigh}
		for _, n := range q.Concurrency {
			s.X = append(s.X, float64(n))
		}
		out.Series = append(out.Series, s)
	}
	return out
}

// drawnOnce draws the samples as PNG at full size, which takes most of the time of these tests.
var drawnOnce = sync.OnceValues(func() (map[string][]byte, error) {
	figures, err := sampleFigures()
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(figures))
	for name, f := range figures {
		if out[name], err = f.PNG(); err != nil {
			return nil, err
		}
	}
	return out, nil
})

func rasters(t *testing.T) map[string][]byte {
	t.Helper()
	out, err := drawnOnce()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGolden(t *testing.T) {
	for name, f := range samples(t) {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join("testdata", "golden")
			if *update {
				if err := f.Write(base, name); err != nil {
					t.Fatal(err)
				}
			}
			svg, err := f.SVG()
			if err != nil {
				t.Fatal(err)
			}
			lines := func(text string) []string { return strings.Split(text, "\n") }
			if diff := cmp.Diff(lines(read(t, base, name+".svg")), lines(string(svg))); diff != "" {
				t.Errorf("SVG differs (-golden +drawn), look at it and run with -update:\n%.2000s", diff)
			}
			raster := rasters(t)[name]
			comparePixels(t, decode(t, []byte(read(t, base, name+".png"))), decode(t, raster))
		})
	}
}

// comparePixels allows the edges of shapes to differ a little, as rounding differs between processors.
func comparePixels(t *testing.T, want, got *image.RGBA) {
	t.Helper()
	const (
		levelsMax = 48    // of 255, in any channel
		shareMax  = 0.001 // of all pixels may differ by more
	)
	if want.Bounds() != got.Bounds() {
		t.Fatalf("image is %v, golden %v", got.Bounds(), want.Bounds())
	}
	different := 0
	for at := 0; at < len(want.Pix); at += 4 {
		for channel := range 3 {
			delta := int(want.Pix[at+channel]) - int(got.Pix[at+channel])
			if delta > levelsMax || delta < -levelsMax {
				different++
				break
			}
		}
	}
	if share := float64(different) / float64(len(want.Pix)/4); share > shareMax {
		t.Errorf("%.3f %% of the pixels differ, want at most %.1f %%", share*100, shareMax*100)
	}
}

func decode(t *testing.T, raster []byte) *image.RGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(raster))
	if err != nil {
		t.Fatal(err)
	}
	opaque, ok := img.(*image.RGBA)
	if !ok {
		t.Fatalf("image is a %T, want opaque RGBA", img)
	}
	return opaque
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
