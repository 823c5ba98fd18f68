package task

import (
	"math"
	"strings"
	"testing"
)

func TestFinal(t *testing.T) {
	cases := []struct{ name, text, final string }{
		{"as made", "1 + 2 = 3\nAnswer: 3", "3"},
		{"blanks around", "  Answer:   3 \r\n\n", "3"},
		{"the last counts", "Answer: 3\nAnswer: 4\nand so on", "4"},
		{"nothing after it", "Answer:", ""},
		{"letters", "Answer: a b c\n", "a b c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if final, ok := Final(c.text); final != c.final || !ok {
				t.Errorf("got %q, %v, want %q", final, ok, c.final)
			}
		})
	}
	for _, text := range []string{"", "3", "The Answer: 3", "answer: 3", "Answer 3"} {
		if final, ok := Final(text); ok {
			t.Errorf("%q has %q, want none", text, final)
		}
	}
}

func TestRight(t *testing.T) {
	p := Problem{Final: "12"}
	for text, want := range map[string]bool{
		"Answer: 12": true, "Answer: 12\n": true, "Answer: 012": false, "Answer: 12.": false, "Answer: 1 2": false,
		"12": false, "Answer:": false,
	} {
		if p.Right(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

func TestScore(t *testing.T) {
	problems := []Problem{
		{ID: "s1", Task: "symbols", Level: 2, Final: "a b"},
		{ID: "a1", Task: "arith", Level: 1, Final: "3"}, {ID: "a2", Task: "arith", Level: 1, Final: "4"},
		{ID: "a3", Task: "arith", Level: 6, Final: "5"},
	}
	answers, err := ReadAnswers("answers", strings.NewReader(`{"id": "a1", "text": "Answer: 3", "tokens": 4}
		{"id": "a2", "text": "Answer: 3"}
		{"answers": [{"id": "a3", "text": "5"}], "shares": [1]} {"id": "s1", "text": "x\nAnswer: a b"}`))
	if err != nil {
		t.Fatal(err)
	}
	reports, err := Score(problems, answers)
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 2 || reports[0].Task != "arith" || reports[1].Task != "symbols" {
		t.Fatalf("got %+v", reports)
	}
	arith := reports[0]
	levels := [LevelMax]Count{0: {2, 1, 2}, 5: {1, 0, 0}}
	if arith.All != (Count{3, 1, 2}) || arith.Levels != levels || reports[1].All != (Count{1, 1, 1}) {
		t.Errorf("got %+v", reports)
	}
}

func TestScoreRefuses(t *testing.T) {
	one := []Problem{{ID: "a", Task: "arith", Level: 1, Final: "3"}}
	cases := []struct {
		name     string
		problems []Problem
		answers  map[string]string
		want     string
	}{
		{"no problem", nil, nil, "no problems"},
		{"no answer", one, nil, "problem a has no answer"},
		{"stray answer", one, map[string]string{"a": "", "b": ""}, "answer to b"},
		{"twice", append(one, one...), map[string]string{"a": ""}, "a is there twice"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Score(c.problems, c.answers)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"id": "a"`:  "f: entry 1: unexpected EOF",
		`{"id": "a"}`: "f: entry 1: want id and text",
		`{"id": "a", "text": ""} {"id": "a", "text": ""}`: "f: entry 2: a second answer to a",
	} {
		if _, err := ReadAnswers("f", strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("answers %q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"id": "a", "task": "arth", "level": 1, "final": "1"}`:  `f: entry 1: task "arth"`,
		`{"id": "a", "task": "arith", "level": 7, "final": "1"}`: "f: entry 1: level 7",
		`{"id": "a", "task": "arith", "level": 1}`:               "want id and final",
	} {
		_, err := ReadProblems("f", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("problems %q: %v, want %q", text, err, want)
		}
	}
}

// TestInterval: 81 of 263 gives 0.2553 to 0.3662 (Newcombe, Statistics in Medicine 17, 1998, table I,
// method 3).
func TestInterval(t *testing.T) {
	low, high := Count{Problems: 263, Correct: 81}.Interval()
	if math.Abs(low-0.2553) > 5e-5 || math.Abs(high-0.3662) > 5e-5 {
		t.Errorf("got %.4f to %.4f", low, high)
	}
	if low, high := (Count{Problems: 20, Correct: 0}).Interval(); low != 0 || math.Abs(high-0.1611) > 5e-5 {
		t.Errorf("0 of 20: got %.4f to %.4f, want 0 to 0.1611", low, high) // the same table
	}
}
