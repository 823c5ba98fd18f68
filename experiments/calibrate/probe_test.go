package calibrate

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tokenrouter/exec/native/nativetest"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
)

// TestSpeed: the ratio is that of the model which is farthest off, the geometric mean of alone and beside.
func TestSpeed(t *testing.T) {
	reference := Speed{AloneNs: []float64{1e6, 4e6}, BesideNs: []float64{2e6, 5e6}}
	for _, c := range []struct {
		name string
		s    Speed
		want float64
	}{
		{"the same", reference, 1},
		{"one twice as long, alone", Speed{[]float64{2e6, 4e6}, []float64{2e6, 5e6}}, math.Sqrt2},
		{"the other is farther", Speed{[]float64{1.1e6, 1e6}, []float64{2.2e6, 5e6}}, 0.5},
		{"all by half", Speed{[]float64{0.5e6, 2e6}, []float64{1e6, 2.5e6}}, 0.5},
	} {
		if got := c.s.Ratio(reference); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := (Speed{AloneNs: []float64{3}}).Ratio(Speed{AloneNs: []float64{2}}); math.Abs(got-1.5) > 1e-12 {
		t.Errorf("one model: %v, want 1.5", got)
	}
	mean := MeanSpeed([]Speed{reference, {[]float64{3e6, 4e6}, []float64{2e6, 7e6}}})
	want := Speed{[]float64{2e6, 4e6}, []float64{2e6, 6e6}}
	if diff := cmp.Diff(want, mean, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
		t.Errorf("mean (-want +got):\n%s", diff)
	}
}

// pair is a system of two models on devices that take next to no time.
func pair(t *testing.T) *system.System {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pair.toml")
	text := `models = [{ name = "a", shape = "tiny" }, { name = "b", shape = "tiny" }]
router = { algorithm = "me" }
scheduler = { concurrency = 2, context_max = 16 }
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	y, err := spec.LoadSystem(path)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := system.Prepare(y, system.Choice{Backend: nativetest.Fake()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := plan.Open(t.Context(), system.Run{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// TestProbe: a probe times all models, alone and beside, and ends when it shall.
func TestProbe(t *testing.T) {
	s := pair(t)
	p := NewProbe(s.Models, Shape{Rows: 2, Fresh: 1})
	for range 2 { // pages are its own each time
		speed, err := p.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, ns := range append(speed.AloneNs, speed.BesideNs...) {
			if !(ns > 0) || len(speed.AloneNs) != 2 || len(speed.BesideNs) != 2 {
				t.Errorf("times %+v, want two alone and two beside, all above 0", speed)
			}
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Run(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context has ended", err)
	}
}
