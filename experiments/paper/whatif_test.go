package paper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tokenrouter/experiments/result"
)

// TestStepMovesPeak: one number of figure 10 is changed, the LLM's step time, and the figure's peak moves as
// the chain predicts. With N = 8 and a quarter of the step time it lies at threshold 2, with the step time as
// it is at 7, with twice the time at 8 (all three by the chain; a slower LLM is worth a longer wait).
func TestStepMovesPeak(t *testing.T) {
	figure, err := filepath.Abs("figure-10.toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		scale float64
		best  string
	}{{0.25, "1,2"}, {1, "1,7"}, {2, "1,8"}} {
		file := filepath.Join(t.TempDir(), "changed.toml")
		text := fmt.Sprintf("extends = %q\nreference = []\nreplicates = 1\nmodels.LLM.latency.scale = %v\n"+
			"sweep.concurrency = [8]\n", figure, c.scale)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := simulate(t, file)
		for _, metric := range []string{"throughput_tok_s", "predicted_tok_s"} {
			of := func(a, b result.Row) int {
				x, _ := s.Value(&a, metric)
				y, _ := s.Value(&b, metric)
				return int(x*1e3) - int(y*1e3)
			}
			if best := slices.MaxFunc(s.Rows, of); best.Text("thresholds") != c.best {
				t.Errorf("LLM's step times %v: most %s with thresholds %s, want %s", c.scale, metric,
					best.Text("thresholds"), c.best)
			}
		}
	}
}
