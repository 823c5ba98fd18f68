package spec

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/core/keyed"
	"tokenrouter/sim/latency"
)

var update = flag.Bool("update", false, "write the golden files anew")

func mustParse(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := Parse("t.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keysOf(s *Spec) []string {
	var keys []string
	for _, p := range s.Points {
		keys = append(keys, p.Key)
	}
	return keys
}

// TestAllFeasible: a pattern gives every feasible set at each N, sum (B - 1) < N.
func TestAllFeasible(t *testing.T) {
	sweep := func(pattern string) string {
		text := strings.Replace(good, "thresholds = [1, 3]\n", "", 1)
		return text + "[sweep]\nconcurrency = [2, 3]\nthresholds = " + pattern + "\n"
	}
	want := []string{
		"concurrency=2 thresholds=1,1", "concurrency=2 thresholds=1,2",
		"concurrency=3 thresholds=1,1", "concurrency=3 thresholds=1,2", "concurrency=3 thresholds=1,3",
	}
	if diff := cmp.Diff(want, keysOf(mustParse(t, sweep(`"1,_"`)))); diff != "" {
		t.Errorf("1,_ (-want +got):\n%s", diff)
	}
	if got := len(mustParse(t, sweep(`"_,_"`)).Points); got != 3+6 {
		t.Errorf("_,_ at N = 2 and 3: %d sets, want 3 + 6", got)
	}
	got := problemsOf(t, sweep(`"1"`))
	if len(got) != 1 || !strings.Contains(got[0], "want 2 integers, one for each model, not 1") {
		t.Errorf("pattern of one threshold: %q", got)
	}
	got = problemsOf(t, sweep(`"4,_"`))
	if all := strings.Join(got, "\n"); !strings.Contains(all, "want a pattern with a feasible set at N = 2") {
		t.Errorf("pattern that is not feasible: %q", got)
	}
	// A pattern that can not be written out leaves no point without thresholds to complain of.
	for n, want := range map[string]string{
		"[-1]": "19: workload.concurrency = -1, want an integer of 1 to 65536",
		"[2000]": `20: sweep.thresholds = "1,_", want an array of sets at N = 2000: a pattern is for N up to` +
			" 1024",
	} {
		text := strings.Replace(sweep(`"1,_"`), "[2, 3]", n, 1)
		if diff := cmp.Diff([]string{want}, problemsOf(t, text)); diff != "" {
			t.Errorf("pattern at N = %s (-want +got):\n%s", n, diff)
		}
	}
}

// TestCase30 is a public report's: 4 seeds, 3 values, 5 replicates and 3 streams give 180 different streams,
// and a value put in front changes no old one. Seed 0 is a seed.
func TestCase30(t *testing.T) {
	text := func(seed int, n string, common bool) string {
		return strings.Replace(good, "seed = 0", fmt.Sprintf("seed = %d\nreplicates ="+
			" 5\ncommon_random_numbers = %v",
			seed, common), 1) + "[sweep]\nconcurrency = " + n + "\n"
	}
	text = func(base func(int, string, bool) string) func(int, string, bool) string {
		return func(seed int, n string, common bool) string {
			return strings.Replace(base(seed, n, common), "thresholds = [1, 3]", "thresholds = [1, 1]", 1)
		}
	}(text)
	streams := make(map[uint64]string)
	for seed := range 4 {
		s := mustParse(t, text(seed, "[1, 2, 4]", false))
		for i := range s.Points {
			for replicate := range s.Replicates {
				world := s.WorldSeed(&s.Points[i], replicate)
				for _, purpose := range []keyed.Purpose{keyed.Arrival, keyed.Route, keyed.Length} {
					h := keyed.Hash(world, 0, 0, 0, purpose)
					name := fmt.Sprint(seed, s.Points[i].Key, replicate, purpose)
					if other, ok := streams[h]; ok {
						t.Errorf("streams %s and %s are the same", name, other)
					}
					streams[h] = name
				}
			}
		}
	}
	if len(streams) != 4*3*5*3 {
		t.Errorf("%d streams, want 180", len(streams))
	}
	for _, common := range []bool{false, true} {
		old, longer := mustParse(t, text(3, "[1, 2, 4]", common)), mustParse(t, text(3, "[8, 1, 2, 4]", common))
		for i := range old.Points {
			a, b := old.WorldSeed(&old.Points[i], 2), longer.WorldSeed(&longer.Points[i+1], 2)
			if a != b {
				t.Errorf("%s: seed %d, and %d with another value in front", old.Points[i].Key, a, b)
			}
		}
		same := old.WorldSeed(&old.Points[0], 1) == old.WorldSeed(&old.Points[1], 1)
		if same != common {
			t.Errorf("common random numbers %v: two points meet the same world: %v", common, same)
		}
	}
}

// TestSeedsAreWhole: derived seeds survive readers that hold numbers as float64.
func TestSeedsAreWhole(t *testing.T) {
	s := mustParse(t, good)
	for replicate := range 100 {
		if seed := s.WorldSeed(&s.Points[0], replicate); uint64(float64(seed)) != seed || seed >= 1<<53 {
			t.Errorf("seed %d does not fit a float64", seed)
		}
	}
}

func TestAxesOrder(t *testing.T) {
	s, err := Load("testdata/axes.toml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range s.Axes {
		names = append(names, a.Name)
	}
	want := []string{"policy", "concurrency", "p", "latency_scale", "host_call", "pages", "admission",
		"token_budget", "prompt_tokens", "output_tokens"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("axes (-want +got):\n%s", diff)
	}
	if len(s.Points) != 16 {
		t.Fatalf("%d points, want 2*2*2*2", len(s.Points))
	}
	p := s.Points[3]
	if p.Key != "policy=eager concurrency=2 p=0.35 latency_scale=1,0.5 host_call=0 pages=100"+
		" admission=reserve token_budget=0 prompt_tokens=10 output_tokens=20" {
		t.Errorf("point 3 is %s", p.Key)
	}
	// steps.csv: 6.0, 6.5 and 7.5 ms for 1, 2 and 4 rows; the LLM's are fitted, 5.5 + 0.5 rows, and halved.
	if got := p.Models[0].ByRows; !slices.Equal(got, []int64{6000000, 6500000}) {
		t.Errorf("SLM steps %v, want 6.0 and 6.5 ms", got)
	}
	if ns, ok := p.Models[1].Latency.StepNs(latency.Shape{Rows: 2, FreshTokens: 2}); ns != 3250000 || !ok {
		t.Errorf("LLM step of 2 rows %d ns, %v; want 3.25 ms in range", ns, ok)
	}
	if ref := s.References[0]; ref.Points[0].Value != 99 || ref.Points[0].At["latency_scale"] != "1,0.5" {
		t.Errorf("reference %+v, want 99 at latency_scale 1,0.5", ref.Points[0])
	}
}

func TestReferenceProblems(t *testing.T) {
	dir := t.TempDir()
	base := strings.Replace(good, "thresholds = [1, 3]\n", "", 1) +
		"[sweep]\nconcurrency = [2, 3]\nthresholds = \"1,_\"\n[[reference]]\nname = \"r\"\nsource =" +
		" \"s\"\nfile = \"r.csv\"\n"
	tests := []struct{ name, csv, want string }{
		{"column missing", "concurrency,throughput_tok_s\n2,1\n", ":1: thresholds: missing column"},
		{"column unknown", "concurrency,thresholds,throughput_tok_s,x\n2,\"1,1\",1,1\n",
			":1: x: unknown column, want swept axes, throughput_tok_s and use"},
		{"no number", "concurrency,thresholds,throughput_tok_s\n2,\"1,1\",1.0\n3,\"1,2\",fast\n",
			":3: throughput_tok_s: \"fast\", want a finite number"},
		{"no such point", "concurrency,thresholds,throughput_tok_s\n5,\"1,1\",1.0\n",
			":2: concurrency = 5, want a value of the sweep, one of 2 | 3"},
		{"a field too many", "concurrency,thresholds,throughput_tok_s\n2,1,1,1.0\n", ":2: wrong number of fields"},
		{"nothing", "", ":1: want a header and at least one record"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, dir, "r.csv", test.csv)
			_, err := Load(write(t, dir, "t.toml", base))
			if err == nil || err.Error() != "spec "+path+test.want {
				t.Errorf("error\n%v\nwant\nspec %s%s", err, path, test.want)
			}
		})
	}
}
