package system

import (
	"testing"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/cpu"
	"tokenrouter/experiments/spec"
)

// TestSeed: at temperature 0.8 a seed gives the same tokens by the same models alone, twice in one batch with
// others, under every threshold; a seed of 0 is one as well, and requests without a seed differ. Draws that
// depend on order, row, time or dropped drafts were bugs of other engines (llama.cpp issues 7052 and 7381).
func TestSeed(t *testing.T) {
	s := pair(t, "citer")
	with := func(seed *uint64) Prompt {
		return Prompt{IDs: []int32{'a', 'b', 'c'}, TokensMax: 30,
			Sampling: exec.Sampling{Temperature: 0.8, Seed: seed, IgnoreEOS: true}}
	}
	seeds := [...]uint64{0, 7, 8, 9}
	seven := line(answers(t, s, cpu.Backend(), []Prompt{with(&seeds[1])}, 1)[0])
	zero := line(answers(t, s, cpu.Backend(), []Prompt{with(&seeds[0])}, 1)[0])
	if seven == zero {
		t.Errorf("seeds 7 and 0 both give %s", seven)
	}
	for _, b := range [][]int{{1, 1}, {1, 3}} {
		table, err := core.FixedThresholds(b, 4)
		if err != nil {
			t.Fatal(err)
		}
		s.Policy = spec.Policy{Kind: "delayed", Table: table.Rows()}
		got := answers(t, s, cpu.Backend(), []Prompt{
			with(&seeds[2]), with(&seeds[1]), with(&seeds[0]), with(&seeds[1]), with(&seeds[3]), with(nil), with(nil),
		}, 4)
		for i, want := range map[int]string{1: seven, 2: zero, 3: seven} {
			if line(got[i]) != want {
				t.Errorf("thresholds %v, request %d:\n%s, alone\n%s", b, i, line(got[i]), want)
			}
		}
		if dropped := got[1].Leave.Dropped; dropped == 0 || dropped == 30 {
			t.Errorf("%d drafts dropped, want some", dropped)
		}
		if line(got[5]) == line(got[6]) {
			t.Errorf("two requests without a seed both give %s", line(got[5]))
		}
	}
}
