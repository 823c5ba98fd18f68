package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"tokenrouter/core/turnlog"
)

func newTrace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Replay, compare, view and convert turn logs",
		Long: `A turn log has everything that went into the scheduler and everything it decided, turn by turn:
it is the run. A spec with turn_log = true in its [output] writes one; .gz at the end of a name
says that it is packed.`,
		Example: `  tokenrouter trace replay turns.jsonl.gz
  tokenrouter trace diff a.jsonl b.jsonl
  tokenrouter trace perfetto turns.jsonl --out trace.json
  tokenrouter trace record turns.jsonl --out recorded.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misuse("no command %q, want replay, diff, perfetto or record", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return misuse("no command given, want replay, diff, perfetto or record")
		},
	}
	c.AddCommand(newTraceReplay(), newTraceDiff(), newTracePerfetto(), newTraceRecord())
	return c
}

func newTraceReplay() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "replay LOG",
		Short: "Hand a log's events to a new scheduler and compare every action",
		Long: `Build the scheduler that the log's header describes, hand it the logged events, and compare
every action with the logged one. Exit 1 at the first difference.`,
		Example: "  tokenrouter trace replay turns.jsonl\n  tokenrouter trace replay turns.jsonl --json",
		Args:    exactly(1, "a turn log"),
		RunE: func(c *cobra.Command, args []string) error {
			return replay(args[0], asJSON, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// replayJSON is what trace replay --json prints.
type replayJSON struct {
	Log        string `json:"log"`
	Turns      uint64 `json:"turns"` // that were equal
	Equal      bool   `json:"equal"`
	Difference string `json:"difference,omitempty"`
}

func replay(path string, asJSON bool, stdout io.Writer) error {
	log, err := openLog(path)
	if err != nil {
		return err
	}
	defer log.Close()
	turns, err := turnlog.Replay(log)
	var difference *turnlog.Difference
	if err != nil && !errors.As(err, &difference) {
		return badInput(err)
	}
	if asJSON {
		document := replayJSON{Log: path, Turns: turns, Equal: err == nil}
		if difference != nil {
			document.Difference = difference.Error()
		}
		if printed := printJSON(stdout, document); printed != nil {
			return printed
		}
		return err
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s: %d turns replayed, all actions are equal\n", path, turns)
	}
	return err
}

func newTraceDiff() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff LOG LOG",
		Short: "Find the first turn in which two logs differ",
		Long: `Compare two turn logs, times and results included, and show the first turn that differs. Exit 1
if one does.`,
		Example: `  tokenrouter trace diff simulated.jsonl measured.jsonl
  tokenrouter trace diff a.jsonl b.jsonl --json`,
		Args: exactly(2, "two turn logs"),
		RunE: func(c *cobra.Command, args []string) error {
			return diff(args[0], args[1], asJSON, c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return c
}

// diffJSON is what trace diff --json prints.
type diffJSON struct {
	Logs   []string `json:"logs"`
	Same   bool     `json:"same"`
	Report string   `json:"report"` // for a person to read
}

func diff(pathA, pathB string, asJSON bool, stdout io.Writer) error {
	a, err := openLog(pathA)
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := openLog(pathB)
	if err != nil {
		return err
	}
	defer b.Close()
	var report bytes.Buffer
	same, err := turnlog.Diff(&report, a, b)
	if err != nil {
		return badInput(err)
	}
	switch {
	case asJSON:
		err = printJSON(stdout, diffJSON{[]string{pathA, pathB}, same, report.String()})
	default:
		if same {
			fmt.Fprintln(&report, "all turns are the same")
		}
		_, err = stdout.Write(report.Bytes())
	}
	if err == nil && !same {
		err = fmt.Errorf("%s and %s differ", pathA, pathB)
	}
	return err
}

func newTracePerfetto() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "perfetto LOG",
		Short: "Turn a log into a trace for ui.perfetto.dev",
		Long: `Write the launches of every model, and what every request waited for, ran on and was handed to,
as a trace that ui.perfetto.dev and chrome://tracing open (Chrome's Trace Event Format).`,
		Example: `  tokenrouter trace perfetto turns.jsonl --out trace.json
  tokenrouter trace perfetto turns.jsonl | gzip > trace.json.gz`,
		Args: exactly(1, "a turn log"),
		RunE: func(c *cobra.Command, args []string) error {
			return toPerfetto(args[0], out, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	return c
}

func toPerfetto(path, out string, stdout, stderr io.Writer) error {
	log, err := openLog(path)
	if err != nil {
		return err
	}
	defer log.Close()
	err = writeWhole(out, stdout, func(w io.Writer) error { return convert(log, w) })
	if err == nil && out != "" {
		fmt.Fprintf(stderr, "wrote %s; open it at ui.perfetto.dev\n", out)
	}
	return err
}

// writeWhole lets write fill the file out, or stdout if out is empty. What turns out to be wrong half-way
// leaves no half a file under that name.
func writeWhole(out string, stdout io.Writer, write func(io.Writer) error) error {
	if out == "" {
		return write(stdout)
	}
	part := out + ".part"
	file, err := os.Create(part)
	if err != nil {
		return badInput(fmt.Errorf("--out = %q, want a file that can be written: %w", out, err))
	}
	err = errors.Join(write(file), file.Close())
	if err == nil {
		err = os.Rename(part, out)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

func convert(log *turnlog.Reader, w io.Writer) error {
	return badInput(turnlog.Perfetto(w, log))
}

func openLog(path string) (*turnlog.Reader, error) {
	if err := regularFile("turn log", path); err != nil {
		return nil, err
	}
	log, err := turnlog.Open(path)
	return log, badInput(err)
}

// regularFile says clearly what a path is if it is no file that can be read.
func regularFile(what, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return badInput(fmt.Errorf("%s %q does not exist", what, path))
	case err != nil:
		return badInput(fmt.Errorf("%s: %w", what, err))
	case info.IsDir():
		return badInput(fmt.Errorf("%s %q is a directory, want a file", what, path))
	}
	return nil
}
