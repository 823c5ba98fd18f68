package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/task"
)

func newTask() *cobra.Command {
	c := &cobra.Command{
		Use:   "task",
		Short: "Make problems with known answers, and score answers",
		Long: `Problems in plain text with worked steps, for training models and measuring them: arith (expressions
of whole numbers) and symbols (letters that are moved and replaced). Levels 1 to 6 become harder.`,
		Example: `  tokenrouter task make arith --split test --count 500
  tokenrouter task score problems.jsonl answers.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("no command %q, want make or score", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return misuse("no command given, want make or score")
		},
	}
	c.AddCommand(newTaskMake(), newTaskScore())
	return c
}

// taskMakeFlags say which problems are wanted.
type taskMakeFlags struct {
	split        value[task.Split]
	count, level value[int]
	seed, first  value[uint64]
	out          string
}

// taskCountMax only keeps a slip of the finger from filling a disk.
const taskCountMax = 100_000_000

func newTaskMake() *cobra.Command {
	number := func(of uint64) value[uint64] {
		return value[uint64]{of: of, text: strconv.FormatUint(of, 10), kind: "number", parse: seedNumber}
	}
	f := taskMakeFlags{
		split: value[task.Split]{of: task.Test, text: string(task.Test), kind: "name", parse: task.ParseSplit},
		count: value[int]{of: task.FixedCount, text: strconv.Itoa(task.FixedCount), kind: "count",
			parse: integer(1, taskCountMax)},
		level: value[int]{text: "0", kind: "number", parse: integer(0, task.LevelMax)},
		seed:  number(task.FixedSeed),
		first: number(0),
	}
	c := &cobra.Command{
		Use:   "make TASK",
		Short: "Write problems with their worked answers",
		Long: `Write problems as lines of JSON: id, task, level, prompt, answer (with worked steps), final. Each is
named by task, split, seed and index: the same wherever and with whatever else it is made. No problem is
in two splits, whatever the seeds. By itself the command writes the 500 test problems that results
are given for.`,
		Example: `  tokenrouter task make arith --out arith-test.jsonl
  tokenrouter task make symbols --split train --count 100000 --seed 7 --out symbols-train.jsonl
  tokenrouter task make arith --split validation --level 6 --first 1000 --count 50`,
		Args:              exactly(1, "a task"),
		ValidArgsFunction: cobra.FixedCompletions(task.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := task.Find(args[0])
			if err != nil {
				return misuse("%w", err)
			}
			return f.write(c.Context(), t, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.Var(&f.split, "split", "train, validation or test")
	flags.Var(&f.count, "count", "how many")
	flags.Var(&f.seed, "seed", "of the problems, a whole number from 0")
	flags.Var(&f.first, "first", "index of the first")
	flags.Var(&f.level, "level", "1 to 6; 0: all in turn")
	flags.StringVar(&f.out, "out", "", "file to write (default: standard output)")
	completeFlag(c, "split", cobra.FixedCompletions([]string{"train", "validation", "test"},
		cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "out", cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	completeNumbers(c)
	return c
}

// write makes the problems and writes them; a file that is not whole is taken away.
func (f *taskMakeFlags) write(ctx context.Context, t *task.Task, stdout, stderr io.Writer) (err error) {
	if f.out == "" {
		return f.writeTo(ctx, t, stdout, stderr)
	}
	file, err := os.Create(f.out)
	if err != nil {
		return badInput(err)
	}
	if err := errors.Join(f.writeTo(ctx, t, file, stderr), file.Close()); err != nil {
		return errors.Join(err, os.Remove(f.out))
	}
	return nil
}

func (f *taskMakeFlags) writeTo(ctx context.Context, t *task.Task, to, stderr io.Writer) error {
	bar := newProgress(stderr, "problems")
	defer bar.end()
	out := bufio.NewWriter(to)
	for i := range f.count.of {
		if i%1000 == 0 {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			bar.show(i, f.count.of)
		}
		p, err := t.Problem(f.split.of, f.seed.of, f.first.of+uint64(i), f.level.of)
		if err != nil {
			return badInput(err)
		}
		if err := p.Write(out); err != nil {
			return err
		}
	}
	return out.Flush()
}

func newTaskScore() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "score PROBLEMS.jsonl ANSWERS.jsonl",
		Short: "Count right answers, by task and level",
		Long: `Compare the last line "Answer: ..." of each answer with the problem's own, exactly. An answer is a
line of JSON with id and text, or one of an array of such under "answers", as generate --json prints it;
other keys are passed over. Every problem wants one answer, and every answer a problem. The intervals are
of 95 % (Wilson).`,
		Example:           "  tokenrouter task score arith-test.jsonl answers.jsonl --json",
		Args:              exactly(2, "a file of problems and one of answers"),
		ValidArgsFunction: jsonlFiles,
		RunE: func(c *cobra.Command, args []string) error {
			reports, err := scoreFiles(args[0], args[1])
			if err != nil {
				return badInput(err)
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), scoreOf(reports))
			}
			return printScore(c.OutOrStdout(), scoreOf(reports))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

func jsonlFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
}

// scoreFiles reads both files and scores.
func scoreFiles(problemsPath, answersPath string) ([]task.Report, error) {
	var problems []task.Problem
	var answers map[string]string
	err := readFile("problems", problemsPath, func(in io.Reader) (err error) {
		problems, err = task.ReadProblems(problemsPath, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = readFile("answers", answersPath, func(in io.Reader) (err error) {
		answers, err = task.ReadAnswers(answersPath, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return task.Score(problems, answers)
}

// readFile opens a file that holds what.
func readFile(what, path string, read func(io.Reader) error) error {
	if err := regularFile(what, path); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return read(file)
}

// scoreRow is a row of task score: a task's level, or all of its levels (0).
type scoreRow struct {
	Task  string `json:"task"`
	Level int    `json:"level"`
	task.Count
	Accuracy float64 `json:"accuracy"`
	Low      float64 `json:"accuracy_low"` // of the 95 % interval
	High     float64 `json:"accuracy_high"`
}

// scoreJSON is what task score --json prints.
type scoreJSON struct {
	Rows []scoreRow `json:"rows"`
}

func scoreOf(reports []task.Report) scoreJSON {
	var s scoreJSON
	add := func(name string, level int, c task.Count) {
		if c.Problems == 0 {
			return
		}
		low, high := c.Interval()
		s.Rows = append(s.Rows, scoreRow{name, level, c, c.Accuracy(), low, high})
	}
	for _, r := range reports {
		add(r.Task, 0, r.All)
		for i, c := range r.Levels {
			add(r.Task, i+1, c)
		}
	}
	return s
}

func printScore(w io.Writer, s scoreJSON) error {
	var t table
	t.titles("task", "level", "problems", "correct", "accuracy", "95 % interval")
	for _, r := range s.Rows {
		level := "all"
		if r.Level > 0 {
			level = strconv.Itoa(r.Level)
		}
		t.row(r.Task, level, strconv.Itoa(r.Problems), strconv.Itoa(r.Correct),
			fmt.Sprintf("%.1f %%", 100*r.Accuracy), fmt.Sprintf("%.1f to %.1f %%", 100*r.Low, 100*r.High))
	}
	return t.write(w)
}
