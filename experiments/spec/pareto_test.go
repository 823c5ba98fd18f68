package spec

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/experiments/result"
)

// TestParetoFigure: the figure of systems that answer problems, what it takes and what it refuses.
func TestParetoFigure(t *testing.T) {
	answered, err := os.ReadFile("testdata/task.toml")
	if err != nil {
		t.Fatal(err)
	}
	const figure = "\n[[figure]]\nkind = \"pareto\"\n"
	for _, c := range []struct {
		name, text string
		want       result.Figure
		refused    string
	}{
		{"alone", string(answered) + figure,
			result.Figure{Kind: "pareto", Name: "pareto", Title: "task", X: "throughput_tok_s"}, ""},
		{"speed of a user",
			string(answered) + figure + "x = \"user_speed_tok_s\"\nx_label = \"speed\"\nlog_x = true\n",
			result.Figure{Kind: "pareto", Name: "pareto", Title: "task", X: "user_speed_tok_s", XLabel: "speed",
				LogX: true}, ""},
		{"no metric", string(answered) + figure + "x = \"speed\"\n", result.Figure{},
			`figure[0].x = "speed", want one of "accuracy", "accuracy_low"`},
		{"no y", string(answered) + figure + "y = \"accuracy\"\n", result.Figure{}, `figure[0].y = "accuracy"`},
		{"another axis", strings.Replace(string(answered), "concurrency = [2, 3]",
			"concurrency = [2, 3]\ntoken_budget = [0, 64]", 1) + figure, result.Figure{},
			"want no axis sweep.token_budget for this figure"},
		{"nobody answers", good + figure, result.Figure{},
			`figure[0].kind = "pareto", want [[routing]] for this figure`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := load("testdata/t.toml", func(path string) ([]byte, error) {
				if path != "testdata/t.toml" {
					return os.ReadFile(path)
				}
				return []byte(c.text), nil
			}, calibrated{})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("error %v, want one with %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]result.Figure{c.want}, s.Figures); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}
