package task

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"tokenrouter/core/keyed"
)

// LevelMax is the hardest level of every task; the easiest is 1.
const LevelMax = 6

// The problems that results are given for are the first FixedCount of the test split with seed FixedSeed.
const (
	FixedSeed  = 1
	FixedCount = 500
)

// Split says what problems are for.
type Split string

// The splits. No problem is in two of them.
const (
	Train      Split = "train"
	Validation Split = "validation"
	Test       Split = "test"
)

// Splits are all splits, the largest first.
var Splits = []Split{Train, Validation, Test}

// Problem is one question with its right answer.
type Problem struct {
	ID     string `json:"id"` // task/split/seed/index
	Task   string `json:"task"`
	Level  int    `json:"level"`
	Prompt string `json:"prompt"`
	Answer string `json:"answer"` // worked steps and the final line
	Final  string `json:"final"`  // what stands after "Answer: "
}

// Task is a family of problems.
type Task struct {
	// Name is what the command line and results call the task.
	Name string
	draw func(d *dice, level int) draft
}

// draft is a problem without a name.
type draft struct {
	canonical             string // the problem itself, whatever its wording
	prompt, steps, answer string
}

var tasks = []*Task{{"arith", arith}, {"symbols", symbols}}

// Names lists the tasks.
func Names() []string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.Name)
	}
	return names
}

// Find returns the task of a name.
func Find(name string) (*Task, error) {
	for _, t := range tasks {
		if t.Name == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("task %q, want %s", name, strings.Join(Names(), " or "))
}

// ParseSplit returns the split of a name.
func ParseSplit(name string) (Split, error) {
	for _, s := range Splits {
		if string(s) == name {
			return s, nil
		}
	}
	return "", fmt.Errorf("split %q, want train, validation or test", name)
}

// Problem makes problem index of a split and seed. Level 0 stands for 1 + index mod LevelMax; any other
// level above LevelMax or below 0 is an error.
func (t *Task) Problem(split Split, seed, index uint64, level int) (Problem, error) {
	if level < 0 || level > LevelMax {
		return Problem{}, fmt.Errorf("level %d of %s, want 1 to %d, or 0 for all in turn", level, t.Name, LevelMax)
	}
	if level == 0 {
		level = 1 + int(index%LevelMax)
	}
	key := keyed.NewKey(keyed.Derive(seed, keyed.Text(t.Name), keyed.Text(string(split))), index)
	for attempt := uint32(0); ; attempt++ {
		d := dice{key.Stream(attempt, uint32(level), keyed.Custom)}
		made := t.draw(&d, level)
		if splitOf(t.Name, made.canonical) != split {
			continue
		}
		return Problem{
			ID: fmt.Sprintf("%s/%s/%d/%d", t.Name, split, seed, index), Task: t.Name, Level: level,
			Prompt: made.prompt, Answer: made.steps + finalMark + made.answer, Final: made.answer,
		}, nil
	}
}

// Fixed returns the problems that results are given for.
func (t *Task) Fixed() []Problem {
	problems := make([]Problem, FixedCount)
	for i := range problems {
		p, err := t.Problem(Test, FixedSeed, uint64(i), 0)
		if err != nil {
			panic(err)
		}
		problems[i] = p
	}
	return problems
}

// Write writes a problem as a line of JSON.
func (p *Problem) Write(w io.Writer) error { return json.NewEncoder(w).Encode(p) }

// splitSeed names the division into splits; another one would be another data set.
const splitSeed = 0

// splitOf says which split a problem belongs to.
func splitOf(task, canonical string) Split {
	switch keyed.Derive(splitSeed, keyed.Text(task), keyed.Text(canonical)) % 16 {
	case 0:
		return Test
	case 1:
		return Validation
	default:
		return Train
	}
}

// dice are the draws of one attempt at one problem.
type dice struct{ stream keyed.Stream }

// from returns a whole number from least to most.
func (d *dice) from(least, most int) int {
	return least + int(keyed.Below(d.stream.Uint64(), uint64(most-least+1)))
}

// number returns a number of so many digits.
func (d *dice) number(digits int) int {
	least := 1
	for range digits - 1 {
		least *= 10
	}
	return d.from(least, 10*least-1)
}

// pick returns one of all.
func pick[T any](d *dice, all ...T) T { return all[d.from(0, len(all)-1)] }
