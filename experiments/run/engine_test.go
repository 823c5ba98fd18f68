package run

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// oneRequest is a prompt of 10 tokens whose tokens are made by S, L, S and S. S is fed 10 tokens; then, with
// its own last token, 2; then 1.
const oneRequest = `name = "one"
models = [
  { name = "S", latency = { kind = "constant", step = "1ms" } },
  { name = "L", latency = { kind = "constant", step = "3.5ms" } },
]
[router]
algorithm = "recorded"
paths = ["SLSS"]
[policy]
kind = "eager"
[workload]
kind = "closed"
concurrency = 1
prompt = 10
steady = false
`

// TestEngines: each mechanism alone, by hand: what it adds to the 1 + 3.5 + 1 + 1 = 6.5 ms of the steps.
func TestEngines(t *testing.T) {
	const affine = `latency = { kind = "affine", base = "1ms", per_fresh_ns = 100000 }`
	for _, c := range []struct {
		name, keys string // of S
		fresh      bool   // a step of S takes 0.1 ms more for each token it is fed
		latencyMs  float64
		recomputed float64
	}{
		{"as it is", "", false, 6.5, 0},
		{"2 visits", `host_call = "2ms"`, false, 6.5 + 2*2, 0},
		{"2 visits on their way", `dispatch = "2ms"`, false, 6.5 + 2*2, 0},
		{"3 tokens, each on its way", `call = "token", dispatch = "2ms"`, false, 6.5 + 3*2, 0},
		{"3 rows", `host_step = "1ms", host_row = "2ms"`, false, 6.5 + 3*(1+2), 0},
		{"3 tokens, each a call", `call = "token", host_call = "2ms"`, false, 6.5 + 3*2, 0},
		{"visits of 10 and 12 tokens", `host_call_per_context_ns = 1000`, false, 6.5 + 0.022, 0},
		{"calls of 10, 12 and 13 tokens", `call = "token", host_call_per_context_ns = 1000`, false, 6.5 + 0.035, 0},
		{"10 + 2 + 1 tokens fed", "", true, 6.5 + 1.3, 0},
		{"10 + 12 + 1 tokens fed", `reuse = false`, true, 6.5 + 2.3, 12},
		{"10 + 12 + 13 tokens fed", `call = "token", reuse = false`, true, 6.5 + 3.5, 12 + 13},
		{"calls cost no more than themselves", `call = "token"`, true, 6.5 + 1.3, 0},
		{"3 eager launches", `launch = { graphs = "none", eager = "5ms" }`, false, 6.5 + 15, 0},
		{"2 eager launches, of 10 and 2", `launch = { graphs = "decode", eager = "5ms" }`, false, 6.5 + 10, 0},
		{"1 eager launch, of 10 tokens", `launch = { fresh_tokens = [4], eager = "5ms" }`, false, 6.5 + 5, 0},
		{"tokens are padded to 4", `launch = { fresh_tokens = [4, 16] }`, true, 6.5 + 1.6 + 0.4 + 0.4, 0},
		{"3 rows are launched", `launch = { graphs = "none", eager_per_row = "1ms" }`, false, 6.5 + 3, 0},
		{"13 tokens are launched", `launch = { graphs = "none", eager_per_fresh_ns = 1e6 }`, false, 6.5 + 13, 0},
		{"all is captured", `launch = { eager = "5ms" }`, false, 6.5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := oneRequest
			if c.keys != "" {
				text = strings.Replace(text, `name = "S",`, `name = "S", `+c.keys+`,`, 1)
			}
			if c.fresh {
				text = strings.Replace(text, `latency = { kind = "constant", step = "1ms" }`, affine, 1)
			}
			summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
			row := &summary.Rows[0]
			latencyMs, _ := summary.Value(row, "latency_mean_ms")
			recomputed, _ := summary.Value(row, "recomputed_tokens")
			if math.Abs(latencyMs-c.latencyMs) > 1e-9 || recomputed != c.recomputed {
				t.Errorf("latency %v ms, %v tokens recomputed; want %v ms and %v", latencyMs, recomputed,
					c.latencyMs, c.recomputed)
			}
		})
	}
}

// TestStaticBatches: requests of 4, 1 and 1 tokens, two at a time. The third takes the place of the second at
// once, and 6 tokens take 4 ms; in static batches it waits for the first, and they take 5 ms.
func TestStaticBatches(t *testing.T) {
	text := strings.NewReplacer(`["SLSS"]`, `["SSSS", "S", "S"]`, "concurrency = 1", "concurrency = 2").
		Replace(oneRequest)
	for batching, want := range map[string]float64{"continuous": 1500, "static": 1200} {
		s := parse(t, text+"[scheduler]\nbatching = \""+batching+"\"\n")
		summary := mustRun(t, s, Options{Out: t.TempDir()}).Summary
		if got, _ := summary.Value(&summary.Rows[0], "throughput_tok_s"); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v tok/s, want %v", batching, got, want)
		}
	}
}

// TestOutsideTheEngine: two requests of 4 tokens, each a call of 1 ms. Time before a call or at the front
// passes side by side; host time of a call is one after the other.
func TestOutsideTheEngine(t *testing.T) {
	text := strings.NewReplacer(`["SLSS"]`, `["SSSS", "SSSS"]`, "concurrency = 1", "concurrency = 2").
		Replace(oneRequest)
	for _, c := range []struct {
		name, keys, front  string
		latencyMs, firstMs float64
	}{
		{"calls", `call = "token"`, "", 4, 1},
		{"calls on their way", `call = "token", dispatch = "2ms"`, "", 4 * (1 + 2), 1 + 2},
		{"calls that the host begins", `call = "token", host_call = "2ms"`, "", 4 * (1 + 2*2), 1 + 2*2},
		{"both and a front", `call = "token", dispatch = "2ms", host_call = "2ms"`, "5ms", 5 + 4*(1+2+2*2),
			5 + 1 + 2 + 2*2},
		{"a front", `rows_max = 0`, "5ms", 5 + 4, 5 + 1},
	} {
		text := strings.Replace(text, `name = "S",`, `name = "S", `+c.keys+`,`, 1)
		if c.front != "" {
			text += "[scheduler]\nfront = \"" + c.front + "\"\n"
		}
		summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
		latencyMs, _ := summary.Value(&summary.Rows[0], "latency_mean_ms")
		firstMs, _ := summary.Value(&summary.Rows[0], "ttft_mean_ms")
		if math.Abs(latencyMs-c.latencyMs) > 1e-9 || math.Abs(firstMs-c.firstMs) > 1e-9 {
			t.Errorf("%s: first token after %v ms, all after %v; want %v and %v", c.name, firstMs, latencyMs,
				c.firstMs, c.latencyMs)
		}
	}
}

// TestFirst: the first token of every answer is the large model's, or the small one's, whatever p: an answer
// of one token takes 6 + 27.9 ms, or 6 ms.
func TestFirst(t *testing.T) {
	for first, want := range map[string]float64{"large": 33.9, "small": 6} {
		for _, algorithm := range []string{"r2r", "citer", "collm", "rstitch"} {
			text := strings.NewReplacer("output = 30", "output = 1", `"r2r"`, `"`+algorithm+`"`,
				"p = 0.35", "p = 0.35\nfirst = \""+first+"\"", "concurrency = [2, 3]", "concurrency = [1]",
				"concurrency = 2,", "concurrency = 1,", "replicates = 3", "replicates = 1").Replace(undrawn)
			if algorithm == "rstitch" {
				text = strings.Replace(text, "p = 0.35", "p = 0.35\np_return = 0.5", 1)
			}
			summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
			if got, _ := summary.Value(&summary.Rows[0], "ttft_mean_ms"); math.Abs(got-want) > 1e-9 {
				t.Errorf("%s, %s first: first token after %v ms, want %v", algorithm, first, got, want)
			}
		}
	}
}

// TestOneUser: at N = 1 no step waits for another, and throughput is 1 / (a + p b) of the mean costs of a
// step of the SLM and of the LLM, whatever the policy and the batching: exactly by the chain, and in the
// simulator within what 18,000 tokens show, 3 standard deviations.
func TestOneUser(t *testing.T) {
	base := strings.NewReplacer("replicates = 3", "replicates = 1", "requests = 40", "requests = 60",
		"output = 30", "output = 300", "concurrency = [2, 3]", "concurrency = [1]",
		"concurrency = 2,", "concurrency = 1,").Replace(undrawn)
	with := func(small, large string) string {
		return strings.NewReplacer(`name = "SLM",`, `name = "SLM", `+small,
			`name = "LLM",`, `name = "LLM", `+large).Replace(base)
	}
	for _, c := range []struct {
		name, text   string
		small, large float64 // ms a step in the mean
	}{
		{"as it is", base, 6, 27.9},
		{"static batches", base + "[scheduler]\nbatching = \"static\"\n", 6, 27.9},
		{"a barrier", strings.NewReplacer(`"delayed"`, `"model-sync"`, "thresholds = \"1,_\"\n", "",
			"thresholds = [1, 1], ", "").Replace(base), 6, 27.9},
		{"calls a token", with(`call = "token", host_call = "5ms",`, `call = "token", host_call = "5ms",`), 11,
			32.9},
		{"calls a token on their way", with(`call = "token", dispatch = "5ms",`,
			`call = "token", dispatch = "5ms",`), 11, 32.9},
		{"calls a visit on their way", with(`dispatch = "5ms",`, `dispatch = "5ms",`), 6 + 0.35*5, 32.9},
		{"calls a visit", with(`host_call = "5ms",`, `host_call = "5ms",`), 6 + 0.35*5, 32.9},
		{"no graphs", with("", `launch = { graphs = "none", eager = "18ms" },`), 6, 45.9},
		{"decode graphs", with(`launch = { graphs = "decode", eager = "9ms" },`,
			`launch = { graphs = "decode", eager = "18ms" },`), 6, 27.9 + 0.65*18},
	} {
		t.Run(c.name, func(t *testing.T) {
			summary := mustRun(t, parse(t, c.text), Options{Out: t.TempDir()}).Summary
			predicted, _ := summary.Value(&summary.Rows[0], "predicted_tok_s")
			simulated, _ := summary.Value(&summary.Rows[0], "throughput_tok_s")
			want := 1000 / (c.small + 0.35*c.large)
			if !(math.Abs(predicted/want-1) < 1e-4) { // times of mean rows are rounded
				t.Errorf("predicted %v tok/s, want %v", predicted, want)
			}
			if !(math.Abs(simulated/want-1) < 0.02) {
				t.Errorf("simulated %v tok/s, want %v", simulated, want)
			}
		})
	}
}

// TestSaturation: steps of 10 ms, whatever the batch, and answers of 10 tokens: two places serve nearly 20
// requests a second.
func TestSaturation(t *testing.T) {
	const text = `name = "load"
seed = 1
models = [{ name = "M", latency = { kind = "constant", step = "10ms" } }]
[router]
algorithm = "single"
model = "M"
[workload]
kind = "poisson"
rate = 2.0
concurrency = 2
requests = 2000
prompt = 1
output = 10
[policy]
kind = "eager"
`
	for rate, want := range map[string]string{
		"2.0": "", "18.0": "load is near saturation: 9",
		"40.0": "load is past saturation: when the last of 2000 requests came, ",
	} {
		s := parse(t, strings.Replace(text, "2.0", rate, 1))
		warnings := mustRun(t, s, Options{Out: t.TempDir()}).Summary.Rows[0].Warnings
		about := func(w string) bool { return strings.HasPrefix(w, "load is ") }
		i := slices.IndexFunc(warnings, about)
		if want == "" && i >= 0 || want != "" && (i < 0 || !strings.HasPrefix(warnings[i], want)) {
			t.Errorf("%s requests a second: warnings %q, want %q", rate, warnings, want)
		}
	}
}
