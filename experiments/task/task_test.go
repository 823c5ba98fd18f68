package task

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tokenrouter/core/keyed"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestFixed: the problems that results are given for never change. testdata was read by eye when it was made.
func TestFixed(t *testing.T) {
	for _, task := range tasks {
		name := "testdata/" + task.Name + "-test.jsonl"
		var got bytes.Buffer
		for _, p := range task.Fixed() {
			if err := p.Write(&got); err != nil {
				t.Fatal(err)
			}
		}
		if *update {
			if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s is not what the generator makes", name)
		}
	}
}

func make1000(t *testing.T, task *Task, split Split, seed uint64, level int) []Problem {
	t.Helper()
	problems := make([]Problem, 1000)
	for i := range problems {
		p, err := task.Problem(split, seed, uint64(i), level)
		if err != nil {
			t.Fatal(err)
		}
		problems[i] = p
	}
	return problems
}

// TestSteps works every line of arith out again, and the whole expression by itself.
func TestSteps(t *testing.T) {
	for level := 1; level <= LevelMax; level++ {
		for _, p := range make1000(t, tasks[0], Validation, 3, level) {
			lines := strings.Split(p.Answer, "\n")
			for _, line := range lines[:len(lines)-1] {
				left, right, found := strings.Cut(line, " = ")
				if want := strconv.Itoa(evaluate(t, left)); !found || right != want || want[0] == '-' {
					t.Fatalf("%s: %q, want %s", p.ID, line, want)
				}
			}
			want := strconv.Itoa(evaluate(t, expression(p.Prompt)))
			if p.Final != want || lines[len(lines)-1] != "Answer: "+want {
				t.Fatalf("%s: %s\n%s\nwant %s", p.ID, p.Prompt, p.Answer, want)
			}
		}
	}
}

// expression is what a prompt of arith asks for.
func expression(prompt string) string {
	for _, before := range []string{"Compute ", "What is ", "Work out "} {
		if rest, ok := strings.CutPrefix(prompt, before); ok {
			return rest[:len(rest)-1]
		}
	}
	panic("no known words in " + prompt)
}

// evaluate is an evaluator of sums, products and brackets that shares nothing with the generator.
func evaluate(t *testing.T, text string) int {
	t.Helper()
	rest := strings.ReplaceAll(text, " ", "")
	var sum func() int
	factor := func() int {
		if rest[0] == '(' {
			rest = rest[1:]
			inner := sum()
			rest = rest[1:]
			return inner
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(rest)
		}
		n, err := strconv.Atoi(rest[:end])
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		rest = rest[end:]
		return n
	}
	product := func() int {
		value := factor()
		for rest != "" && rest[0] == '*' {
			rest = rest[1:]
			value *= factor()
		}
		return value
	}
	sum = func() int {
		value := product()
		for rest != "" && (rest[0] == '+' || rest[0] == '-') {
			sign := rest[0]
			rest = rest[1:]
			if next := product(); sign == '+' {
				value += next
			} else {
				value -= next
			}
		}
		return value
	}
	value := sum()
	if rest != "" {
		t.Fatalf("%q: %q is left over", text, rest)
	}
	return value
}

// TestLettersSteps follows every step of symbols by its words.
func TestLettersSteps(t *testing.T) {
	for _, p := range make1000(t, tasks[1], Train, 3, 0) {
		lines := strings.Split(p.Answer, "\n")
		_, rest, _ := strings.Cut(p.Prompt, " ") // Letters: or Take
		mark := "."
		if strings.HasPrefix(p.Prompt, "Take ") {
			mark = " and do this"
		}
		start, _, _ := strings.Cut(rest, mark)
		from := strings.Split(start, " ")
		for _, line := range lines[:len(lines)-1] {
			order, to, _ := strings.Cut(line, ": ")
			if want := strings.Join(follow(t, order, from), " "); to != want || !strings.Contains(p.Prompt, order) {
				t.Fatalf("%s: %q, want %s", p.ID, line, want)
			}
			from = strings.Split(to, " ")
		}
		if p.Final != strings.Join(from, " ") || lines[len(lines)-1] != "Answer: "+p.Final {
			t.Fatalf("%s ends in %q, want %v", p.ID, p.Final, from)
		}
	}
}

func follow(t *testing.T, order string, letters []string) []string {
	t.Helper()
	var by int
	var a, b string
	out := slices.Clone(letters)
	if order == "reverse" {
		slices.Reverse(out)
	} else if order == "sort" {
		slices.Sort(out)
	} else if _, err := fmt.Sscanf(order, "rotate left %d", &by); err == nil {
		for i := range out {
			out[i] = letters[(i+by)%len(letters)]
		}
	} else if _, err := fmt.Sscanf(order, "advance %d", &by); err == nil {
		const alphabet = "abcdefghijklmnopqrstuvwxyz"
		for i, letter := range letters {
			out[i] = string((alphabet + alphabet)[strings.Index(alphabet, letter)+by])
		}
	} else if _, err := fmt.Sscanf(order, "exchange %1s and %1s", &a, &b); err == nil {
		for i, letter := range letters {
			if letter == a {
				out[i] = b
			} else if letter == b {
				out[i] = a
			}
		}
	} else {
		t.Fatalf("unknown step %q", order)
	}
	return out
}

// TestSplits: problems of one split are in no other, whatever the seed, and hardly any comes twice.
func TestSplits(t *testing.T) {
	for _, task := range tasks {
		in := map[string]Split{}
		repeated := 0
		for seed := range uint64(3) {
			for _, split := range Splits {
				for _, p := range make1000(t, task, split, seed, 0) {
					if other, ok := in[p.Prompt]; ok && other != split {
						t.Errorf("%s is in %s too", p.ID, other)
					} else if ok {
						repeated++
					}
					in[p.Prompt] = split
				}
			}
		}
		if repeated > 9 { // of 9000
			t.Errorf("%s: %d problems come twice, want nearly none", task.Name, repeated)
		}
	}
	for _, task := range tasks {
		share := map[Split]int{}
		for i := range uint64(16000) {
			d := dice{keyed.NewKey(5, i).Stream(0, 0, keyed.Custom)}
			share[splitOf(task.Name, task.draw(&d, 6).canonical)]++
		}
		// 1000 of 16000 expected, standard deviation 31.
		if share[Test] < 870 || share[Test] > 1130 || share[Validation] < 870 || share[Validation] > 1130 {
			t.Errorf("%s: %v, want about 14000, 1000, 1000", task.Name, share)
		}
	}
}

// TestWording: the same expression in other words is of the same split.
func TestWording(t *testing.T) {
	in := map[string]Split{}
	for _, split := range Splits {
		for seed := range uint64(2) {
			for _, p := range make1000(t, tasks[0], split, seed, 1) {
				text := expression(p.Prompt)
				if other, ok := in[text]; ok && other != split {
					t.Fatalf("%s is in %s and %s", text, split, other)
				}
				in[text] = split
			}
		}
	}
}

func TestRefused(t *testing.T) {
	const want = `task "arithm", want arith or symbols`
	if _, err := Find("arithm"); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := ParseSplit("dev"); err == nil || !strings.Contains(err.Error(), `"dev", want train`) {
		t.Errorf("got %v", err)
	}
	for _, level := range []int{-1, 7, 1 << 40} {
		_, err := tasks[0].Problem(Test, 1, 0, level)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("level %d of arith, want 1 to 6", level)) {
			t.Errorf("level %d: %v", level, err)
		}
	}
}
