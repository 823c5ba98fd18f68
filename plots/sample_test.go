package plots

import (
	"bytes"
	"encoding/json"
	"flag"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden images of testdata/golden")

// load reads figure data of testdata.
func load[T any](t testing.TB, name string) T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var data T
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&data); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return data
}

// samples are figures of real data, one or more of each function.
func samples(t testing.TB) map[string]*Figure {
	t.Helper()
	out := make(map[string]*Figure)
	add := func(name string) func(*Figure, error) {
		return func(f *Figure, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out[name] = f
		}
	}
	add("threshold")(Threshold(load[ThresholdData](t, "threshold.json")))
	add("speed")(ThroughputSpeed(load[ThroughputSpeedData](t, "speed.json")))
	add("schedules")(Schedules(load[SchedulesData](t, "schedules.json")))
	add("timeline")(Timeline(load[TimelineData](t, "timeline.json")))
	add("sweep")(Sweep(sweepOfSpeed(load[ThroughputSpeedData](t, "speed.json"))))
	add("sweep-gaps")(Sweep(sweepWithGaps()))
	add("sweep-empty")(Sweep(SweepData{
		Title: "Nothing measured yet", X: Axis{Label: "requests in flight, N", Log: true, Integer: true},
		Y: Axis{Label: "throughput (tok/s)", Log: true}, Series: []Series{{Name: "delayed"}},
	}))
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
			raster, err := f.PNG()
			if err != nil {
				t.Fatal(err)
			}
			comparePixels(t, decode(t, []byte(read(t, base, name+".png"))), decode(t, raster))
		})
	}
}

// comparePixels allows the edges of shapes to differ a little, as rounding differs between processors.
func comparePixels(t *testing.T, want, got image.Image) {
	t.Helper()
	const (
		levelsMax = 48    // of 255, in any channel
		shareMax  = 0.001 // of all pixels may differ by more
	)
	if want.Bounds() != got.Bounds() {
		t.Fatalf("image is %v, golden %v", got.Bounds(), want.Bounds())
	}
	different := 0
	bounds := want.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r0, g0, b0, _ := want.At(x, y).RGBA()
			r1, g1, b1, _ := got.At(x, y).RGBA()
			for _, pair := range [][2]uint32{{r0, r1}, {g0, g1}, {b0, b1}} {
				if delta := int(pair[0]>>8) - int(pair[1]>>8); delta > levelsMax || delta < -levelsMax {
					different++
					break
				}
			}
		}
	}
	if share := float64(different) / float64(bounds.Dx()*bounds.Dy()); share > shareMax {
		t.Errorf("%.3f %% of the pixels differ, want at most %.1f %%", share*100, shareMax*100)
	}
}

func decode(t *testing.T, raster []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(raster))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
