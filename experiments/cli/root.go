package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tokenrouter/experiments/spec"
)

// Exit codes of Main.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitMisuse = 2
)

// Main runs the command line args, the program's own name left out, and returns the exit code. An end of ctx
// interrupts long work, which keeps what it has.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	if command == nil {
		command = root
	}
	fmt.Fprintf(stderr, "%s: %v\n", command.CommandPath(), err)
	var misuse misuseError
	if !errors.As(err, &misuse) {
		return ExitFailed
	}
	if misuse.help {
		fmt.Fprintf(stderr, "Run '%s --help' for flags and examples.\n", command.CommandPath())
	}
	return ExitMisuse
}

// misuseError is an error of the one who typed the command line or wrote the file it names.
type misuseError struct {
	error
	help bool // the command's help would help
}

func (e misuseError) Unwrap() error { return e.error }

// misuse makes an error of the command line itself.
func misuse(format string, args ...any) error {
	return misuseError{fmt.Errorf(format, args...), true}
}

// badInput marks err as caused by what was given in a file or value; it keeps its text. A nil err stays nil.
func badInput(err error) error {
	if err == nil {
		return nil
	}
	return misuseError{err, false}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "tokenrouter",
		Short: "What-if simulation and exact throughput of token-level routing",
		Long: `tokenrouter answers what-if questions about systems in which a request changes models after any
token: easy tokens from a small model, hard ones from a large one. It predicts throughput
exactly, simulates whole workloads under several scheduling policies, draws the figures, and runs
real models.`,
		Example: `  tokenrouter predict -n 8 --p 0.35 --latency 6.0ms,27.9ms
  tokenrouter run experiments/threshold.toml
  tokenrouter run experiments/schedules.toml --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return noCommand(args[0])
		},
		RunE: func(*cobra.Command, []string) error {
			return misuse("no command given, want one of %s", strings.Join(commandNames(), ", "))
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	root.AddCommand(commands()...)
	return root
}

func commands() []*cobra.Command {
	return []*cobra.Command{
		newRun(), newPredict(), newPlot(), newCompare(), newTrace(), newModel(), newRouter(),
		newGenerate(), newServe(), newLoad(), newCalibrate(), newTask(), newVersion(), newCompletion(),
	}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Show a command's flags and examples",
		Example: "  tokenrouter help predict",

		ValidArgsFunction: cobra.FixedCompletions(commandNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(c *cobra.Command, args []string) error {
			target, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noCommand(strings.Join(args, " "))
			}
			target.InitDefaultHelpFlag()
			return target.Help()
		},
	}
}

func noCommand(given string) error {
	if near := spec.Nearest(given, commandNames()); near != "" {
		return misuse("no command %q, did you mean %s?", given, near)
	}
	return misuse("no command %q, want one of %s", given, strings.Join(commandNames(), ", "))
}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.Name())
	}
	return names
}

// flagError says which flag was wrong, what it was given and what was wanted.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return misuse("%s = %q, %w", dashed(value.GetFlag()), value.GetValue(), value.Unwrap())
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		given := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			given = "-" + unknown.GetSpecifiedName()
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		if near := spec.Nearest(given, known); near != "" {
			return misuse("no flag %s, did you mean %s?", given, near)
		}
		return misuse("no flag %s, want one of %s", given, strings.Join(known, ", "))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		return misuse("%s has no value, want %s", dashed(missing.GetFlag()), missing.GetFlag().Value.Type())
	}
	return misuse("%w", err)
}

// dashed is a flag's name as it is typed.
func dashed(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// exactly returns a rule for the number of arguments of a command; what names them in an error.
func exactly(n int, what string) cobra.PositionalArgs {
	return between(n, n, what)
}

func between(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least && len(args) == 0:
			return misuse("no argument, want %s", what)
		case len(args) < least:
			return misuse("%s (%s), want %s", count(len(args), "argument"), strings.Join(args, " "), what)
		case len(args) > most && most == 0:
			return misuse("argument %q, want none", args[0])
		case len(args) > most:
			return misuse("%s (%s), want %s", count(len(args), "argument"), strings.Join(args, " "), what)
		}
		return nil
	}
}
