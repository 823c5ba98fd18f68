package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNothingRandom: several seeds of a spec in which nothing is random are refused, as they would all be the
// same run; a spec with anything that is drawn is not.
func TestNothingRandom(t *testing.T) {
	const routed = "algorithm = \"r2r\"\np = 0.35\n"
	const paths = "algorithm = \"recorded\"\npaths = [\"SSS\", \"SLS\"]\n"
	const lengths = "requests = 10\nprompt = 10\noutput = 20\n"
	const sure = "algorithm = \"r2r\"\np = 1.0\n"
	const arrivals = "file = \"testdata/arrivals.csv\"\n"
	tests := []struct {
		name    string
		changes []string // of good
		certain bool
	}{
		{"random verdicts", nil, false},
		{"p = 1 and fixed lengths", []string{routed, sure}, true},
		{"p = 0 and a law of one length", []string{routed, "algorithm = \"citer\"\np = 0.0\n", "output = 20",
			`output = { law = "uniform", min = 20, max = 20 }`}, true},
		{"p = 1 and random answers", []string{routed, sure, "output = 20",
			`output = { law = "geometric", mean = 20, max = 50 }`}, false},
		{"p = 1 and random prompts", []string{routed, sure, "prompt = 10",
			`prompt = { law = "uniform", min = 1, max = 10 }`}, false},
		{"p = 1 and shared prefixes", []string{routed, sure, "prompt = 10",
			"prompt = 10\nprefix_groups = 2\nprefix_tokens = 4"}, false},
		{"p = 1 and random arrivals", []string{routed, sure, `"closed"`, `"poisson"`, "output = 20",
			"output = 20\nrate = 3"}, false},
		{"p = 1 and a trace of arrivals", []string{routed, sure, `"closed"`, `"trace"`, lengths, arrivals}, true},
		{"a trace of arrivals", []string{`"closed"`, `"trace"`, lengths, arrivals}, false},
		{"bursts", []string{routed, routed + "outcome = \"bursts\"\neasy = 0.0\nhard = 1.0\nhard_tokens = 5\n"},
			false},
		{"one model", []string{routed, "algorithm = \"single\"\nmodel = \"LLM\"\n"}, true},
		{"a weight of 0", []string{routed, "algorithm = \"me\"\nweights = [1, 0]\n"}, true},
		{"weights", []string{routed, "algorithm = \"me\"\nweights = [1, 2]\n"}, false},
		{"paths", []string{routed, paths, lengths, ""}, true},
		{"paths after random prompts", []string{routed, paths, lengths,
			"prompt = { law = \"uniform\", min = 1, max = 9 }\n"}, false},
		{"played back", []string{routed, "algorithm = \"recorded\"\ntrace = \"testdata/fig4.jsonl\"\n", `"closed"`,
			`"recorded"`, lengths, ""}, true},
		{"random at one of two points", []string{"p = 0.35\n", "", "[policy]", "[sweep]\np = [0, 0.5]\n[policy]"},
			false},
		{"random at no point", []string{"p = 0.35\n", "", "[policy]", "[sweep]\np = [0, 1]\n[policy]"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := strings.NewReplacer(test.changes...).Replace(good)
			seeds := map[bool]int{true: 1, false: 3}[test.certain]
			if s := mustParse(t, text); s.Replicates != seeds {
				t.Errorf("%d seeds where none are said, want %d", s.Replicates, seeds)
			}
			var want []string
			if test.certain {
				want = []string{"2: replicates = 3, want 1: nothing in this spec is random"}
			}
			got := problemsOf(t, strings.Replace(text, "seed = 0", "replicates = 3", 1))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with three (-want +got):\n%s", diff)
			}
		})
	}
}
