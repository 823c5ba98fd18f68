package task

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// finalMark begins the last line of an answer.
const finalMark = "Answer: "

// Final returns what the last line of an answer's text that begins with "Answer:" gives, without blanks
// around it. ok is false without such a line.
func Final(text string) (final string, ok bool) {
	for line := range strings.Lines(text) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), strings.TrimSpace(finalMark)); found {
			final, ok = strings.TrimSpace(rest), true
		}
	}
	return final, ok
}

// Right reports whether an answer's text ends in the right final answer, exactly.
func (p *Problem) Right(text string) bool {
	final, ok := Final(text)
	return ok && final == p.Final
}

// Count is how many of some problems were answered rightly.
type Count struct {
	Problems int `json:"problems"`
	Correct  int `json:"correct"`
	Final    int `json:"final"` // answers that have a final line at all
}

// Accuracy is the share of right answers.
func (c Count) Accuracy() float64 { return float64(c.Correct) / float64(c.Problems) }

// Interval returns the 95 % confidence interval of the accuracy by the score method (Wilson, JASA 22, 1927).
func (c Count) Interval() (low, high float64) {
	const z = 1.959963984540054 // the 97.5 % point of the normal law
	n, p := float64(c.Problems), c.Accuracy()
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (middle-half)/(1+z*z/n)), min(1, (middle+half)/(1+z*z/n))
}

// Report counts the answers of one task, all and by level.
type Report struct {
	Task   string
	All    Count
	Levels [LevelMax]Count // level 1 is entry 0
}

// Score counts the answers of problems, a report a task in the order of Names. Every problem wants one
// answer, by id, and every answer a problem.
func Score(problems []Problem, answers map[string]string) ([]Report, error) {
	if len(problems) == 0 {
		return nil, errors.New("no problems, want at least one")
	}
	reports := map[string]*Report{}
	seen := map[string]bool{}
	for i := range problems {
		p := &problems[i]
		text, ok := answers[p.ID]
		switch {
		case seen[p.ID]:
			return nil, fmt.Errorf("problem %s is there twice", p.ID)
		case !ok:
			return nil, fmt.Errorf("problem %s has no answer, want one for each", p.ID)
		}
		seen[p.ID] = true
		r := reports[p.Task]
		if r == nil {
			r = &Report{Task: p.Task}
			reports[p.Task] = r
		}
		for _, count := range []*Count{&r.All, &r.Levels[p.Level-1]} {
			count.add(p, text)
		}
	}
	for id := range answers {
		if !seen[id] {
			return nil, fmt.Errorf("answer to %s, which is none of the problems", id)
		}
	}
	var ordered []Report
	for _, name := range Names() {
		if r := reports[name]; r != nil {
			ordered = append(ordered, *r)
		}
	}
	return ordered, nil
}

func (c *Count) add(p *Problem, text string) {
	c.Problems++
	if _, ok := Final(text); ok {
		c.Final++
	}
	if p.Right(text) {
		c.Correct++
	}
}

// ReadProblems reads problems, a line of JSON each; name is for errors.
func ReadProblems(name string, in io.Reader) ([]Problem, error) {
	var problems []Problem
	err := readLines(name, in, func(p Problem) error {
		if _, err := Find(p.Task); err != nil {
			return err
		}
		if p.Level < 1 || p.Level > LevelMax {
			return fmt.Errorf("level %d, want 1 to %d", p.Level, LevelMax)
		}
		if p.ID == "" || p.Final == "" {
			return errors.New("want id and final")
		}
		problems = append(problems, p)
		return nil
	})
	return problems, err
}

// ReadAnswers reads answers by id: each a line of JSON with id and text, or one of an array of such under
// "answers". name is for errors.
func ReadAnswers(name string, in io.Reader) (map[string]string, error) {
	type answer struct{ ID, Text *string }
	type entry struct {
		answer
		Answers []answer
	}
	answers := map[string]string{}
	err := readLines(name, in, func(e entry) error {
		if e.Answers == nil {
			e.Answers = []answer{e.answer}
		}
		for _, a := range e.Answers {
			if a.ID == nil || a.Text == nil {
				return errors.New("want id and text")
			}
			if _, twice := answers[*a.ID]; twice {
				return fmt.Errorf("a second answer to %s", *a.ID)
			}
			answers[*a.ID] = *a.Text
		}
		return nil
	})
	return answers, err
}

// readLines decodes values one after the other; errors name the value's number, from 1.
func readLines[T any](name string, in io.Reader, take func(T) error) error {
	decoder := json.NewDecoder(in)
	for number := 1; ; number++ {
		var of T
		err := decoder.Decode(&of)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = take(of)
		}
		if err != nil {
			return fmt.Errorf("%s: entry %d: %w", name, number, err)
		}
	}
}
