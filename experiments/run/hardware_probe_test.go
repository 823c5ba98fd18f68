package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core/turnlog"
	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// readied is a runner of real on devices that take next to no time, whose probes give these ratios in turn.
func readied(t *testing.T, rule spec.Probe, ratios ...float64) *runner {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // where another test's lock is not
	o := onFake(t.TempDir())
	r, err := newRunner(realSpec(t, real), &o)
	if err != nil {
		t.Fatal(err)
	}
	release, err := r.begin(&o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.prepare(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { release(); _ = r.real.close() })
	w := r.real.watchdog
	w.rule, w.extra = rule, 1e12
	w.reference = calibrate.Speed{AloneNs: []float64{1, 1}, BesideNs: []float64{1, 1}}
	w.probe = func(context.Context) (calibrate.Speed, error) {
		if len(ratios) == 0 {
			t.Fatal("one probe too many")
		}
		x := ratios[0]
		ratios = ratios[1:]
		return calibrate.Speed{AloneNs: []float64{x, x}, BesideNs: []float64{x, x}}, nil
	}
	t.Cleanup(func() {
		if len(ratios) > 0 {
			t.Errorf("probes %v are left", ratios)
		}
	})
	return r
}

// TestProbes: a seed is tried until both probes are within the tolerance. Which try is kept follows from the
// probes alone.
func TestProbes(t *testing.T) {
	rule := spec.Probe{Tolerance: 0.1, Tries: 3}
	for _, c := range []struct {
		name          string
		ratios        []float64 // before and after each try
		kept          int
		tries, off    float64
		seedsOff      float64
		before, after float64
	}{
		{"at once", []float64{1.05, 0.95}, 0, 1, 0, 0, 1.05, 0.95},
		{"slow after", []float64{1, 1.3, 1, 1.02}, 1, 2, 1, 0, 1, 1.02},
		{"slow before, fast after", []float64{1.2, 1, 1, 0.7, 1.01, 1.01}, 2, 3, 2, 0, 1.01, 1.01},
		{"never", []float64{1, 2, 1.2, 1, 1, 0.6}, 1, 3, 3, 1, 1.2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readied(t, rule, c.ratios...)
			j := job{&r.spec.Points[0], 0}
			if err := r.do(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			row, done, ok, err := r.load(j)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			s := r.summary()
			for metric, want := range map[string]float64{"tries": c.tries, "tries_off": c.off,
				"seeds_off": c.seedsOff, "probe_before": c.before, "probe_after": c.after,
				"throughput_tok_s": done.Tries[c.kept].ThroughputTokS} {
				if got, _ := s.Value(&row, metric); got-want > 1e-9 || want-got > 1e-9 {
					t.Errorf("%s = %v, want %v", metric, got, want)
				}
			}
			for i, y := range done.Tries {
				if y.Kept != (i == c.kept) {
					t.Errorf("try %d kept: %t", i+1, y.Kept)
				}
			}
			marked := strings.Contains(strings.Join(row.Warnings, "; "), "1 seeds were measured while the machine")
			if marked != (c.seedsOff > 0) {
				t.Errorf("warnings %q", row.Warnings)
			}
			checkFiles(t, r, j)
		})
	}
}

// checkFiles checks that a job's files are there, whole and without another try's beside them.
func checkFiles(t *testing.T, r *runner, j job) {
	t.Helper()
	log, err := turnlog.Open(r.logPath(j))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := turnlog.Replay(log); err != nil {
		t.Error(err)
	}
	rows := 0
	err = result.EachRequest(r.requestsPath(j), func(result.RequestRow) error { rows++; return nil })
	if err != nil || rows != 40 {
		t.Errorf("%d requests, %v; want 40", rows, err)
	}
	left, _ := filepath.Glob(filepath.Join(r.parts(), "*.part"))
	kept, _ := filepath.Glob(filepath.Join(r.parts(), "*.kept"))
	if len(left)+len(kept) > 0 {
		t.Errorf("left behind: %v %v", left, kept)
	}
}

// TestProbeWaits: before a try the machine may settle, for some time; once a run has waited long enough no
// seed gets more than one try.
func TestProbeWaits(t *testing.T) {
	rule := spec.Probe{Tolerance: 0.1, Tries: 3, WaitNs: 1e12}
	r := readied(t, rule, 2, 2, 1, 1)
	if err := r.do(t.Context(), job{&r.spec.Points[0], 0}); err != nil {
		t.Fatal(err)
	}
	used := r.real.watchdog.rule.ExtraNs
	if left := r.real.watchdog.extra; int64(left) > 1e12-2*int64(settleNs) {
		t.Errorf("%v of %v are left after two waits of %v", left, used, settleNs)
	}
	r = readied(t, rule, 2, 2, 1.5, 1)
	r.real.watchdog.extra = 0
	for _, j := range []job{{&r.spec.Points[0], 0}, {&r.spec.Points[1], 0}} {
		if err := r.do(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTries: all tries of a run are kept.
func TestTries(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	mustRun(t, realSpec(t, real), onFake(dir))
	text, err := os.ReadFile(filepath.Join(dir, result.TriesFile))
	if err != nil || strings.Count(string(text), "\n") != 1+10 {
		t.Errorf("%s, %v; want a head and a try a job\n%s", result.TriesFile, err, text)
	}
}

// TestReference: a run that goes on judges by the reference of its first part.
func TestReference(t *testing.T) {
	r := readied(t, spec.Probe{Tolerance: 0.1, Tries: 1})
	w := r.real.watchdog
	if err := w.refer(t.Context(), r.dir, false); err != nil {
		t.Fatal(err)
	}
	want := w.reference
	w.reference = calibrate.Speed{}
	if err := w.refer(t.Context(), r.dir, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.reference); diff != "" {
		t.Errorf("reference (-want +got):\n%s", diff)
	}
	if err := os.WriteFile(filepath.Join(r.dir, speedFile), []byte(`{"alone_ns": [1]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.reference = calibrate.Speed{}
	if err := w.refer(t.Context(), r.dir, true); err == nil || !strings.Contains(err.Error(),
		"speed.json: damaged: 1 and 0 times, want 2 and 2") {
		t.Errorf("a damaged reference: %v", err)
	}
}
