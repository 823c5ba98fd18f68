package system

import (
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/cuda/emu"
	"tokenrouter/exec"
	"tokenrouter/exec/cpu"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/experiments/spec"
)

const trained = "../models/"

// emulated are pairs of the trained small model and what routes some of its tokens to a large one.
func emulated(t *testing.T) map[string]*spec.System {
	t.Helper()
	shape, err := model.ParseShape("tiny,layers=2,hidden=64,heads=2,kv_heads=1,head_dim=32,intermediate=128," +
		"vocab=384")
	if err != nil {
		t.Fatal(err)
	}
	random := spec.NewSystem(spec.Folder(trained+"arith-small"),
		spec.SystemModel{Name: "large", Shape: &shape, Seed: 9})
	network := router.PublishedShape(router.R2R, 192)
	network.Top, network.Width, network.Blocks, network.Expanded = 10, 32, 1, 64
	random.Router = spec.Router{Algorithm: "r2r", Dir: filepath.Join(t.TempDir(), "router")}
	if err := router.Make(random.Router.Dir, network, 3); err != nil {
		t.Fatal(err)
	}
	pair := spec.NewSystem(spec.Folder(trained+"arith-small"), spec.Folder(trained+"arith-large"))
	pair.Router = spec.Router{Algorithm: "r2r", Dir: trained + "arith-r2r"}
	return map[string]*spec.System{"random large": random, "trained pair": pair}
}

// TestEmulatedCard: the whole executor over the emulated card, with cuBLASLt's stand-in for prompts, with
// graphs and without, gives what it gives over the processor: two models, a router network, hand-offs, three
// requests at a time, the likeliest tokens.
func TestEmulatedCard(t *testing.T) {
	for name, s := range emulated(t) {
		t.Run(name, func(t *testing.T) {
			s.Concurrency, s.Queue, s.ContextMax = 3, 3, 128
			s.GraphBatches, s.GraphTokens = []int{1, 2, 4}, []int{1, 2, 4, 8, 16}
			prompts := asked(t, s)
			onProcessor := *s
			onProcessor.GraphBatches, onProcessor.GraphTokens = nil, nil
			onProcessor.Kernels = "plain" // the same bits on every machine
			want := answers(t, &onProcessor, cpu.Backend(), prompts, 3)
			made := map[int32]int{}
			for _, a := range want {
				for _, token := range a.Tokens {
					made[token.Model]++
				}
			}
			if made[0] == 0 || made[1] == 0 {
				t.Errorf("tokens by model %v, want some of both", made)
			}
			for _, kernels := range []string{"graphs", "eager"} {
				s.Kernels = kernels
				for i, got := range answers(t, s, emu.Backend(), prompts, 3) {
					if line(got) != line(want[i]) {
						t.Errorf("%s, prompt %d:\n got %s\nwant %s", kernels, i, line(got), line(want[i]))
					}
				}
			}
		})
	}
}

// asked are problems as the models of s know them.
func asked(t *testing.T, s *spec.System) []Prompt {
	t.Helper()
	p, err := Prepare(s, Choice{Backend: emu.Backend()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e, err := p.Encoder(true)
	if err != nil {
		t.Fatal(err)
	}
	var prompts []Prompt
	for _, text := range []string{"Compute 49 * 7 + 25 * 4 - 70 * 5.", "Compute 3 + 4.",
		"Compute 12 * 12 - 8."} {
		ids, err := e.Text(text)
		if err != nil {
			t.Fatal(err)
		}
		prompts = append(prompts, Prompt{IDs: ids, TokensMax: 12, Sampling: exec.Sampling{}})
	}
	return prompts
}

// TestCardPlan: what a card can not do, or only a card can, is refused before a weight is read.
func TestCardPlan(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*spec.System)
		wanted string // in the error; empty: none
	}{
		{"as it is", func(*spec.System) {}, ""},
		{"parts of the card", func(s *spec.System) { s.Models[0].Threads, s.Models[1].Threads = 2, 2 }, ""},
		{"too large parts", func(s *spec.System) { s.Models[0].Threads, s.Models[1].Threads = 2, 4 },
			"6 multiprocessors of their own (threads), and emulated on the processor has 4"},
		{"processors", func(s *spec.System) { s.Models[0].Processors, s.Models[1].Processors = []int{0}, []int{1} },
			"processors are of backend cpu"},
		{"int8", func(s *spec.System) { s.Models[1].Int8 = true }, "this device keeps bf16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := pair(t, "me")
			c.change(s)
			p, err := Prepare(s, Choice{Backend: emu.Backend()})
			if (err == nil) != (c.wanted == "") || err != nil && !strings.Contains(err.Error(), c.wanted) {
				t.Fatalf("error %v, want %q in it", err, c.wanted)
			}
			if err != nil {
				return
			}
			defer p.Close()
			if !strings.HasPrefix(p.Device(), "cuda: emulated on the processor, graphs, cuBLASLt 13.0.0; ") {
				t.Errorf("device %q", p.Device())
			}
			y, err := p.Open(t.Context(), Run{})
			if err != nil {
				t.Fatal(err)
			}
			defer y.Close()
			if want := "graphs: slm 4 in "; !strings.HasPrefix(y.Graphs(), want) { // of 1, 2, 3 and 4 requests
				t.Errorf("graphs %q, want %q", y.Graphs(), want)
			}
		})
	}
	s := pair(t, "me")
	s.GraphBatches = []int{1}
	_, err := Prepare(s, Choice{Backend: cpu.Backend()})
	if err == nil || !strings.Contains(err.Error(), "has no graphs") {
		t.Errorf("graphs on the processor: error %v", err)
	}
}
