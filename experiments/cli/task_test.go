package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tokenrouter/experiments/task"
)

// TestTaskMake: by itself the command writes the problems that results are given for.
func TestTaskMake(t *testing.T) {
	for _, name := range task.Names() {
		want := readText(t, "../task/testdata/"+name+"-test.jsonl")
		if mustRun(t, "task", "make", name) != want {
			t.Errorf("%s: standard output is not the fixed problems", name)
		}
		out := filepath.Join(t.TempDir(), "made.jsonl")
		printed := mustRun(t, "task", "make", name, "--count", "20", "--first", "480", "--out", out)
		if printed != "" {
			t.Errorf("%s: prints %q beside the file", name, printed)
		}
		if got := readText(t, out); got == "" || !strings.HasSuffix(want, got) {
			t.Errorf("%s: 20 from 480 are not the last of 500:\n%s", name, got)
		}
	}
	p := decodeLine[task.Problem](t, mustRun(t, "task", "make", "arith", "--split", "train", "--count", "1",
		"--seed", "18446744073709551615", "--level", "6"))
	if p.ID != "arith/train/18446744073709551615/0" || p.Level != 6 {
		t.Errorf("got %+v", p)
	}
}

func decodeLine[T any](t *testing.T, line string) (of T) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), &of); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	return of
}

// TestTaskScore: of the first 12 problems of arith, 2 of each level, those of level 6 are answered wrongly
// and one of level 1 has no final line.
func TestTaskScore(t *testing.T) {
	dir := t.TempDir()
	problems, answers := filepath.Join(dir, "problems.jsonl"), filepath.Join(dir, "answers.jsonl")
	mustRun(t, "task", "make", "arith", "--count", "12", "--out", problems)
	var lines bytes.Buffer
	for i, line := range strings.Split(strings.TrimSpace(readText(t, problems)), "\n") {
		p := decodeLine[task.Problem](t, line)
		text := p.Answer
		switch {
		case p.Level == 6:
			text += "0"
		case i == 0:
			text = p.Final
		}
		if err := json.NewEncoder(&lines).Encode(map[string]any{"id": p.ID, "text": text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(answers, lines.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	// 9 of 12: 0.4677 to 0.9111 by the formula of Wilson, worked by hand.
	want := `task   level  problems  correct  accuracy    95 % interval
arith  all          12        9    75.0 %   46.8 to 91.1 %
arith  1             2        1    50.0 %    9.5 to 90.5 %
arith  2             2        2   100.0 %  34.2 to 100.0 %
arith  3             2        2   100.0 %  34.2 to 100.0 %
arith  4             2        2   100.0 %  34.2 to 100.0 %
arith  5             2        2   100.0 %  34.2 to 100.0 %
arith  6             2        0     0.0 %    0.0 to 65.8 %
`
	if got := mustRun(t, "task", "score", problems, answers); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var score scoreJSON
	decode(t, mustRun(t, "task", "score", problems, answers, "--json"), &score)
	if len(score.Rows) != 7 || score.Rows[0].Count != (task.Count{Problems: 12, Correct: 9, Final: 11}) ||
		score.Rows[6].Level != 6 || score.Rows[6].Accuracy != 0 {
		t.Errorf("got %+v", score)
	}
}

func TestTaskRefusals(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one.jsonl", mustRun(t, "task", "make", "arith", "--count", "1"))
	none := write("none.jsonl", "")
	broken := write("broken.jsonl", "{\"id\": 3}\n")
	refuse(t, []refusal{
		{"no command", []string{"task"}, []string{"want make or score"}},
		{"unknown command", []string{"task", "mak"}, []string{`no command "mak"`}},
		{"unknown task", []string{"task", "make", "algebra"}, []string{`task "algebra", want arith or symbols`}},
		{"unknown level", []string{"task", "make", "arith", "--level", "7"}, []string{"--level", `"7"`, "0 to 6"}},
		{"unknown split", []string{"task", "make", "arith", "--split", "dev"},
			[]string{`split "dev"`, "validation"}},
		{"no problem", []string{"task", "make", "arith", "--count", "0"}, []string{"--count", "from 1"}},
		{"negative seed", []string{"task", "make", "arith", "--seed", "-1"}, []string{"--seed", "from 0"}},
		{"no folder", []string{"task", "make", "arith", "--out", filepath.Join(dir, "no", "x")}, []string{"no/x"}},
		{"no answers", []string{"task", "score", one, none}, []string{"problem arith/test/1/0 has no answer"}},
		{"no problems", []string{"task", "score", none, none}, []string{"no problems"}},
		{"broken answers", []string{"task", "score", one, broken}, []string{broken + ": entry 1"}},
		{"no file", []string{"task", "score", one, filepath.Join(dir, "gone")}, []string{"gone"}},
	})
}
