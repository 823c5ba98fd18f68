package run

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/spec"
)

// scripted is the rounds of a run of so many jobs under three seeds on a machine whose steps take 1 ms times
// what slow says of the share of the run that is over.
func scripted(t *testing.T, jobs int, now *float64, slow func(share float64) float64) *rounds {
	t.Helper()
	s := *realSpec(t, real)
	s.Replicates = 3
	return &rounds{
		spec: &s, dir: t.TempDir(), jobs: jobs,
		sample: func(_ context.Context, round int) (all []calibrate.Sample, err error) {
			for rows := 1; rows <= 4; rows++ {
				ns := int64(1e6 * slow(*now))
				all = append(all, calibrate.Sample{
					Model: "SLM", Shape: calibrate.Shape{Rows: rows, Fresh: 1}, StepNs: ns, Round: round,
				})
			}
			return all, nil
		},
		probe: func(context.Context) (calibrate.Speed, error) {
			return calibrate.Speed{AloneNs: []float64{3e6 * slow(*now)}}, nil
		},
	}
}

// TestDrift: on a machine whose speed drifts, step times of all rounds and the probes' reference are those
// that the jobs have in the mean; the first round alone is far off.
func TestDrift(t *testing.T) {
	const jobs = 51 * 3
	for _, c := range []struct {
		name string
		slow func(share float64) float64
	}{
		{"steady", func(float64) float64 { return 1 }},
		{"slower and slower", func(x float64) float64 { return 0.8 + 0.6*x }},
		{"faster and faster", func(x float64) float64 { return 1.5 - 0.7*x }},
		{"a slow hour", func(x float64) float64 { return 1.2 - 0.4*math.Cos(2*math.Pi*x) }},
		{"a slow half", func(x float64) float64 { return 1 + 0.5*math.Round(x) }},
	} {
		now, mean := 0.0, 0.0
		r := scripted(t, jobs, &now, c.slow)
		for done := range jobs {
			now = float64(done) / jobs
			if err := r.due(t.Context(), done); err != nil {
				t.Fatal(err)
			}
			mean += c.slow(now+0.5/jobs) / jobs
		}
		now = 1
		if err := r.due(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		if len(r.speeds) != 3*roundsPerPass+1 {
			t.Errorf("%s: %d rounds, want 1 and %d in each of 3 passes", c.name, len(r.speeds), roundsPerPass)
		}
		fits, err := calibrate.FitModels(r.samples)
		if err != nil {
			t.Fatal(err)
		}
		// With steps at both ends the mean of 10 rounds is exact for a line. A jump or a wave may fall between
		// rounds: off by less than half of what one of them weighs.
		if got := fits[0].Alone.BaseNs / 1e6; math.Abs(got/mean-1) > 0.04 {
			t.Errorf("%s: calibrated %.4f ms, measured %.4f ms", c.name, got, mean)
		}
		if got := r.reference().AloneNs[0] / 3e6; math.Abs(got/mean-1) > 0.04 {
			t.Errorf("%s: the probe's reference is %.4f of a steady machine's, want %.4f", c.name, got, mean)
		}
		first, err := calibrate.FitModels(r.until(1))
		if got := first[0].Alone.BaseNs / 1e6; err != nil || math.Abs(got-c.slow(0)) > 1e-5 {
			t.Errorf("%s: first round %.4f ms, %v; want %.4f", c.name, got, err, c.slow(0))
		}
	}
}

// TestRoundsGoOn: a resumed run has the rounds that were made, without half of one, and makes what is due.
func TestRoundsGoOn(t *testing.T) {
	now := 0.0
	r := scripted(t, 18, &now, func(float64) float64 { return 1 })
	if err := r.due(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	r.samples = append(r.samples, calibrate.Sample{ // of a round that was interrupted
		Model: "SLM", Shape: calibrate.Shape{Rows: 1, Fresh: 1}, StepNs: 1, Round: 3})
	if err := r.write(3); err != nil {
		t.Fatal(err)
	}
	later := scripted(t, 18, &now, nil)
	later.dir = r.dir
	if err := later.read(1); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r.speeds, later.speeds); diff != "" || len(later.speeds) != 3 {
		t.Errorf("%d speeds, want 3 (-want +got):\n%s", len(later.speeds), diff)
	}
	if diff := cmp.Diff(r.until(3), later.samples); diff != "" || len(later.samples) != 3*4 {
		t.Errorf("%d samples, want 4 of each of 3 rounds (-want +got):\n%s", len(later.samples), diff)
	}
	if err := later.due(t.Context(), 5); err != nil || len(later.speeds) != 3 {
		t.Errorf("%d rounds, %v; none was due", len(later.speeds), err)
	}
	for name, c := range map[string]struct{ text, want string }{
		speedFile:         {`[{"alone_ns": [1, 2]}]`, "speed.json: damaged: 2 and 0 times, want 1 and 0"},
		"calibration.csv": {"rows\n1\n", "calibration.csv: damaged: line 1: want model,"},
		calibrationFile:   {"# another machine\n", "want the machine that the run was begun on"},
	} {
		path := filepath.Join(r.dir, name)
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := later.read(1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
		if err := os.WriteFile(path, old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRowOf: requests leave the first model with the router's probability.
func TestRowOf(t *testing.T) {
	for p, want := range map[float64]int{0.35: 3, 0.5: 2, 1: 1} {
		s := &spec.Spec{Points: []spec.Point{
			{Routing: [][]float64{{1 - p, p}, {1, 0}}}, {}, {Routing: [][]float64{{1 - p, p}, {1, 0}}},
		}}
		if got := rowOf(s); got != want {
			t.Errorf("p = %v: %d steps in a row, want %d", p, got, want)
		}
	}
	if got := rowOf(&spec.Spec{Points: []spec.Point{{}}}); got != 1 {
		t.Errorf("no probability: %d steps in a row, want 1", got)
	}
}
