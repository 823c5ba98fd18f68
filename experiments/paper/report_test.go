package paper

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tokenrouter/experiments/report"
	"tokenrouter/experiments/result"
)

// checkReport holds docs/paper.md, and what the README says of it, to the results of all specs.
func checkReport(t *testing.T, all []*result.Summary) {
	t.Helper()
	pages, err := report.Write(filepath.Join(t.TempDir(), "paper"), all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, pages[0]), text(t, "../../docs/paper.md")); diff != "" {
		t.Errorf("docs/paper.md, which make paper writes anew (-simulated +committed):\n%s", diff)
	}
	tokens, first := aboutOf(all, false), aboutOf(all, true)
	every := result.ErrorsOf(slices.Concat(tokens.cells, first.cells), false)
	want := fmt.Sprintf("%d constants are fitted to published values and named with them, %d other values are"+
		" predictions. These are %.1f %% off in the median. Of the %d throughputs among them it is %s, and systems"+
		" are in the published order in %s rows; of the %d times to first token %s, and %s rows.",
		constants(all), every.Count, 100*every.Median, tokens.count(), tokens.errors(), tokens.order(),
		first.count(), first.errors(), first.order())
	if !strings.Contains(strings.Join(strings.Fields(text(t, "../../README.md")), " "), want) {
		t.Errorf("README.md does not say: %s", want)
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// about is what the published values of times to first token come to, or all others.
type about struct {
	cells       []result.Cell
	rows, right int
}

func aboutOf(all []*result.Summary, first bool) (a about) {
	for _, s := range all {
		if (s.Experiment == "paper-ttft") != first {
			continue
		}
		a.cells = append(a.cells, s.Cells()...)
		for _, o := range s.Orders() {
			if a.rows++; len(o.Wrong) == 0 {
				a.right++
			}
		}
	}
	return a
}

func (a about) count() int { return result.ErrorsOf(a.cells, false).Count }

func (a about) errors() string {
	e := result.ErrorsOf(a.cells, false)
	return fmt.Sprintf("%.1f %%, at worst %.0f %%", 100*e.Median, 100*math.Abs(e.Worst))
}

func (a about) order() string {
	return fmt.Sprintf("%d of %d", a.right, a.rows)
}

// constants counts what was fitted, each once.
func constants(all []*result.Summary) int {
	fitted := make(map[[2]string]bool)
	for _, s := range all {
		for _, c := range s.Calibrations {
			for _, k := range c.Constants {
				fitted[[2]string{c.File, k.Key}] = true
			}
		}
	}
	return len(fitted)
}
