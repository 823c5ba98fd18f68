package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tokenrouter/exec/native"
	"tokenrouter/experiments/calibrate"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/sim/latency"
)

// calibrateFlags are the flags of calibrate as given.
type calibrateFlags struct {
	backend      value[string]
	out          string
	rounds       value[int]
	steps        value[int]
	p            value[float64]
	contextMax   value[int]
	neighbourMax value[int]
}

func newCalibrate() *cobra.Command {
	f := calibrateFlags{
		backend:      backendValue(),
		rounds:       value[int]{of: 5, text: "5", kind: "count", parse: integer(1, 1000)},
		steps:        value[int]{of: 3, text: "3", kind: "count", parse: integer(1, 1000)},
		p:            value[float64]{of: 0.35, text: "0.35", kind: "probability", parse: probability},
		contextMax:   value[int]{of: 2048, text: "2048", kind: "tokens", parse: integer(16, contextMost)},
		neighbourMax: value[int]{of: 4, text: "4", kind: "count", parse: integer(1, 1<<10)},
	}
	c := &cobra.Command{
		Use:   "calibrate CONFIG.toml",
		Short: "Measure step times of a system's models on this machine",
		Long: `Load the models of a system and time their steps over batch size, fresh tokens and context, each
model alone and while the others run. Alone they take turns, as in a run: the first model makes 1/p
steps in a row, for between them its weights stay in caches. FILE gets the fitted step times, their
errors, where they come from and the range in which they hold; a spec takes it in with
calibration = "FILE". Every single step goes into a CSV file beside it. After an interrupt the fits
are those of the rounds that are whole.`,
		Example: `  tokenrouter calibrate experiments/hardware-pair.toml --out calibration.toml`,
		Args:    exactly(1, "the file of a system"),

		ValidArgsFunction: specFiles,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := spec.LoadSystem(args[0])
			if err != nil {
				return badInput(err)
			}
			if f.out == "" {
				return misuse("--out: want the file to write")
			}
			return f.run(c.Context(), args[0], s, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.out, "out", "", "file to write")
	addBackend(c, &f.backend)
	flags.Var(&f.rounds, "rounds", "how often all shapes are measured")
	flags.Var(&f.steps, "steps", "steps of each shape in a round, after one that does not count")
	flags.Var(&f.p, "p", "probability that a request leaves the first model after a step")
	flags.Var(&f.contextMax, "context-max", "longest context to measure")
	flags.Var(&f.neighbourMax, "beside", "batch size of the other models while they run beside the measured one")
	return c
}

// run measures, and writes what it has when ctx ends.
func (f *calibrateFlags) run(ctx context.Context, file string, s *spec.System, stdout, stderr io.Writer,
) error {
	backend, err := backendOf(native.Backend{}, named(s, &f.backend))
	if err != nil {
		return err
	}
	plan, err := system.Prepare(s, system.Choice{Backend: backend})
	if err != nil {
		return badInput(err)
	}
	defer plan.Close()
	if plan.Remote() {
		return badInput(fmt.Errorf("%s: step times are measured of models that run here, want none with an engine",
			file))
	}
	opened, err := plan.Open(ctx, system.Run{})
	if err != nil {
		return err
	}
	defer opened.Close()
	fmt.Fprintln(stderr, plan.Device())
	bar := newProgress(stderr, "steps")
	defer bar.end()
	p := f.plan(plan, bar)
	samples, err := calibrate.Measure(ctx, opened.Models, p)
	bar.end()
	if err != nil && ctx.Err() == nil {
		return err
	}
	of, perRound := calibrate.Here(file, plan.Card()), p.PerRound(len(opened.Models))
	fits, err := writeCalibration(f.out, of, samples, perRound)
	if err != nil {
		return err
	}
	printFits(stdout, fits)
	if graphs := opened.Graphs(); graphs != "" {
		fmt.Fprintln(stdout, graphs)
	}
	fmt.Fprintf(stdout, "\n%d steps in %s, fits in %s\n", len(samples), calibrate.SamplesPath(f.out), f.out)
	if ctx.Err() != nil {
		return errors.New("interrupted; the fits are of the rounds that are whole")
	}
	return nil
}

// writeCalibration writes all samples, and the fits of whole rounds: others lack shapes, or a model. Without
// one there are no fits, which is an error.
func writeCalibration(path string, of calibrate.Origin, samples []calibrate.Sample, perRound int,
) ([]calibrate.ModelFit, error) {
	whole := len(samples) - len(samples)%perRound
	if whole > 0 {
		fits, err := calibrate.FitModels(samples[:whole])
		if err != nil {
			return nil, err
		}
		return fits, calibrate.Write(path, of, fits, samples)
	}
	if len(samples) == 0 {
		return nil, errors.New("interrupted; nothing is measured")
	}
	kept := calibrate.SamplesPath(path)
	if err := result.WriteFile(kept, calibrate.CSV(samples)); err != nil {
		return nil, err
	}
	steps := count(len(samples), "step")
	return nil, fmt.Errorf("interrupted in the first round: %s in %s, no fits", steps, kept)
}

// plan is the grid that the system has room for.
func (f *calibrateFlags) plan(p *system.Plan, bar *progress) calibrate.Plan {
	bounds := calibrate.BoundsOf(p.Core)
	bounds.Context = min(bounds.Context, f.contextMax.of)
	return calibrate.Plan{
		Shapes: calibrate.Grid(bounds), Rounds: f.rounds.of, Steps: f.steps.of,
		Row: calibrate.RowOf(f.p.of),
		Neighbour: calibrate.Shape{
			Rows: min(f.neighbourMax.of, bounds.Rows), Fresh: 1, Context: min(128, bounds.Context-1),
		},
		Done: bar.show,
	}
}

// printFits shows the law of each model and how good it is.
func printFits(w io.Writer, fits []calibrate.ModelFit) {
	for _, f := range fits {
		a := f.Alone
		fmt.Fprintf(w, "%s\n  step = %.4g ms + %.4g us a row + %.4g us a fresh token + %.4g us a block of %d"+
			" after the first + %.4g ns a token in KV\n", f.Model, a.BaseNs/1e6, a.PerRowNs/1e3, a.PerFreshNs/1e3,
			a.PerBlockNs/1e3, cmp.Or(a.BlockTokens, latency.BlockTokens), a.PerContextNs)
		fmt.Fprintf(w, "  off by %.1f %% in the mean, %.1f %% at most, over means of %d shapes; valid for %v\n",
			100*a.MeanRelative, 100*a.MaxRelative, a.Count, a.Valid)
		both := ""
		if f.Both {
			both = "; the law is of the mean of both"
		}
		fmt.Fprintf(w, "  beside the other models: %.3f times as long (%.3f to %.3f%s)\n", f.Beside, f.BesideMin,
			f.BesideMax, both)
	}
}
