package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
	"tokenrouter/experiments/spec"
)

// small is the shape of the tests' models: 1 layer of 64.
const small = "tiny,layers=1,hidden=64,heads=2,head_dim=32,intermediate=64"

// folder makes a model folder of a shape.
func folder(t testing.TB, name, shape string, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	c, err := model.ParseShape(shape)
	if err != nil {
		t.Fatal(err)
	}
	if err := model.Make(context.Background(), dir, c, seed, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// pair is a system of two small models under an algorithm.
func pair(t testing.TB, algorithm string) *spec.System {
	t.Helper()
	s := spec.NewSystem(spec.Folder(folder(t, "slm", small, 1)), spec.Folder(folder(t, "llm", small, 2)))
	s.Router.Algorithm, s.Concurrency, s.Queue, s.ContextMax = algorithm, 4, 4, 64
	switch algorithm {
	case "r2r", "citer", "collm":
		a := map[string]router.Algorithm{"r2r": router.R2R, "citer": router.CITER, "collm": router.CoLLM}[algorithm]
		shape := router.PublishedShape(a, 64)
		if a == router.R2R {
			shape.Top, shape.Width, shape.Blocks, shape.Expanded = 10, 32, 1, 64
		}
		s.Router.Dir = filepath.Join(t.TempDir(), "router")
		if err := router.Make(s.Router.Dir, shape, 3); err != nil {
			t.Fatal(err)
		}
	case "rstitch":
		s.Router.Threshold, s.Router.HasThreshold = 0.9, true
	}
	return s
}

// prepare makes a plan on the fake backend.
func prepare(t testing.TB, s *spec.System) *Plan {
	t.Helper()
	if faults := s.Faults(); faults != nil {
		t.Fatal(faults)
	}
	p, err := Prepare(s, Choice{Backend: nativetest.Fake()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestPlan: the fake's models have 64*(2*128 + 3*64) + 320*64 = 49,152 weights and 256 KV bytes a token, and
// take 1,280 bytes for work.
func TestPlan(t *testing.T) {
	const weights, work, kv = 2 * 49152, 4 * 320, 4 * 1 * 2 * 32
	for _, c := range []struct {
		name          string
		change        func(*spec.System)
		context, page int
		pages         int
	}{
		// As many as the requests can use: 4 contexts of 4 pages.
		{"room for all", func(*spec.System) {}, 64, 16, 16},
		{"larger pages", func(s *spec.System) { s.PageTokens = 32 }, 64, 32, 8},
		// The default context is 4,096, which the models have; 256 pages each for 4.
		{"default context", func(s *spec.System) { s.ContextMax = 0 }, 4096, 16, 1024},
		// The largest T with 2 W + T * 2 c <= budget, in whole pages.
		{"small memory", func(s *spec.System) { s.MemoryBytes = 2*(weights+work) + 2*kv*16*7 + 1000 }, 64, 16, 7},
	} {
		s := pair(t, "rstitch")
		c.change(s)
		p := prepare(t, s)
		if p.Core.ContextMax != c.context || p.Core.PageTokens != c.page || p.Core.Models[0].Pages != c.pages ||
			p.Core.Models[1].Pages != c.pages {
			t.Errorf("%s: context %d, pages of %d, %d and %d of them, want %d, %d, %d", c.name,
				p.Core.ContextMax, p.Core.PageTokens, p.Core.Models[0].Pages, p.Core.Models[1].Pages, c.context,
				c.page, c.pages)
		}
		want := []int{256, 258} // <|endoftext|>, <|im_end|> of the byte tokenizer
		if diff := cmp.Diff(want, p.EOS); diff != "" || p.samplable != 259 {
			t.Errorf("%s: end tokens (-want +got), %d samplable, want 259:\n%s", c.name, p.samplable, diff)
		}
	}
}

// TestRefused: what does not go together is refused before a weight is read.
func TestRefused(t *testing.T) {
	for _, c := range slices.Concat(modelRefusals, routerRefusals, memoryRefusals) {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(t)
			if faults := s.Faults(); faults != nil {
				t.Fatal(faults)
			}
			p, err := Prepare(s, Choice{Backend: nativetest.Fake()})
			if err == nil || !strings.Contains(err.Error(), c.wanted) || p != nil {
				t.Errorf("error %v, want %q in it", err, c.wanted)
			}
		})
	}
}

// refusal is a system that must be refused.
type refusal struct {
	name   string
	make   func(t *testing.T) *spec.System
	wanted string // in the error
}

var (
	modelRefusals = []refusal{
		{"no model in the folder", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			s.Models[1] = spec.Folder(t.TempDir())
			return s
		}, "config.json: no such file or directory"},
		{"other vocabulary", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			replace(t, s.Models[1].Dir, `"<|im_end|>"`, `"<|im_fin|>"`)
			return s
		}, `models "slm" and "llm" have different vocabularies: token 258 is "<|im_end|>" and "<|im_fin|>"`},
		{"larger vocabulary", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			replace(t, s.Models[1].Dir, "\n  ],", `, {"id": 259, "content": "<think>", "single_word": false,
				"lstrip": false, "rstrip": false, "normalized": false, "special": false}],`)
			return s
		}, `models "slm" and "llm" have different vocabularies: token 259 is none and "<think>"`},
		{"not special", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			replace(t, s.Models[1].Dir, `"normalized": false, "special": true}`,
				`"normalized": false, "special": false}`)
			return s
		}, `token 256 ("<|endoftext|>") is special in one of them only`},
		{"narrow embedding", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			shape, err := model.ParseShape(small + ",vocab=200")
			if err != nil {
				t.Fatal(err)
			}
			s.Models[1] = spec.SystemModel{Name: "narrow", Shape: &shape}
			return s
		}, `model "narrow" knows 200 tokens, and the tokenizer of "slm" has ids up to 258`},
	}
	routerRefusals = []refusal{
		{"router of another model", func(t *testing.T) *spec.System {
			s := pair(t, "citer")
			s.Models[0] = spec.Folder(folder(t, "wide", "tiny,layers=1", 1))
			return s
		}, `reads hidden states of 64 numbers, and those of model "wide" have 256`},
		{"router of another algorithm", func(t *testing.T) *spec.System {
			s := pair(t, "citer")
			s.Router.Algorithm = "collm"
			return s
		}, "is for the algorithm citer, want one for collm"},
		{"no threshold", func(t *testing.T) *spec.System {
			s := pair(t, "collm")
			text := `{"algorithm": "collm", "hidden_size": 64}`
			if err := os.WriteFile(filepath.Join(s.Router.Dir, "router.json"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return s
		}, "has no threshold of its own: one must be given"},
		{"no router in the folder", func(t *testing.T) *spec.System {
			s := pair(t, "collm")
			s.Router.Dir = t.TempDir()
			return s
		}, "router.json"},
	}
	memoryRefusals = []refusal{
		{"long context", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			s.ContextMax = 5000
			return s
		}, `a context of 5000 tokens, and model "slm" can have 4096`},
		{"no memory", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			s.MemoryBytes = 1000
			return s
		}, "memory for models [slm llm]: 1000 bytes, want at least 199168 (weights)"},
		{"memory for less than a context", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			s.MemoryBytes = 199168 + 2*256*16*3
			return s
		}, `has room for 48 tokens beside the weights of "slm" and "llm", want at least one context of 64 tokens`},
		{"int8 on a device that has none", func(t *testing.T) *spec.System {
			s := pair(t, "me")
			s.Models[1].Int8 = true
			return s
		}, `model "llm": fake: not supported by the device: int8`},
	}
)

// replace changes a model's tokenizer.json once.
func replace(t *testing.T, dir, old, with string) {
	t.Helper()
	path := filepath.Join(dir, "tokenizer.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), old, with, 1)
	if changed == string(text) {
		t.Fatalf("no %s in %s", old, path)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRouterDecides: without an algorithm and a threshold, those of the router folder count.
func TestRouterDecides(t *testing.T) {
	s := pair(t, "citer")
	s.Router.Algorithm = ""
	p := prepare(t, s)
	want := spec.Router{Algorithm: "citer", Threshold: 0.5, HasThreshold: true, Dir: s.Router.Dir}
	if diff := cmp.Diff(want, p.Spec.Router); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// answers runs prompts of the system on a backend.
func answers(
	t testing.TB, s *spec.System, backend native.Backend, prompts []Prompt, inFlight int,
) []Answered {
	t.Helper()
	p, err := Prepare(s, Choice{Backend: backend, Scorer: byLength{}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	prompts = slices.Clone(prompts)
	for i := range prompts {
		if prompts[i].Entry, err = p.Entry(prompts[i].IDs, nil); err != nil {
			t.Fatal(err)
		}
	}
	progress := int64(0)
	y, err := p.Open(t.Context(), Run{
		Failed: func(err error) { t.Error(err) },
		Progress: func(done, total int64) {
			if done <= progress || done > total {
				t.Errorf("progress %d of %d after %d", done, total, progress)
			}
			progress = done
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	ended := 0
	out, err := y.Answers(t.Context(), prompts, inFlight, func(n int) {
		if ended++; n != ended {
			t.Errorf("%d have ended, want %d", n, ended)
		}
	})
	if err != nil || ended != len(prompts) {
		t.Fatalf("%d of %d ended, %v", ended, len(prompts), err)
	}
	return out
}

// promptsOf are n prompts, with seeds of their own.
func promptsOf(n, tokens int, temperature float64) []Prompt {
	prompts := make([]Prompt, n)
	for i := range prompts {
		seed := uint64(100 + i)
		for j := range 5 + 3*i {
			prompts[i].IDs = append(prompts[i].IDs, int32('a'+(7*i+j)%26))
		}
		prompts[i].TokensMax = tokens
		prompts[i].Sampling = exec.Sampling{Temperature: temperature, Seed: &seed, IgnoreEOS: true}
	}
	return prompts
}

// line is an answer as text.
func line(a Answered) string {
	var b strings.Builder
	for _, t := range a.Tokens {
		fmt.Fprintf(&b, "%d/%d ", t.Token, t.Model)
	}
	return fmt.Sprintf("%s(%s, %d dropped)", b.String(), a.Finish(), a.Leave.Dropped)
}

// TestAloneAndTogether: under every algorithm, an answer is the same alone and among others, one to a model
// that both have tokens of.
func TestAloneAndTogether(t *testing.T) {
	for _, algorithm := range spec.SystemAlgorithms {
		for _, temperature := range []float64{0, 0.8} {
			t.Run(fmt.Sprintf("%s at %v", algorithm, temperature), func(t *testing.T) {
				s, prompts := pair(t, algorithm), promptsOf(6, 20, temperature)
				if algorithm == "rstitch" {
					s.Router.Threshold = 0.814 // the middle of the fake's entropies
				}
				together := answers(t, s, nativetest.Fake(), prompts, 4)
				made := map[int32]int{}
				for i, prompt := range prompts {
					alone := answers(t, s, nativetest.Fake(), []Prompt{prompt}, 1)
					if line(alone[0]) != line(together[i]) || len(alone[0].Tokens) != 20 {
						t.Errorf("prompt %d: alone %s\ntogether %s", i, line(alone[0]), line(together[i]))
					}
					for _, token := range alone[0].Tokens {
						made[token.Model]++
					}
				}
				if both := algorithm != "small" && algorithm != "large"; (len(made) == 2) != both {
					t.Errorf("tokens by model %v", made)
				}
			})
		}
	}
}

// TestInterrupted: an end keeps what has come.
func TestInterrupted(t *testing.T) {
	p := prepare(t, pair(t, "me"))
	y, err := p.Open(t.Context(), Run{})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	ctx, stop := context.WithCancel(t.Context())
	prompts := promptsOf(4, 50, 0)
	got, err := y.Answers(ctx, prompts, 2, func(ended int) {
		if ended == 2 {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	var finishes []string
	for _, a := range got {
		if a.Answer == nil {
			finishes = append(finishes, "none")
		} else {
			finishes = append(finishes, a.Finish())
		}
	}
	if !slices.Equal(finishes[:2], []string{"length", "length"}) || slices.Contains(finishes[2:], "error") {
		t.Errorf("finished by %q", finishes)
	}
}

// TestKeyed: with an algorithm of one's own, verdicts come from draws, and no router is read.
func TestKeyed(t *testing.T) {
	s := pair(t, "me")
	s.Router = spec.Router{}
	for i := range s.Models {
		shape, err := model.ParseShape(small)
		if err != nil {
			t.Fatal(err)
		}
		s.Models[i] = spec.SystemModel{Name: s.Models[i].Name, Shape: &shape, Seed: uint64(i)}
	}
	p, err := Prepare(s, Choice{Backend: nativetest.Fake(), Algorithm: always{}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Tokenizer != nil || p.Core.Algorithm != (always{}) || p.samplable != 320 {
		t.Errorf("tokenizer %v, algorithm %v, %d samplable", p.Tokenizer, p.Core.Algorithm, p.samplable)
	}
}

// always routes every token of model 0 to model 1.
type always struct{}

func (always) Route(v *core.Visit, _ *core.Result) int               { return int(1 - v.Model) }
func (always) Send(v *core.Visit, _ *core.Result, _ int) (keep bool) { return v.Model == 1 }

func TestProcessors(t *testing.T) {
	for _, c := range []struct {
		list string
		n    int
		want [][]int
	}{
		{"0-1", 2, [][]int{{0}, {1}}},
		{"0", 2, nil},
		{"4-6,9", 2, [][]int{{4, 5}, {6, 9}}},
		{"0-2", 2, [][]int{{0}, {1, 2}}},
		{"0-2", 1, [][]int{{0, 1, 2}}},
		{"2-1", 1, nil},
		{"", 1, nil},
		{"x", 1, nil},
	} {
		if diff := cmp.Diff(c.want, parts(parseRanges(c.list), c.n)); diff != "" {
			t.Errorf("%q for %d (-want +got):\n%s", c.list, c.n, diff)
		}
	}
	// Of a machine with more processors than a device takes, each model has the first of its part.
	if got := parts(parseRanges("0-599"), 2); len(got[0]) != 256 || len(got[1]) != 256 || got[1][0] != 300 {
		t.Errorf("%d and %d processors, want 256 each, the second from 300 on", len(got[0]), len(got[1]))
	}
	if len(allowedProcessors()) == 0 {
		t.Error("no processor is allowed, want at least one")
	}
}
