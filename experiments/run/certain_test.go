package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestNothingRandom: specs of which several seeds are refused give the same values under any seed, and one
// with random verdicts does not.
func TestNothingRandom(t *testing.T) {
	const routed = "algorithm = \"r2r\"\np = 0.35\n"
	for router, same := range map[string]bool{
		routed:                                      false,
		"algorithm = \"r2r\"\np = 1.0\n":            true,
		"algorithm = \"me\"\nweights = [1, 0]\n":    true,
		"algorithm = \"single\"\nmodel = \"LLM\"\n": true,
	} {
		var values [][]float64
		for seed := range 3 {
			text := strings.NewReplacer(routed, router,
				"seed = 3\nreplicates = 3", fmt.Sprintf("seed = %d", seed)).Replace(undrawn)
			summary := mustRun(t, parse(t, text), Options{Out: t.TempDir()}).Summary
			values = append(values, summary.Rows[0].Values)
		}
		nan := cmpopts.EquateNaNs()
		if got := cmp.Equal(values[0], values[1], nan) && cmp.Equal(values[0], values[2], nan); got != same {
			t.Errorf("three seeds are the same run: %v, want %v:\n%s", got, same, router)
		}
	}
}
