package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	w.rule = rule
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

// patient is a rule without a bound of time.
func patient(tries int) spec.Probe { return spec.Probe{Tolerance: 0.1, Tries: tries, ExtraNs: 1e15} }

// tried measures jobs as a run does: each once, and then again as the rule has it.
func tried(t *testing.T, r *runner, jobs ...job) {
	t.Helper()
	for _, j := range jobs {
		r.measured = 0 // no round of the calibration is due
		if err := r.do(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.retry(t.Context(), jobs, &Options{}); err != nil {
		t.Fatal(err)
	}
}

// noted is a finished job as it comes into the summary.
func noted(t *testing.T, r *runner, j job) (result.Row, *part) {
	t.Helper()
	_, d, ok, err := r.load(j)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	d.note(r.real.watchdog)
	return r.row(j, d), d
}

// TestProbes: a seed is tried until both probes are within the tolerance. Which try is kept follows from the
// probes alone.
func TestProbes(t *testing.T) {
	for _, c := range []struct {
		name          string
		ratios        []float64 // before and after the first try; waiting, before and after each other
		kept          int
		tries, off    float64
		seedsOff      float64
		before, after float64
	}{
		{"at once", []float64{1.05, 0.95}, 0, 1, 0, 0, 1.05, 0.95},
		{"slow after", []float64{1, 1.3, 2, 1, 1.02}, 1, 2, 1, 0, 1, 1.02},
		{"slow before, fast after", []float64{1.2, 1, 2, 1, 0.7, 2, 1.01, 1.01}, 2, 3, 2, 0, 1.01, 1.01},
		{"never", []float64{1, 2, 2, 1.2, 1, 2, 1, 0.6}, 1, 3, 3, 1, 1.2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readied(t, patient(3), c.ratios...)
			j := job{&r.spec.Points[0], 0}
			tried(t, r, j)
			row, done := noted(t, r, j)
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

// TestWorstFirst: the seed at which the machine was farthest off is tried again before others.
func TestWorstFirst(t *testing.T) {
	r := readied(t, patient(2), 1.2, 1.2, 1.5, 1.5 /* the second again */, 2, 1, 1 /* the first */, 2, 1.3, 1.3)
	first, second := job{&r.spec.Points[0], 0}, job{&r.spec.Points[1], 0}
	tried(t, r, first, second)
	for _, c := range []struct {
		j      job
		kept   int
		counts bool
	}{{first, 0, false}, {second, 1, true}} {
		_, d := noted(t, r, c.j)
		if !d.Tries[c.kept].Kept || r.real.watchdog.judge(d.kept()).counts != c.counts {
			t.Errorf("%s: tries %+v, want number %d kept, which counts: %t", c.j.point.Key, d.Tries, c.kept+1,
				c.counts)
		}
		checkFiles(t, r, c.j)
	}
}

// TestRestore: a run that was interrupted between two tries has lost neither.
func TestRestore(t *testing.T) {
	r := readied(t, patient(1), 1, 1)
	j, never := job{&r.spec.Points[0], 0}, job{&r.spec.Points[1], 0}
	tried(t, r, j)
	if err := r.rename(j, "", keptSuffix); err != nil {
		t.Fatal(err)
	}
	for _, j := range []job{j, j, never} {
		if err := r.restore(j); err != nil {
			t.Fatal(err)
		}
	}
	checkFiles(t, r, j)
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

// TestProbeWaits: before a repeated try the machine may settle, for some time; there is none once the time
// for all is over.
func TestProbeWaits(t *testing.T) {
	rule := patient(2)
	rule.WaitNs = 1e15
	r := readied(t, rule, 2, 2 /* waiting */, 2, 0.5, 1 /* again */, 1, 1)
	tried(t, r, job{&r.spec.Points[0], 0})
	rule.ExtraNs = 0
	r = readied(t, rule, 2, 2, 1.5, 1)
	tried(t, r, job{&r.spec.Points[0], 0}, job{&r.spec.Points[1], 0})
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
