// Package models_test asks the trained models and routers of this folder the fixed test problems, on the CPU
// device.
package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tokenrouter/exec/cpu"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/experiments/task"
)

// tokensMax is the longest answer, that of scores.json.
const tokensMax = 400

// load reads a system of the experiments.
func load(t *testing.T, name string) *spec.System {
	t.Helper()
	s, err := spec.LoadSystem(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testProblems are the fixed test problems of arith.
func testProblems(t *testing.T) []task.Problem {
	t.Helper()
	arith, err := task.Find("arith")
	if err != nil {
		t.Fatal(err)
	}
	return arith.Fixed()
}

// answers are a system's greedy answers to problems, so many in flight.
func answers(t *testing.T, s *spec.System, problems []task.Problem, inFlight int) []system.Answered {
	t.Helper()
	s.Concurrency = inFlight
	p, err := system.Prepare(s, system.Choice{Backend: cpu.Backend()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	encoder, err := p.Encoder(true)
	if err != nil {
		t.Fatal(err)
	}
	prompts := make([]system.Prompt, len(problems))
	for i := range problems {
		prompts[i].TokensMax = tokensMax
		if prompts[i].IDs, err = encoder.Text(problems[i].Prompt); err != nil {
			t.Fatal(err)
		}
		if prompts[i].Entry, err = p.Entry(prompts[i].IDs, nil); err != nil {
			t.Fatal(err)
		}
	}
	y, err := p.Open(t.Context(), system.Run{Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	out, err := y.Answers(t.Context(), prompts, inFlight, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// right counts the answers that are.
func right(problems []task.Problem, all []system.Answered) int {
	n := 0
	for i := range all {
		if problems[i].Right(all[i].Text()) {
			n++
		}
	}
	return n
}

// card is the line of scores.json, of PyTorch's greedy answers, over all levels of arith.
func card(t *testing.T, model string) (correct int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(model, "scores.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Task     string
		Level    int
		Problems int
		Correct  int
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Task == "arith" && r.Level == 0 && r.Problems == task.FixedCount {
			return r.Correct
		}
	}
	t.Fatalf("%s: no score of all %d problems of arith", model, task.FixedCount)
	return 0
}

// TestAccuracy: on all test problems the device is right as often as the model's card says, but for near-ties
// that bf16 decides either way; and the models are as far apart as experiments on routing want them
// (experiments/train).
func TestAccuracy(t *testing.T) {
	const apart = 8 // problems of 500: 1.6 %
	problems := testProblems(t)
	for _, c := range []struct {
		model       string
		least, most float64 // accuracy
	}{
		{"small", 0.3, 0.7},
		{"mid", 0.5, 0.95},
		{"large", 0.95, 1},
	} {
		t.Run(c.model, func(t *testing.T) {
			got := right(problems, answers(t, load(t, "arith-"+c.model+".toml"), problems, 16))
			want := card(t, "arith-"+c.model)
			accuracy := float64(got) / task.FixedCount
			if got < want-apart || got > want+apart || accuracy < c.least || accuracy > c.most {
				t.Errorf("%d of %d right, want %d within %d, and %v to %v", got, task.FixedCount, want, apart, c.least,
					c.most)
			}
		})
	}
}
