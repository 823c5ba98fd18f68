package spec

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBeyond: a point that takes models beyond what their costs were calibrated for says so, in figures. The
// good spec has 4 requests in flight of 10 to 30 tokens.
func TestBeyond(t *testing.T) {
	for _, c := range []struct {
		name, small, large string
		changes            []string // of good
		want               []string
	}{
		{"at its ends", "{ in_flight = [4, 4], context_tokens = [10, 30] }", "{}", nil, nil},
		{"more in flight", "{ in_flight = [1, 3] }", "{}", nil,
			[]string{"costs of SLM are extrapolated: calibrated for 1 to 3 requests in flight, here 4"}},
		{"fewer in flight", "{}", "{ in_flight = [8, 8] }", nil,
			[]string{"costs of LLM are extrapolated: calibrated for 8 requests in flight, here 4"}},
		{"shorter", "{ context_tokens = [11, 30] }", "{}", nil,
			[]string{"costs of SLM are extrapolated: calibrated for 11 to 30 tokens of a request, here 10 to 30"}},
		{"longer, both models", "{ context_tokens = [0, 29] }", "{ context_tokens = [0, 29] }", nil,
			[]string{"costs of SLM, LLM are extrapolated: calibrated for 0 to 29 tokens of a request," +
				" here 10 to 30"}},
		{"by a law", "{}", "{ context_tokens = [10, 30] }",
			[]string{"output = 20", `output = { law = "uniform", min = 1, max = 21 }`},
			[]string{"costs of LLM are extrapolated: calibrated for 10 to 30 tokens of a request, here 10 to 31"}},
		{"of a file", "{ context_tokens = [100, 200] }", "{}",
			[]string{`"closed"`, `"trace"`, "requests = 10\nprompt = 10\noutput = 20\n",
				"file = \"testdata/arrivals.csv\"\n"},
			[]string{"costs of SLM are extrapolated: calibrated for 100 to 200 tokens of a request, here 14"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.NewReplacer(append(c.changes, `name = "SLM",`, `name = "SLM", calibrated = `+c.small+`,`,
				`name = "LLM",`, `name = "LLM", calibrated = `+c.large+`,`)...).Replace(good)
			if diff := cmp.Diff(c.want, mustParse(t, text).Points[0].Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	got := problemsOf(t, strings.Replace(good, `name = "LLM",`,
		`name = "LLM", calibrated = { in_flight = [4] },`, 1))
	want := []string{"5: models[1].calibrated.in_flight = [4], want two integers, the least and the greatest"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one end (-want +got):\n%s", diff)
	}
}
