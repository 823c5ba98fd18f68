package system

import (
	"fmt"
	"strings"
	"testing"

	"tokenrouter/exec/cpu"
	"tokenrouter/exec/native/nativetest"
	"tokenrouter/experiments/spec"
)

// byLength is a router of prompts: those of promptsOf, which are 5, 8, 11, ... tokens long, score 0, 0.2,
// 0.4, ...
type byLength struct{}

func (byLength) Score(ids []int32) (float64, error)                 { return float64(len(ids)-5) / 15, nil }
func (byLength) Threshold(_ string, share float64) (float64, error) { return 1 - share, nil }

// texts are the tokens of answers.
func texts(all []Answered) []string {
	var out []string
	for _, a := range all {
		var b strings.Builder
		for _, t := range a.Tokens {
			fmt.Fprint(&b, t.Token, " ")
		}
		out = append(out, b.String())
	}
	return out
}

// TestQuery: requests from the threshold on are answered by the large model alone, the others by the small
// one alone, token by token; at thresholds beyond all scores, all are.
func TestQuery(t *testing.T) {
	prompts := promptsOf(6, 12, 0)
	run := func(algorithm string, threshold float64) []Answered {
		s := pair(t, algorithm)
		s.Router.Threshold, s.Router.HasThreshold = threshold, algorithm == "query"
		return answers(t, s, cpu.Backend(), prompts, 4)
	}
	small, large := texts(run("small", 0)), texts(run("large", 0))
	for _, c := range []struct {
		threshold float64
		large     int // the last so many prompts
	}{{2, 0}, {0.8, 2}, {0.81, 1}, {0, 6}} {
		got := run("query", c.threshold)
		for i, text := range texts(got) {
			want, model := small[i], int32(0)
			if i >= len(prompts)-c.large {
				want, model = large[i], 1
			}
			if text != want || got[i].Tokens[0].Model != model || got[i].Leave.Dropped != 0 {
				t.Errorf("at %v, prompt %d: %s by model %d, %d dropped; want %s by %d", c.threshold, i, text,
					got[i].Tokens[0].Model, got[i].Leave.Dropped, want, model)
			}
		}
	}
}

// TestAgain: another loop over the same loaded models gives the same answers, with fewer live requests and
// another rule too.
func TestAgain(t *testing.T) {
	s, prompts := pair(t, "rstitch"), promptsOf(5, 12, 0)
	p, err := Prepare(s, Choice{Backend: nativetest.Fake()})
	if err != nil {
		t.Fatal(err)
	}
	first, err := p.Open(t.Context(), Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for _, c := range []struct {
		name   string
		router spec.Router
		like   string
	}{
		{"never", spec.Router{Algorithm: "rstitch", Threshold: 1}, "small"},
		{"always", spec.Router{Algorithm: "rstitch", Threshold: -1}, "large"},
	} {
		config := p.Core
		if config.Algorithm, err = p.Rule(c.router); err != nil {
			t.Fatal(err)
		}
		config.LiveMax = 2
		y, err := first.Again(config, Run{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := y.Answers(t.Context(), prompts, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		y.Close()
		want := texts(answers(t, pair(t, c.like), nativetest.Fake(), prompts, 1))
		for i, text := range texts(got) {
			if text != want[i] {
				t.Errorf("%s, prompt %d: %s, want %s", c.name, i, text, want[i])
			}
		}
	}
}

// TestQueryFolder: a router folder scores for the system; it is refused beside another small model.
func TestQueryFolder(t *testing.T) {
	const folders = "../../exec/model/query/testdata/"
	first := spec.Folder(folders + "small")
	large := first
	large.Name = "large"
	s := spec.NewSystem(first, large)
	s.Router = spec.Router{Algorithm: "query", Dir: folders + "mf"}
	p := &Plan{Spec: *s} // the folder's tokenizer is none
	if err := p.openRouter(nil); err != nil {
		t.Fatal(err)
	}
	threshold, err := p.Scorer().Threshold("arith", 0.5)
	if err != nil || !(threshold > 0 && threshold < 1) || p.Spec.Router.Threshold != 0.5 {
		t.Errorf("threshold of a half: %v, %v; of the system: %v, want 0.5", threshold, err,
			p.Spec.Router.Threshold)
	}
	ids := []int32{5, 6, 7}
	score, err := p.Scorer().Score(ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		threshold float64
		want      int
	}{{score, 1}, {score + 1e-9, 0}, {0, 1}, {2, 0}} {
		p.Spec.Router.Threshold = c.threshold
		if got, err := p.Entry(ids, nil); err != nil || got != c.want {
			t.Errorf("score %v at %v: model %d, %v; want %d", score, c.threshold, got, err, c.want)
		}
		p.Spec.Router.Threshold = 1 - c.threshold // a request's own counts
		if got, err := p.Entry(ids, &c.threshold); err != nil || got != c.want {
			t.Errorf("score %v at its own %v: model %d, %v; want %d", score, c.threshold, got, err, c.want)
		}
	}
	s.Models[0] = spec.Folder(folder(t, "slm", small, 1))
	if _, err := Prepare(s, Choice{Backend: nativetest.Fake()}); err == nil ||
		!strings.Contains(err.Error(), "mf") {
		t.Errorf("beside another small model: error %v, want the router refused", err)
	}
}
