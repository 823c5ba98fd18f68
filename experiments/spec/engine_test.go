package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEngineSteps: the step times of 1, 2, 3 and 4 rows, as the throughput model takes them. Of R2R's rows at
// p = 0.35, all at the LLM begin a visit, and 0.35 of those at the SLM.
func TestEngineSteps(t *testing.T) {
	affine := func(text string) string {
		return strings.Replace(text, `kind = "constant", step = "27.9ms"`, `kind = "affine", base = "27.9ms",`+
			` per_fresh_ns = 1000`, 1)
	}
	with := func(model, keys string) string {
		return strings.Replace(good, `name = "`+model+`",`, `name = "`+model+`", `+keys+`,`, 1)
	}
	for _, c := range []struct {
		name, text string
		model      int
		want       []int64
		mean       string
	}{
		{"a call a visit", with("LLM", `host_call = "1ms"`), 1,
			[]int64{28_900_000, 29_900_000, 30_900_000, 31_900_000}, ""},
		{"a call some rows", with("SLM", `host_call = "1ms", host_step = "2ms"`), 0,
			[]int64{8_350_000, 8_700_000, 9_050_000, 9_400_000}, "0.35 calls a row at SLM"},
		{"a call a token", with("SLM", `call = "token", host_call = "1ms"`), 0,
			[]int64{7_000_000, 8_000_000, 9_000_000, 10_000_000}, ""},
		{"no call costs anything", with("SLM", `call = "token"`), 0,
			[]int64{6_000_000, 6_000_000, 6_000_000, 6_000_000}, ""},
		// 20 tokens in KV and 1/0.35 fed, at 10 us each.
		{"in proportion to the context", with("LLM", `host_call_per_context_ns = 10000`), 1,
			[]int64{28_128_571, 28_357_143, 28_585_714, 28_814_286},
			"2.857 fresh tokens a row at LLM, 20 tokens in KV"},
		{"nothing captured", with("SLM", `launch = { graphs = "none", eager = "9.7ms", eager_per_row = "1us" }`), 0,
			[]int64{15_701_000, 15_702_000, 15_703_000, 15_704_000}, ""},
		{"all captured", with("SLM", `launch = { eager = "9.7ms" }`), 0,
			[]int64{6_000_000, 6_000_000, 6_000_000, 6_000_000}, ""},
		{"two rows captured", with("SLM", `launch = { rows = [2], eager = "9.7ms" }`), 0,
			[]int64{6_000_000, 6_000_000, 15_700_000, 15_700_000}, ""},
		// All of n rows have one fresh token with probability 0.35^n; otherwise 1 ms.
		{"decode graphs", with("LLM", `launch = { graphs = "decode", eager = "1ms" }`), 1,
			[]int64{28_550_000, 28_777_500, 28_857_125, 28_884_994},
			"2.857 fresh tokens a row at LLM, 20 tokens in KV"},
		{"no KV, and steps that do not care", with("LLM", `reuse = false`), 1,
			[]int64{27_900_000, 27_900_000, 27_900_000, 27_900_000}, ""},
		{"tokens", affine(good), 1, []int64{27_902_857, 27_905_714, 27_908_571, 27_911_429},
			"2.857 fresh tokens a row at LLM, 20 tokens in KV"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustParse(t, c.text).Points[0]
			near := cmp.Comparer(func(a, b int64) bool { return max(a-b, b-a) <= 30 }) // a tail of 1e-6 is left out
			if diff := cmp.Diff(c.want, p.Models[c.model].ByRows, near); diff != "" {
				t.Errorf("steps by rows (-want +got):\n%s", diff)
			}
			if got := p.MeanRows(); got != c.mean {
				t.Errorf("mean rows %q, want %q", got, c.mean)
			}
		})
	}
}

// TestEngineProblems: what is wrong with an engine is said with the words that it may have.
func TestEngineProblems(t *testing.T) {
	for _, c := range []struct{ name, keys, want string }{
		{"call", `call = "visits"`,
			`models[0].call = "visits", want one of "visit", "token", the nearest is "visit"`},
		{"reuse", `reuse = "no"`, `models[0].reuse = "no", want true or false`},
		{"graphs", `launch = { graphs = "prefill" }`,
			`models[0].launch.graphs = "prefill", want one of "extend", "decode", "none"`},
		{"grid", `launch = { rows = [4, 2] }`, `models[0].launch.rows = [4, 2], want rising integers`},
		{"grid of tokens", `launch = { fresh_tokens = [0, 2] }`,
			`models[0].launch.fresh_tokens[0] = 0, want an integer of at least 1`},
		{"eager", `launch = { eager = 9.7 }`,
			`models[0].launch.eager = 9.7, want a duration with its unit, such as "6.0ms"`},
		{"unknown", `launch = { eagre = "9.7ms" }`, `models[0].launch.eagre = "9.7ms", unknown key,` +
			` the nearest known is models[0].launch.eager`},
		{"host time", `host_call_per_context_ns = -1.0`,
			`models[0].host_call_per_context_ns = -1.0, want a finite number of at least 0`},
		{"dispatch", `dispatch = "-1ms"`, `models[0].dispatch = "-1ms", want`},
		{"dispatch of months", `dispatch = "1000h"`, `models[0].dispatch = "1000h", want at most 277h46m40s`},
		{"dispatch without a unit", `dispatch = 5`, `models[0].dispatch = 5, want a duration with its unit`},
		{"the old name", `host_handoff = "1ms"`, `models[0].host_handoff = "1ms", unknown key`},
	} {
		got := problemsOf(t, strings.Replace(good, `name = "SLM",`, `name = "SLM", `+c.keys+`,`, 1))
		if len(got) == 0 || !strings.HasPrefix(got[0], "4: "+c.want) {
			t.Errorf("%s: problems\n%v\nwant\n4: %s", c.name, got, c.want)
		}
	}
	planned := strings.Replace(good, "[1, 3]", `"planned"`, 1) + "[scheduler]\nbatching = \"static\"\n"
	if got := problemsOf(t, planned); len(got) != 1 || !strings.HasPrefix(got[0], `18: policy.thresholds =`+
		` "planned", want thresholds as integers: the chain can not plan here, batches are static`) {
		t.Errorf("planned static batches: problems\n%v", got)
	}
	for router, want := range map[string]string{
		"p = 0.0\nfirst = \"large\"":   `want drawn beside p = 0: no other token of that model is possible`,
		"p = 1.0\nfirst = \"small\"":   `want drawn beside p = 1: no other token of that model is possible`,
		"p = 0.35\nfirst = \"little\"": `want one of "drawn", "small", "large"`,
	} {
		got := problemsOf(t, strings.Replace(good, "p = 0.35", router, 1))
		if len(got) != 1 || !strings.Contains(got[0], "router.first = ") || !strings.Contains(got[0], want) {
			t.Errorf("first: problems\n%v\nwant\n%s", got, want)
		}
	}
	for front, want := range map[string]string{
		`"-5ms"`:  `20: scheduler.front = "-5ms", want`,
		`"1000h"`: `20: scheduler.front = "1000h", want at most 277h46m40s`,
	} {
		if got := problemsOf(t, good+"[scheduler]\nfront = "+front+"\n"); len(got) != 1 ||
			!strings.HasPrefix(got[0], want) {
			t.Errorf("front: problems\n%v\nwant\n%s", got, want)
		}
	}
	got := problemsOf(t, good+"[scheduler]\nbatching = \"statc\"\n")
	want := []string{`20: scheduler.batching = "statc", want one of "continuous", "static", the nearest is` +
		` "static"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("batching (-want +got):\n%s", diff)
	}
}

// TestSteps: engines that run extend and decode steps apart, and such as plan a step ahead: where the chain
// does not know that, it says so.
func TestSteps(t *testing.T) {
	stitch := strings.Replace(good, `"r2r"`, `"rstitch"`, 1)
	stitch = strings.Replace(stitch, "p = 0.35", "p = 0.35\np_return = 0.5", 1)
	for text, warnings := range map[string]int{good: 0, stitch: 1} { // none of R2R
		s, err := Parse("s.toml", text+"[scheduler]\nsteps = \"apart\"\n")
		if err != nil || !s.Points[0].Unmixed || len(s.Points[0].Warnings) != warnings {
			t.Errorf("steps apart: %v, %+v, want %d warnings", err, s, warnings)
		}
	}
	s, err := Parse("s.toml", good+"[scheduler]\nplan = \"ahead\"\n")
	if err != nil || !s.Points[0].Ahead || !strings.Contains(s.Points[0].Unpredictable(), "planned ahead") {
		t.Errorf("planned ahead: %v, %+v, want no prediction of four requests that change models", err, s)
	}
	alone := strings.Replace(good, `"r2r"`, `"single"`, 1)
	alone = strings.Replace(alone, "p = 0.35", `model = "LLM"`, 1)
	if s, err = Parse("s.toml", alone+"[scheduler]\nplan = \"ahead\"\n"); err != nil ||
		s.Points[0].Unpredictable() != "" {
		t.Errorf("planned ahead, one model: %v, %+v, want a prediction", err, s)
	}
}

// TestDevicesOfAModel: a model on two devices has half of its weights and KV on each. Of 80 GB, 20 GB are
// the small model's weights and 30 GB the large one's half: 30 GB for 1 MB + 2 MB a token, which are 10,000
// tokens, 625 pages. Alone on the second device, 50 GB would be 25,000 tokens.
func TestDevicesOfAModel(t *testing.T) {
	text := strings.NewReplacer(
		`name = "SLM",`, `name = "SLM", kv = { device = "a", weights = "20GB", per_token = "1MB" },`,
		`name = "LLM",`, `name = "LLM", kv = { device = ["a", "b"], weights = "60GB", per_token = "4MB" },`,
	).Replace(good) + "[[devices]]\nname = \"a\"\nmemory = \"80GB\"\nuse = 1.0\n" +
		"[[devices]]\nname = \"b\"\nmemory = \"80GB\"\nuse = 1.0\n"
	p := mustParse(t, text).Points[0]
	if p.Models[0].Pages != 625 || p.Models[1].Pages != 625 {
		t.Errorf("%d and %d pages, want 625 each", p.Models[0].Pages, p.Models[1].Pages)
	}
	apart := mustParse(t, strings.Replace(text, `device = "a"`, `device = "c"`, 1)+
		"[[devices]]\nname = \"c\"\nmemory = \"40GB\"\nuse = 1.0\n").Points[0]
	// 20 GB for 1 MB a token are 20,000 tokens.
	if apart.Models[0].Pages != 1250 || apart.Models[1].Pages != 1562 {
		t.Errorf("apart: %d and %d pages, want 1250 and 1562", apart.Models[0].Pages, apart.Models[1].Pages)
	}
	for _, c := range []struct{ old, new, want string }{
		{`["a", "b"]`, `["a", "a"]`, `5: models[1].kv.device = ["a", "a"], want no device twice`},
		{`["a", "b"]`, `["a", "x"]`, `want a devices table named "x", as models[1].kv.device says`},
	} {
		got := strings.Join(problemsOf(t, strings.Replace(text, c.old, c.new, 1)), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: problems\n%s\nwant\n%s", c.new, got, c.want)
		}
	}
}
