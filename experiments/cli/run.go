package cli

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
)

// backends are the worlds that a run may take place in, in the order of the help; only built ones can be used.
var backends = []string{"sim", "cpu", "cuda", "http"}

// runFlags are the flags of run as given.
type runFlags struct {
	out     string
	backend value[string]
	shard   value[shard]
	workers value[int]
	resume  bool
	json    bool
}

// workersMax keeps a slip of the finger from starting a million goroutines.
const workersMax = 4096

func newRun() *cobra.Command {
	f := runFlags{
		backend: value[string]{of: "sim", text: "sim", kind: "name", parse: word(backends...)},
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
one of several equal parts, on several machines if you like; the one that completes the folder
draws the figures.

Only the simulator (--backend sim) is built into this version; cpu, cuda and http are refused.`,
		Example: `  tokenrouter run experiments/threshold.toml
  tokenrouter run experiments/schedules.toml --json
  tokenrouter run experiments/threshold.toml --out results/mine --workers 4
  tokenrouter run experiments/threshold.toml --shard 1/2
  tokenrouter run experiments/threshold.toml --resume`,
		Args: exactly(1, "a SPEC.toml"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, args[0])
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.out, "out", "", "results folder (default: experiments/results/NAME/RUN)")
	flags.Var(&f.backend, "backend", "sim; cpu, cuda and http are not built in yet")
	flags.Var(&f.shard, "shard", "run only part i of n, such as 1/2")
	flags.BoolVar(&f.resume, "resume", false, "go on with what an interrupted run has left")
	flags.Var(&f.workers, "workers", "points simulated at a time (default: the number of processors)")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

// check refuses what can be refused before anything is read or written.
func (f *runFlags) check() error {
	if f.backend.of != "sim" {
		return badInput(fmt.Errorf("--backend = %q is not built in, want sim", f.backend.of))
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
