package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"tokenrouter/experiments/result"
)

var r2r = []string{"--p", "0.35", "--latency", "6.0ms,27.9ms"}

func predictArgs(n int, more ...string) []string {
	return append(append([]string{"predict", "-n", fmt.Sprint(n)}, r2r...), more...)
}

const three = "0.5,0.3,0.2;0.5,0.3,0.2;0.5,0.3,0.2"

func TestPredictJSON(t *testing.T) {
	mixture := []string{"predict", "-n", "4", "--routing", three, "--commit", "1,1,1;1,1,1;1,1,1",
		"--latency", "6ms,10ms,28ms", "--quantum", "2ms", "--json"}
	cases := []struct {
		name   string
		args   []string
		n      int
		quanta float64
		best   []int
		tokS   float64 // of best
		points int
		states int // of the first point, 0: not known
	}{
		// TokenRouter, arXiv 2610.12242, appendix D, solved exactly in the paper's notation for any N.
		{"R2R N=8", predictArgs(8, "--json"), 8, 0.3, []int{1, 5}, 399.0495018, 36, 3453},
		{"R2R N=4", predictArgs(4, "--json"), 4, 0.3, []int{1, 3}, 207.954041, 10, 0},
		{"R2R N=4, given quantum", predictArgs(4, "--quantum", "0.1ms", "--json"), 4, 0.1, []int{1, 3},
			207.954041, 10, 0},
		{"R2R N=2", predictArgs(2, "--json"), 2, 0.3, []int{1, 2}, 110.322694, 3, 0},
		// N = 1: 1/(6.0 + 0.35*27.9) tokens per ms.
		{"R2R N=1", predictArgs(1, "--json"), 1, 0.3, []int{1, 1}, 63.431652, 1, 0},
		{"one set", predictArgs(8, "--thresholds", "1,8", "--json"), 8, 0.3, []int{1, 8}, 332.445060, 1, 0},
		{"small held", predictArgs(8, "--fix", "1,_", "--json"), 8, 0.3, []int{1, 5}, 399.0495018, 8, 3453},
		{"large held", predictArgs(4, "--fix", "_,4", "--json"), 4, 0.3, []int{1, 4}, 190.742172, 1, 0},
		{"three models", mixture, 4, 2, []int{1, 1, 1}, 282.311151, 20, 0},
		// Nobody is routed: N small tokens every 6 ms.
		{"p = 0", []string{"predict", "-n", "3", "--p", "0", "--latency", "6ms,28ms", "--json"}, 3, 2,
			[]int{1, 1}, 500, 6, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := runCLI(t, c.args...)
			if o.code != ExitDone || o.stderr != "" {
				t.Fatalf("exit %d, stderr %q", o.code, o.stderr)
			}
			var got predictionJSON
			decode(t, o.stdout, &got)
			if got.Concurrency != c.n || got.QuantumMs != c.quanta || got.Rounding != nil {
				t.Errorf("got N %d, quantum %v, rounding %v", got.Concurrency, got.QuantumMs, got.Rounding)
			}
			if result.JoinInts(got.Best.Thresholds) != result.JoinInts(c.best) {
				t.Errorf("best %v, want %v", got.Best.Thresholds, c.best)
			}
			if math.Abs(got.Best.ThroughputTokS-c.tokS) > 2e-6 {
				t.Errorf("best %v tok/s, want %v", got.Best.ThroughputTokS, c.tokS)
			}
			if len(got.Points) != c.points {
				t.Fatalf("%d points, want %d", len(got.Points), c.points)
			}
			if c.states > 0 && got.Points[0].States != c.states {
				t.Errorf("%d states, want %d", got.Points[0].States, c.states)
			}
			checkPoints(t, got)
		})
	}
}

// checkPoints checks that no point is above the best and that the best is one of them.
func checkPoints(t *testing.T, got predictionJSON) {
	t.Helper()
	found := false
	for _, p := range got.Points {
		if !p.Feasible || p.ThroughputTokS > got.Best.ThroughputTokS {
			t.Errorf("point %+v beside the best %+v", p, got.Best)
		}
		found = found || result.JoinInts(p.Thresholds) == result.JoinInts(got.Best.Thresholds)
	}
	if !found {
		t.Errorf("best %v is not among the points", got.Best.Thresholds)
	}
}

// TestPredictContract holds the names and order of the fields: other programs read them.
func TestPredictContract(t *testing.T) {
	got := mustRun(t, predictArgs(2, "--thresholds", "1,2", "--json")...)
	want := `{"concurrency":2,"quantum_ms":0.3,"best":{"thresholds":[1,2],"throughput_tok_s":110.3226939},` +
		`"points":[{"thresholds":[1,2],"throughput_tok_s":110.3226939,"states":3,"feasible":true}]}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestPredictRounding: 27.9 ms on a lattice of 1 ms is 28 ms. One request alone then makes 1/(6 + 0.35*28)
// = 63.291 tok/s, 0.22 % less than 63.432.
func TestPredictRounding(t *testing.T) {
	o := runCLI(t, predictArgs(1, "--quantum", "1ms", "--json")...)
	if o.code != ExitDone {
		t.Fatal(o.stderr)
	}
	var got predictionJSON
	decode(t, o.stdout, &got)
	if math.Abs(got.Best.ThroughputTokS-63.291139) > 1e-6 {
		t.Errorf("%v tok/s, want 63.291139", got.Best.ThroughputTokS)
	}
	if got.Rounding == nil || fmt.Sprint(got.Rounding.StepMs, got.Rounding.StepUsedMs) != "[6 27.9] [6 28]" ||
		math.Abs(got.Rounding.ThroughputRelative+0.0022) > 0.00005 {
		t.Errorf("rounding %+v, want 27.9 to 28 at a cost of 0.0022", got.Rounding)
	}
	want := "model 1 27.9 -> 28 ms; this changes the throughput of one request alone by -0.22 %"
	if !strings.Contains(o.stderr, want) {
		t.Errorf("stderr %q, want %q in it", o.stderr, want)
	}
}

// TestPredictPatterns: two requests leave model 0 for one that they stay at: both for 1 (chance 1/4,
// 2 tokens every 10 ms), both for 2 (1/4, 2 every 28 ms) or one for each (1/2): 135.714286 tok/s in the mean.
func TestPredictPatterns(t *testing.T) {
	o := runCLI(t, "predict", "-n", "2", "--routing", "0.5,0.25,0.25;0,1,0;0,0,1", "--commit",
		"1,1,1;1,1,1;1,1,1", "--latency", "6ms,10ms,28ms", "--thresholds", "1,1,1", "--json")
	var got predictionJSON
	decode(t, o.stdout, &got)
	if p := got.Points[0]; p.Patterns != 3 || math.Abs(p.ThroughputTokS-950.0/7) > 1e-6 {
		t.Errorf("%d patterns, %v tok/s; want 3 and 135.714286", p.Patterns, p.ThroughputTokS)
	}
	if !strings.Contains(o.stderr, "N = 2 with thresholds 1,1,1 settles in one of 3 separate patterns") {
		t.Errorf("stderr %q, want the 3 patterns in it", o.stderr)
	}
}

func TestPredictTable(t *testing.T) {
	got := mustRun(t, predictArgs(3, "--fix", "1,_")...)
	want := `N = 3, quantum 0.3 ms, exact

   thresholds     tok/s  states
          1,1  142.3388     308
*         1,2  158.1171      13  best
          1,3  151.8913       4

`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, part := range []string{"Thresholds 1,2:\n", "mean wait ms",
		"Throughput 158.1171 tok/s, relative error at most", "method: elimination\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
}

func TestPredictRefusals(t *testing.T) {
	with := func(args ...string) []string { return append([]string{"predict"}, args...) }
	refuse(t, []refusal{
		{"infeasible", predictArgs(4, "--thresholds", "2,4"),
			[]string{"--thresholds", "N = 4", "1 + 3 = 4 is not below 4"}},
		{"infeasible at N = 1", predictArgs(1, "--thresholds", "1,2"),
			[]string{"N = 1", "0 + 1 = 1 is not below 1"}},
		{"infeasible hold", predictArgs(4, "--fix", "_,5"), []string{"--fix", "N = 4", "0 + 4 = 4 is not below 4"}},
		{"three models", with("-n", "4", "--routing", three, "--commit", three, "--latency", "6ms,10ms,28ms",
			"--thresholds", "2,2,3"), []string{"N = 4", "1 + 1 + 2 = 4 is not below 4"}},
		{"no system", with(), []string{"no system is given"}},
		{"only n", with("-n", "4"), []string{"no system is given"}},
		{"no n", with(r2r...), []string{"-n is missing"}},
		{"no latency", with("-n", "4", "--p", "0.3"), []string{"--latency is missing"}},
		{"no commit", with("-n", "4", "--routing", three, "--latency", "6ms"), []string{"--commit is missing"}},
		{"commit with p", predictArgs(4, "--commit", "1,0;1,0"), []string{"--commit goes with --routing"}},
		{"two systems", predictArgs(4, "--routing", "1,0;1,0"), []string{"--p and --routing are both given"}},
		{"two questions", predictArgs(4, "--fix", "1,_", "--thresholds", "1,1"),
			[]string{"--thresholds and --fix"}},
		{"n = 0", predictArgs(0), []string{`-n = "0", want a whole number from 1 to 1024`}},
		{"n negative", predictArgs(-3), []string{`-n = "-3"`}},
		{"n huge", predictArgs(1 << 40), []string{`-n = "1099511627776"`}},
		{"n a fraction", with("-n", "4.5"), []string{`-n = "4.5", want a whole number`}},
		{"n empty", with("-n", ""), []string{`-n = ""`}},
		{"n without value", with("-n"), []string{"-n has no value"}},
		{"p above 1", with("--p", "1.5"), []string{`--p = "1.5", want a probability from 0 to 1`}},
		{"p negative", with("--p", "-0.1"), []string{`--p = "-0.1"`}},
		{"p NaN", with("--p", "nan"), []string{`--p = "nan"`}},
		{"p infinite", with("--p", "inf"), []string{`--p = "inf"`}},
		{"p a percentage", with("--p", "35%"), []string{`--p = "35%"`}},
		{"bare latency", with("--latency", "6.0,27.9"), []string{"--latency", `entry 1 ("6.0")`, "has no unit"}},
		{"latency zero", with("--latency", "6ms,0ms"), []string{`entry 2 ("0ms")`, "want a time from 1ns"}},
		{"latency negative", with("--latency", "-6ms,28ms"), []string{`entry 1 ("-6ms")`, "want a time from 1ns"}},
		{"latency below 1 ns", with("--latency", "0.1ns"), []string{`"0.1ns"`, "want a time from 1ns"}},
		{"latency finer than 1 ns", with("--latency", "6.0000001ms,28ms"), []string{"finer than a nanosecond"}},
		{"latency NaN", with("--latency", "nan"), []string{`"nan"`}},
		{"latency empty entry", with("--latency", "6ms,"), []string{`entry 2 ("")`, "want a time with a unit"}},
		{"latency too long", with("--latency", "999999h"), []string{"24h"}},
		{"one latency", with("-n", "4", "--p", "0.3", "--latency", "6ms"), []string{"1 time, want 2"}},
		{"three latencies", with("-n", "4", "--p", "0.3", "--latency", "6ms,7ms,8ms"), []string{"3 times, want 2"}},
		{"latencies of a matrix", with("-n", "4", "--routing", three, "--commit", three, "--latency", "6ms,7ms"),
			[]string{"--latency", "2 times, want 3"}},
		{"ragged routing", with("--routing", "0.5,0.5;1"), []string{"row 2 has length 1, want 2"}},
		{"routing not a number", with("--routing", "0.5,x;1,0"), []string{`row 1, entry 2 is "x", want a number`}},
		{"routing above 1", with("--routing", "1.5,-0.5;1,0"), []string{`row 1, entry 1 is "1.5"`}},
		{"routing NaN", with("--routing", "nan,1;1,0"), []string{`row 1, entry 1 is "nan"`}},
		{"routing sum", with("--routing", "0.5,0.4;1,0"), []string{"row 1 sums to 0.9, want 1"}},
		{"commit negative", with("--commit", "-1,0;1,0"), []string{"--commit", `entry 1 is "-1"`}},
		{"commit of another size", with("-n", "4", "--routing", three, "--commit", "1,0;1,0", "--latency",
			"6ms,7ms,8ms"), []string{"--commit", "2 rows, want 3"}},
		{"quantum bare", predictArgs(4, "--quantum", "0.1"), []string{`--quantum = "0.1", has no unit`}},
		{"quantum zero", predictArgs(4, "--quantum", "0s"), []string{`--quantum = "0s"`}},
		{"threshold zero", predictArgs(4, "--thresholds", "0,1"),
			[]string{`entry 1 is "0", want a whole number from 1`}},
		{"threshold count", predictArgs(4, "--thresholds", "1"), []string{"has 1 threshold, want 2"}},
		{"threshold free", predictArgs(4, "--thresholds", "1,_"), []string{`entry 2 is "_"`}},
		{"hold count", predictArgs(4, "--fix", "1,_,_"), []string{"has 3 thresholds, want 2"}},
		{"hold a word", predictArgs(4, "--fix", "1,*"),
			[]string{`entry 2 is "*", want a whole number from 1, or _`}},
		{"two files", with("a.toml", "b.toml"), []string{"2 arguments (a.toml b.toml)"}},
		{"unknown flag", predictArgs(4, "--latancy", "6ms"), []string{"did you mean --latency?"}},
	})
}

func TestPredictInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	if code := Main(ctx, predictArgs(8), &stdout, &stderr); code != ExitFailed {
		t.Errorf("exit %d, want %d", code, ExitFailed)
	}
	if stdout.String() != "" || stderr.String() != "tokenrouter predict: interrupted\n" {
		t.Errorf("stdout %q, stderr %q", stdout.String(), stderr.String())
	}
}

// TestPredictMeanStep: step times that depend on tokens are those of the mean step, which is said.
func TestPredictMeanStep(t *testing.T) {
	path := putFile(t, t.TempDir(), "mine.toml", `name = "mine"
models = [
  { name = "SLM", latency = { kind = "constant", step = "6ms" } },
  { name = "LLM", latency = { kind = "affine", base = "27.9ms", per_fresh_ns = 1 } },
]
router = { algorithm = "r2r", p = 0.35 }
policy = { kind = "delayed", thresholds = [1, 3] }
workload = { kind = "closed", concurrency = 4, requests = 9, prompt = 8, output = 40 }
`)
	o := runCLI(t, "predict", path, "--fix", "1,_", "--json")
	const want = "N = 4: step times are those of the mean step: 2.857 fresh tokens a row at LLM, 28 tokens in KV"
	if o.code != ExitDone || !strings.Contains(o.stderr, want) {
		t.Fatalf("exit %d, stderr %q, want %q in it", o.code, o.stderr, want)
	}
	var got predictionJSON
	decode(t, o.stdout, &got)
	// 207.954041 tok/s at 27.9 ms, here to the nearest 50 us.
	if got.QuantumMs != 0.05 || math.Abs(got.Best.ThroughputTokS-207.954041) > 1e-4 {
		t.Errorf("quantum %v ms, best %v tok/s, want 0.05 and 207.954", got.QuantumMs, got.Best.ThroughputTokS)
	}
}

// TestPredictVariants: each variant is a system of its own; what is not predicted of them is said, and what a
// run would warn of. Half of the step times make twice the 207.954 tok/s of N = 4.
func TestPredictVariants(t *testing.T) {
	path := putFile(t, t.TempDir(), "mine.toml", `name = "mine"
models = [
  { name = "SLM", latency = { kind = "constant", step = "6ms" }, calibrated = { in_flight = [1, 2] } },
  { name = "LLM", latency = { kind = "constant", step = "27.9ms" } },
]
router = { algorithm = "r2r", p = 0.35 }
policy = { kind = "delayed", thresholds = [1, 3] }
workload = { kind = "closed", concurrency = 4, requests = 9, prompt = 8, output = 40 }
[[variant]]
name = "whole"
[[variant]]
name = "half"
models.SLM.latency.scale = 0.5
models.LLM.latency.scale = 0.5
[[variant]]
name = "static"
scheduler.batching = "static"
`)
	o := runCLI(t, "predict", path, "--fix", "1,_", "--json")
	var got severalJSON
	decode(t, o.stdout, &got)
	if o.code != ExitDone || len(got.Predictions) != 2 {
		t.Fatalf("exit %d, %d predictions, want those of two variants", o.code, len(got.Predictions))
	}
	for i, want := range []struct {
		system string
		tokS   float64
	}{{"variant = whole", 207.954041}, {"variant = half", 2 * 207.954041}} {
		p := got.Predictions[i]
		if p.System != want.system || math.Abs(p.Best.ThroughputTokS-want.tokS) > 1e-4 {
			t.Errorf("%q: %v tok/s, want %q and %v", p.System, p.Best.ThroughputTokS, want.system, want.tokS)
		}
	}
	for _, want := range []string{
		"note: N = 4, variant = static: not predicted: batches are static",
		"note: N = 4, variant = half: costs of SLM are extrapolated: calibrated for 1 to 2 requests in flight," +
			" here 4",
	} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("stderr %q, want %q in it", o.stderr, want)
		}
	}
}
