package twin_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/experiments/twin"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
	"tokenrouter/sim/workload"
)

// machine is a step-time law with what real machines add to it: every step is up to a tenth longer or
// shorter, and every hundredth four times as long. It serves one run.
type machine struct {
	law   latency.Model
	model uint32
	steps uint32
}

func (m *machine) StepNs(s latency.Shape) (int64, bool) {
	ns, inRange := m.law.StepNs(s)
	m.steps++
	stretch := 0.9 + 0.2*keyed.Float(keyed.Hash(1, uint64(m.steps), m.model, 0, keyed.Route))
	if m.steps%100 == 0 {
		stretch = 4
	}
	return int64(float64(ns) * stretch), inRange
}

// laws are near those of a pair of a few million parameters on one core each.
var laws = []latency.Coefficients{
	{BaseNs: 120_000, PerRowNs: 3000, PerFreshNs: 5000, PerContextNs: 40},
	{BaseNs: 700_000, PerRowNs: 10_000, PerFreshNs: 20_000, PerContextNs: 400},
}

// besideFactors are how much longer steps take beside the other model.
var besideFactors = []float64{1.25, 1.1}

func affine(t *testing.T, c latency.Coefficients) latency.Model {
	t.Helper()
	model, err := latency.NewAffine(c)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// closedLoop is 80 requests for 8 workers.
func closedLoop(t *testing.T, policy core.Policy) (sim.Config, meter.Config) {
	t.Helper()
	prompt, err := workload.Uniform(20, 60)
	if err != nil {
		t.Fatal(err)
	}
	output, err := workload.Uniform(40, 120)
	if err != nil {
		t.Fatal(err)
	}
	source, err := workload.NewPoisson(3, 80, 1000, workload.Lengths{Prompt: prompt, Output: output})
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{
		Core: core.Config{
			Models:    []core.Model{{Name: "slm", Pages: 128}, {Name: "llm", Pages: 128}},
			Algorithm: route.R2R{Threshold: 0.8}, Policy: policy, Admission: core.Reserve,
			Requests: 32, LiveMax: 8, ContextMax: 256, PageTokens: 16, TokenBudget: 512,
		},
		Beside: besideFactors, Outcome: outcome.Uniform{}, Workload: source, Closed: true, Steady: true, Seed: 5,
	}
	return c, meter.Config{Models: 2, Slots: 32, WarmupRequests: 16}
}

var header = trace.Header{
	Models: []string{"slm", "llm"}, Signals: []trace.Signals{0, 0}, Pair: trace.Pair{Tokenizer: "ab12"},
}

// measured runs a closed loop on a machine, with a trace.
func measured(t *testing.T, policy core.Policy) (path string, tokS float64) {
	t.Helper()
	c, mc := closedLoop(t, policy)
	for m, law := range laws {
		c.Latency = append(c.Latency, &machine{law: affine(t, law), model: uint32(m)})
	}
	path = filepath.Join(t.TempDir(), "run.jsonl")
	recording, err := trace.Create(path, header)
	if err != nil {
		t.Fatal(err)
	}
	c.Observe, c.Meter = recording.Turn, meter.New(mc)
	if _, err := sim.Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := recording.Close(); err != nil {
		t.Fatal(err)
	}
	summary := c.Meter.Summary()
	return path, summary.ThroughputTokS
}

// TestTwins: of a run whose steps vary and slow each other, the twin with its own steps has the throughput of
// the run, and that with a law of them is within 3 %. That with the law of steps alone, as a calibration
// would give it, lacks the long steps, 3 % of the time.
func TestTwins(t *testing.T) {
	thresholds, err := core.FixedThresholds([]int{1, 4}, 8)
	if err != nil {
		t.Fatal(err)
	}
	for name, policy := range map[string]core.Policy{
		"eager": core.Eager{}, "delayed": core.Delayed{Thresholds: thresholds}, "step-sync": core.StepSync{},
	} {
		t.Run(name, func(t *testing.T) {
			path, want := measured(t, policy)
			c, mc := closedLoop(t, policy)
			for _, law := range laws {
				c.Latency = append(c.Latency, affine(t, law))
			}
			s, err := twin.Simulate(t.Context(), path, &header, c, mc)
			if err != nil {
				t.Fatal(err)
			}
			for _, of := range []struct {
				name string
				got  meter.Summary
				most float64
			}{{"in order", s.InOrder, 1e-6}, {"means", s.Means, 0.03}, {"given", s.Given, 0.08}} {
				if off := of.got.ThroughputTokS/want - 1; math.Abs(off) > of.most {
					t.Errorf("%s: %.1f tok/s, measured %.1f: %.2f %% off, want at most %.4f %%", of.name,
						of.got.ThroughputTokS, want, 100*off, 100*of.most)
				}
			}
			if s.Warning != "" || s.Answers.Unknown != 80 {
				t.Errorf("warning %q, answers %+v; want none, and 80 that nobody judged", s.Warning, s.Answers)
			}
		})
	}
}

// TestLaws: laws and factors come back from steps that follow them.
func TestLaws(t *testing.T) {
	var steps []trace.Step
	for rows := 1; rows <= 8; rows++ {
		for fresh := rows; fresh <= 64; fresh += 7 {
			for _, share := range []float64{0, 0.5, 1} {
				s := trace.Step{Model: 1, Rows: rows, Heads: rows, Fresh: fresh, Context: 90 * rows}
				ns, _ := affine(t, laws[1]).StepNs(latency.Shape{
					Rows: rows, FreshTokens: fresh, ContextTokens: 90 * rows,
				})
				// A share of the step's own time is beside another model, at the rate 1 / 1.25.
				s.BesideNs = int64(float64(ns) * share / ((1-share)*1.25 + share) * 1.25)
				s.Ns = s.BesideNs + ns - int64(float64(s.BesideNs)/1.25)
				steps = append(steps, s)
			}
		}
	}
	got, err := twin.Laws(steps, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Beside != 1 || got[0].BaseNs != 1 {
		t.Errorf("a model without steps: %+v", got[0])
	}
	if math.Abs(got[1].Beside-1.25) > 0.01 {
		t.Errorf("factor %v, want 1.25", got[1].Beside)
	}
	for name, pair := range map[string][2]float64{
		"base":  {got[1].BaseNs, laws[1].BaseNs},
		"fresh": {got[1].PerFreshNs, laws[1].PerFreshNs},
		"row":   {got[1].PerRowNs + 90*got[1].PerContextNs, laws[1].PerRowNs + 90*laws[1].PerContextNs},
	} {
		if math.Abs(pair[0]/pair[1]-1) > 0.02 {
			t.Errorf("%s term %v, want %v", name, pair[0], pair[1])
		}
	}
	one, err := twin.Laws([]trace.Step{{Rows: 1, Fresh: 1, Ns: 100}, {Rows: 1, Fresh: 1, Ns: 300}}, 1)
	if err != nil || one[0].BaseNs != 200 {
		t.Errorf("two steps of one shape: %+v, %v, want their mean", one, err)
	}
}

func TestAnotherPair(t *testing.T) {
	path, _ := measured(t, core.Eager{})
	c, mc := closedLoop(t, core.Eager{})
	other := header
	other.Pair.Tokenizer = "cd34"
	_, err := twin.Simulate(t.Context(), path, &other, c, mc)
	if want := "trace " + path + ":1: tokenizer = ab12, want cd34: it is of another pair"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := os.Remove(trace.StepsPath(path)); err != nil {
		t.Fatal(err)
	}
	for _, law := range laws {
		c.Latency = append(c.Latency, affine(t, law))
	}
	if _, err := twin.Simulate(t.Context(), path, &header, c, mc); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its steps: %v, want that they are not there", err)
	}
}

func TestWithBookkeeping(t *testing.T) {
	models := []latency.Model{latency.Constant(1000), latency.Constant(5000)}
	got, err := twin.WithBookkeeping(models, []exec.Timing{
		{Passes: 10, DueNs: 300, StepNs: 900, DeviceNs: 700}, {},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1050, 5000} {
		if ns, _ := got[i].StepNs(latency.Shape{Rows: 1}); ns != want {
			t.Errorf("model %d: %d ns, want %d", i, ns, want)
		}
	}
	_, err = twin.WithBookkeeping(models[:1], []exec.Timing{{Passes: 1, DueNs: math.MaxInt64}})
	if err == nil || !strings.Contains(err.Error(), "model 0") {
		t.Errorf("error %v, want one of model 0", err)
	}
}
