package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/experiments/result"
	"tokenrouter/experiments/run"
	"tokenrouter/experiments/spec"
)

// runFlags are the flags of run as given.
type runFlags struct {
	out     string
	backend value[string]
	shard   value[shard]
	workers value[int]
	resume  bool
	merge   []string
	json    bool
}

// workersMax keeps a slip of the finger from starting a million goroutines.
const workersMax = 4096

func newRun() *cobra.Command {
	f := runFlags{
		backend: value[string]{kind: "name", parse: word(backends...)},
		shard:   value[shard]{of: shard{1, 1}, kind: "i/n", parse: parseShard},
		workers: value[int]{of: runtime.GOMAXPROCS(0), kind: "count", parse: integer(1, workersMax)},
	}
	c := &cobra.Command{
		Use:   "run SPEC.toml",
		Short: "Run an experiment and draw its figures",
		Long: `Run every point of an experiment's sweep under every seed, and write the resolved spec, the
environment, summary.csv, summary.json, requests.parquet and the figures to the results folder.
Same spec, same bytes, whatever the number of workers.

An interrupted run keeps the points that are finished; --resume goes on from there. --shard runs
one of several equal parts, and the part that completes the folder draws the figures. Parts from
other machines are taken in with --merge.

A spec with a [system] is run by real models, on the backend that it names: step times are measured
first, then every point, one after another, with what the chain and the simulator say of it beside.
--backend sim simulates it only. With [[routing]], systems answer problems of a task, whose final
answers are scored; answers.jsonl has them all. The backend cuda is in programs that make cuda has
built.`,
		Example: `  tokenrouter run experiments/threshold.toml
  tokenrouter run experiments/schedules.toml --json
  tokenrouter run experiments/threshold.toml --out results/mine --workers 4
  tokenrouter run experiments/threshold.toml --shard 1/2 --out first
  tokenrouter run experiments/threshold.toml --merge second --out first
  tokenrouter run experiments/threshold.toml --resume
  tokenrouter run experiments/hardware.toml
  tokenrouter run experiments/pareto-short.toml`,
		Args:              exactly(1, "a SPEC.toml"),
		ValidArgsFunction: specFiles,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.out, "out", "", "results folder (default: experiments/results/NAME/RUN)")
	flags.Var(&f.backend, "backend", "sim, cpu or cuda (default: as the spec says)")
	flags.Var(&f.shard, "shard", "run only part i of n, such as 1/2")
	flags.BoolVar(&f.resume, "resume", false, "go on with what an interrupted run has left")
	flags.StringArrayVar(&f.merge, "merge", nil, "take in the finished points of another folder, and go on")
	flags.Var(&f.workers, "workers", "points simulated at a time (default: the number of processors)")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	completeFlag(c, "backend", cobra.FixedCompletions(built, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "out", folders)
	completeFlag(c, "merge", folders)
	completeNumbers(c)
	return c
}

// check refuses what can be refused before anything is read or written.
func (f *runFlags) check() error {
	if f.backend.set && !slices.Contains(built, f.backend.of) {
		return badInput(fmt.Errorf("--backend = %q is %s", f.backend.of, notBuilt(f.backend.of)))
	}
	if f.out == "" {
		return nil
	}
	if info, err := os.Stat(f.out); err == nil && !info.IsDir() {
		return badInput(fmt.Errorf("--out = %q is a file, want a folder", f.out))
	}
	if strings.TrimSpace(f.out) == "" {
		return misuse("--out = %q, want a folder", f.out)
	}
	return nil
}

// run runs the spec and prints what came of it.
func (f *runFlags) run(ctx context.Context, path string, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	s, err := loadSpec(path)
	if err != nil {
		return err
	}
	o, err := f.options(s, stderr)
	if err != nil {
		return err
	}
	if err := f.takeIn(s); err != nil {
		return err
	}
	bar := newProgress(stderr, s.Name)
	bar.begin(len(s.Points) * s.Replicates / f.shard.of.count)
	o.Progress = bar.show
	report, err := run.Run(ctx, s, o)
	bar.end()
	switch {
	case errors.Is(err, context.Canceled) && report != nil:
		return fmt.Errorf("interrupted; %d of %d jobs are finished and kept in %s; to go on:\n  %s",
			report.Done, report.Total, report.Dir, f.again(path))
	case err != nil && f.otherRun(s):
		return badInput(err)
	case err != nil:
		return err
	}
	if report.Summary != nil {
		printWarnings(stderr, report.Summary)
	}
	if f.json {
		return printReport(stdout, s.Name, report)
	}
	return f.tell(stdout, report)
}

// options says how the spec is run: by the models of its system, unless it has none or the flag says sim.
func (f *runFlags) options(s *spec.Spec, stderr io.Writer) (run.Options, error) {
	o := run.Options{
		Out: f.out, Workers: f.workers.of, Shard: f.shard.of.index, Shards: f.shard.of.count, Resume: f.resume,
		Doing: func(what string) { fmt.Fprintln(stderr, what) },
	}
	if !f.backend.set && s.Hardware != nil {
		f.backend.of = s.Hardware.Backend
	}
	switch {
	case f.backend.of == "" || f.backend.of == "sim":
		f.backend.of = ""
		if s.Answered {
			return o, badInput(fmt.Errorf("%s: only real models answer problems: want --backend %s", s.File,
				strings.Join(built[1:], " or ")))
		}
		if s.Hardware != nil && s.Hardware.Calibrate {
			return o, badInput(fmt.Errorf("%s: system.calibrate = true measures step times on hardware: to simulate"+
				" only, give a file system.calibration", s.File))
		}
		return o, nil
	case !slices.Contains(built, f.backend.of):
		return o, badInput(fmt.Errorf("%s: system.backend = %q is %s", s.File, f.backend.of,
			notBuilt(f.backend.of)))
	case s.Hardware == nil:
		return o, badInput(fmt.Errorf("--backend = %q, and %s has no [system]: want system.file", f.backend.of,
			s.File))
	case f.shard.set && o.Shards > 1:
		return o, misuse("--shard = %q: measured points all run on one machine, one at a time", f.shard.text)
	case f.workers.set && o.Workers > 1:
		return o, misuse("--workers = %q: measured points run one at a time", f.workers.text)
	}
	o.Workers = 1
	var err error
	o.Backend, err = backendNamed(f.backend.of)
	return o, err
}

// again is the command line that goes on with an interrupted run.
func (f *runFlags) again(path string) string {
	words := []string{"tokenrouter run", path, "--resume"}
	if f.out != "" {
		words = append(words, "--out "+f.out)
	}
	if f.backend.set {
		words = append(words, "--backend "+f.backend.text)
	}
	if f.shard.set {
		words = append(words, "--shard "+f.shard.text)
	}
	return strings.Join(words, " ")
}

// takeIn merges other folders into that of the run, which then goes on.
func (f *runFlags) takeIn(s *spec.Spec) error {
	if len(f.merge) == 0 {
		return nil
	}
	f.resume = true
	return badInput(run.Merge(f.dir(s), f.merge...))
}

// dir is the results folder.
func (f *runFlags) dir(s *spec.Spec) string {
	if f.out != "" {
		return f.out
	}
	return run.DefaultDir(s, f.backend.of)
}

// otherRun reports whether the folder is not one that this run may use: it holds another spec's results, or
// there is nothing to resume.
func (f *runFlags) otherRun(s *spec.Spec) bool {
	old, err := os.ReadFile(filepath.Join(f.dir(s), result.SpecFile))
	if err != nil {
		return f.resume && errors.Is(err, os.ErrNotExist)
	}
	return string(old) != string(s.Resolved)
}

// reportJSON is the contract of run --json. The numbers of jobs are there only if some are missing.
type reportJSON struct {
	Experiment string          `json:"experiment"`
	Out        string          `json:"out"`
	Rows       json.RawMessage `json:"rows"`
	JobsDone   int             `json:"jobs_done,omitempty"`
	Jobs       int             `json:"jobs,omitempty"`
}

func printReport(w io.Writer, experiment string, report *run.Report) error {
	document := reportJSON{Experiment: experiment, Out: report.Dir, Rows: json.RawMessage("[]")}
	if report.Summary == nil {
		document.JobsDone, document.Jobs = report.Done, report.Total
		return printJSON(w, document)
	}
	rows, err := report.Summary.RowsJSON()
	if err != nil {
		return err
	}
	document.Rows = rows
	return printJSON(w, document)
}

// tell prints the report for people.
func (f *runFlags) tell(w io.Writer, report *run.Report) error {
	if report.Summary == nil {
		_, err := fmt.Fprintf(w, "shard %d/%d is done: %d of %d jobs are finished in %s; summaries and figures "+
			"come with the last shard\n", f.shard.of.index, f.shard.of.count, report.Done, report.Total, report.Dir)
		return err
	}
	if err := printSummary(w, report.Summary); err != nil {
		return err
	}
	for _, c := range compare(report.Summary) {
		if err := c.printErrors(w); err != nil {
			return err
		}
	}
	if err := printPublished(w, report.Summary); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nresults: %s\n", report.Dir)
	for _, figure := range report.Figures {
		fmt.Fprintf(w, "figure:  %s\n", figure)
	}
	return nil
}
