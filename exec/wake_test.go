package exec_test

import (
	"os"
	osexec "os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/workload"
)

// TestMaxWaitFiresOnTime: a lone request that waits below the threshold starts when it has
// waited the maximum, to the nanosecond, and not when the next one comes.
func TestMaxWaitFiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := config()
		c.Policy = core.Delayed{Thresholds: must(core.FixedThresholds([]int{1, 3}, 8)), MaxWait: 7 * ms}
		small, large := exact(), &scripted{script: counting}
		fill := small.Fill
		small.Fill = func(l core.Launch, results []core.Result) error {
			for i := range results {
				results[i].Score = float64(l.Rows[i].ID % 2) // request 1 is routed, the others never
			}
			return fill(l, results)
		}
		s := start(t, c, 0, []exec.Device{small, large}, nil)
		s.submit(1, []int32{1}, 2)
		s.submit(2, []int32{1}, 40)
		s.submit(4, []int32{1}, 40)
		time.Sleep(30 * time.Millisecond)
		s.stop()
		if len(large.at) < 2 || large.at[0] != 8*ms {
			t.Errorf("large model starts at %v, want the first at 8 ms: routed at 1 ms, 7 ms of waiting", large.at)
		}
	})
}

// TestPauseChangesNothing is case 32: arrivals, verdicts and lengths in the simulator and in the
// executor with devices of 6.0 and 27.9 ms on a virtual clock, while the process is stopped
// for a while in the middle (SIGSTOP): the same turns, at the same times.
func TestPauseChangesNothing(t *testing.T) {
	lengths := workload.Lengths{Prompt: must(workload.Fixed(20)), Output: must(workload.Uniform(5, 40))}
	source := must(workload.NewPoisson(3, 30, 12, lengths))
	s := &scenario{
		core: core.Config{
			Models:    []core.Model{{Name: "SLM", Pages: 64}, {Name: "LLM", Pages: 64}},
			Algorithm: route.R2R{Threshold: 0.65}, Admission: core.Reserve,
			Policy:   core.Delayed{Thresholds: must(core.FixedThresholds([]int{1, 3}, 4))},
			Requests: 40, LiveMax: 4, ContextMax: 64, PageTokens: 16,
		},
		latency: []latency.Model{latency.Constant(6_000_000), latency.Constant(27_900_000)},
		outcome: outcome.Uniform{}, seed: 3,
	}
	for r, ok := source.Next(); ok; r, ok = source.Next() {
		s.requests = append(s.requests, r)
	}
	var passes atomic.Int64
	pause := func(_ int, d exec.Device) exec.Device {
		return deviceFunc(func(p *exec.Pass) error {
			if passes.Add(1) == 100 {
				sigstop(t)
			}
			return d.Step(p)
		})
	}
	want, result := s.simulated(t)
	if result.Counters[0].Finished != 30 || result.End < 2_000*ms {
		t.Fatalf("the run is not what this test is about: %+v", result)
	}
	if d := difference(want, s.executed(t, func(w *world) { w.wrap = pause })); d != "" {
		t.Error(d)
	}
}

// sigstop stops this process for 0.3 s of the real clock. The system calls do not let the
// virtual clock of a bubble go on.
func sigstop(t *testing.T) {
	t.Helper()
	pid := strconv.Itoa(os.Getpid())
	wake := osexec.Command("/bin/sh", "-c", "sleep 0.3; kill -CONT "+pid)
	if err := wake.Start(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	if err := wake.Wait(); err != nil {
		t.Error(err)
	}
}
