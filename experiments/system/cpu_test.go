package system

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec/cpu"
	"tokenrouter/experiments/spec"
)

// TestDegenerate: with thresholds beyond all scores, the answer is that of one model alone; only R-Stitch
// gives the small model the first word.
func TestDegenerate(t *testing.T) {
	prompts := promptsOf(3, 12, 0)
	for _, c := range []struct {
		algorithm string
		threshold float64
		like      string
	}{
		{"r2r", 2, "small"}, {"citer", 0, "small"}, {"collm", 1, "small"}, {"rstitch", 1, "small"},
		{"r2r", 0, "large"}, {"citer", 2, "large"}, {"collm", -1, "large"}, {"rstitch", -1, "large"},
	} {
		s := pair(t, c.algorithm)
		s.Router.Threshold, s.Router.HasThreshold = c.threshold, true
		got := answers(t, s, cpu.Backend(), prompts, 3)
		s.Router = spec.Router{Algorithm: c.like}
		want := answers(t, s, cpu.Backend(), prompts, 3)
		for i := range prompts {
			tokens := func(a Answered) []int32 {
				var ids []int32
				for _, token := range a.Tokens {
					ids = append(ids, token.Token)
				}
				return ids
			}
			if diff := cmp.Diff(tokens(want[i]), tokens(got[i])); diff != "" {
				t.Errorf("%s at %v, prompt %d (-%s +got):\n%s", c.algorithm, c.threshold, i, c.like, diff)
			}
			drafts := int32(0)
			if c.like == "large" {
				drafts = map[bool]int32{true: 1, false: 12}[c.algorithm == "rstitch"]
			}
			if got[i].Leave.Dropped != drafts {
				t.Errorf("%s at %v: %d drafts dropped, want %d", c.algorithm, c.threshold, got[i].Leave.Dropped,
					drafts)
			}
		}
	}
}

// alone is what one model says after some tokens, computed from nothing by a system that never routes.
func alone(t *testing.T, s *spec.System, ids []int32) core.Result {
	t.Helper()
	p, err := Prepare(s, Choice{Backend: cpu.Backend()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var last core.Result
	y, err := p.Open(t.Context(), Run{Observe: func(_ int, _ core.Time, in []core.Event, _ *core.Actions) {
		for i := range in {
			for _, r := range in[i].Results {
				last = r
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	prompt := promptsOf(1, 1, 0)
	prompt[0].IDs = ids
	if _, err := y.Answers(t.Context(), prompt, 1, nil); err != nil {
		t.Fatal(err)
	}
	return last
}

// oracle answers a prompt by the definition of the algorithm, token by token: what each model says is
// computed from the whole text so far, without pages, suffixes or hand-offs. rows has what each step must be
// given, by row: model:anchor+fresh. The anchor is all that the model has been given before, so that its own
// last token, sampled and never fed, leads what is fresh, and a dropped draft is in nothing.
func oracle(
	t *testing.T, s *spec.System, seed uint64, ids []int32, tokens int,
) (answer string, rows []string) {
	t.Helper()
	r := s.Router
	never := map[string]float64{"r2r": 2, "citer": -1, "collm": 2, "rstitch": 2}
	only := func(model int, ids []int32) core.Result {
		one := *s
		if one.Router.Threshold = never[r.Algorithm]; model == 1 || r.Algorithm == "me" {
			one.Router = spec.Router{Algorithm: []string{"small", "large"}[model]}
		}
		return alone(t, &one, ids)
	}
	draw := func(position, model int, purpose keyed.Purpose) int { // of me, with weights 1 and 1
		return int(2 * keyed.Float(keyed.Hash(seed, 0, uint32(position), uint32(model), purpose)))
	}
	ids = slices.Clone(ids)
	out, dropped, m := "", 0, 0
	if r.Algorithm == "me" {
		m = draw(0, 0, keyed.Entry)
	}
	var given [2]int // tokens of each model
	for made := 0; made < tokens; {
		rows = append(rows, fmt.Sprintf("%d:%d+%d", m, given[m], len(ids)-given[m]))
		given[m] = len(ids)
		said := only(m, ids)
		unsure := map[string]bool{
			"r2r": said.Score >= r.Threshold, "citer": said.Score < r.Threshold, "collm": said.Score > r.Threshold,
			"rstitch": said.Entropy > r.Threshold,
		}[r.Algorithm]
		if m == 0 && unsure {
			dropped, m = dropped+1, 1
			continue
		}
		ids = append(ids, said.Token)
		out += fmt.Sprintf("%d/%d ", said.Token, m)
		switch {
		case r.Algorithm == "me":
			m = draw(made, m, keyed.Route)
		case r.Algorithm != "rstitch" || !unsure:
			m = 0
		}
		made++
	}
	return fmt.Sprintf("%s(length, %d dropped)", out, dropped), rows
}

// stepped is what prompts give on the CPU, all in flight, and the rows of each as oracle writes them.
func stepped(t *testing.T, s *spec.System, prompts []Prompt) (answers []Answered, rows [][]string) {
	t.Helper()
	p, err := Prepare(s, Choice{Backend: cpu.Backend()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rows = make([][]string, len(prompts))
	y, err := p.Open(t.Context(), Run{Observe: func(_ int, _ core.Time, _ []core.Event, out *core.Actions) {
		for _, launch := range out.Launches {
			for _, r := range launch.Rows {
				rows[r.ID] = append(rows[r.ID], fmt.Sprintf("%d:%d+%d", launch.Model, r.Start, r.Fresh))
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	if answers, err = y.Answers(t.Context(), prompts, len(prompts), nil); err != nil {
		t.Fatal(err)
	}
	return answers, rows
}

// TestByDefinition: each algorithm on the device, with hand-offs, suffixes and dropped drafts, gives what its
// definition gives. A suffix, an anchor or a position that is off by one would make another text.
func TestByDefinition(t *testing.T) {
	const tokens = 10
	for algorithm, threshold := range map[string]float64{
		"r2r": 0.5, "citer": 0.5, "collm": 0.5, "rstitch": 0.91, "me": 0,
	} {
		t.Run(algorithm, func(t *testing.T) {
			s := pair(t, algorithm)
			s.Router.Threshold, s.Router.HasThreshold = threshold, algorithm != "me"
			prompts := promptsOf(3, tokens, 0)
			got, rows := stepped(t, s, prompts)
			made := map[int32]int{}
			for i, p := range prompts {
				want, wantRows := oracle(t, s, *p.Sampling.Seed, p.IDs, tokens)
				if line(got[i]) != want {
					t.Errorf("prompt %d:\ngot  %s\nwant %s", i, line(got[i]), want)
				}
				if diff := cmp.Diff(wantRows, rows[i]); diff != "" {
					t.Errorf("prompt %d: steps (-want +got):\n%s", i, diff)
				}
				for _, token := range got[i].Tokens {
					made[token.Model]++
				}
			}
			if len(made) != 2 {
				t.Errorf("tokens by model %v, want both", made)
			}
		})
	}
}

// TestAtThreshold: routers without weights say 0.5 to every token. At that threshold R2R routes, and CITER
// and Co-LLM do not; a hair beyond it the others do. By hand, for a prompt of 5 tokens and 3 of the answer.
func TestAtThreshold(t *testing.T) {
	never := []string{"0:0+5", "0:5+1", "0:6+1"}
	always := []string{"0:0+5", "1:0+5", "0:5+1", "1:5+1", "0:6+1", "1:6+1"}
	for _, c := range []struct {
		algorithm string
		threshold float64
		want      []string
	}{
		{"r2r", 0.5, always}, {"r2r", 0.5000001, never},
		{"citer", 0.5, never}, {"citer", 0.5000001, always},
		{"collm", 0.5, never}, {"collm", 0.4999999, always},
	} {
		s := pair(t, c.algorithm)
		s.Router.Threshold, s.Router.HasThreshold = c.threshold, true
		empty(t, filepath.Join(s.Router.Dir, "router.safetensors"))
		got, rows := stepped(t, s, promptsOf(1, 3, 0))
		if diff := cmp.Diff(c.want, rows[0]); diff != "" {
			t.Errorf("%s at %v: steps (-want +got):\n%s", c.algorithm, c.threshold, diff)
		}
		routed := int32(len(c.want) - 3)
		for i, token := range got[0].Tokens {
			if (token.Model == 1) != (routed == 3) {
				t.Errorf("%s at %v: token %d of model %d", c.algorithm, c.threshold, i, token.Model)
			}
		}
		if got[0].Leave.Dropped != routed || len(got[0].Tokens) != 3 {
			t.Errorf("%s at %v: %s, want %d dropped", c.algorithm, c.threshold, line(got[0]), routed)
		}
	}
}

// empty makes all numbers of a safetensors file 0.
func empty(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(raw[8+binary.LittleEndian.Uint64(raw):])
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPolicies: when models start, and in which chunks prompts are fed, changes no answer.
func TestPolicies(t *testing.T) {
	s, prompts := pair(t, "citer"), promptsOf(6, 12, 0.8)
	s.ContextMax = 128
	prompts[5].IDs = slices.Repeat([]int32{'x', 'y', 'z'}, 30) // more than a step may be fed
	var want []string
	for _, policy := range []spec.Policy{
		{Kind: "eager"}, {Kind: "step-sync"}, {Kind: "model-sync"},
		{Kind: "delayed", Table: [][]int{{1, 1}, {1, 2}, {1, 3}, {1, 4}}},
		{Kind: "delayed", Table: [][]int{{1, 1}, {2, 1}, {2, 2}, {3, 2}}},
	} {
		s.Policy, s.Budget = policy, 512
		if want != nil {
			s.Budget = 64
		}
		var got []string
		for _, a := range answers(t, s, cpu.Backend(), prompts, 4) {
			got = append(got, line(a))
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v (-eager +got):\n%s", policy, diff)
		}
	}
}
