package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"tokenrouter/core/chain"
)

const predictLong = `Compute the exact steady throughput of delayed batching for every feasible set of batch
thresholds, and the best set (TokenRouter, arXiv 2610.12242, appendix D). A model starts a batch
once as many requests wait for it as its threshold says; a set is feasible if sum(threshold - 1)
is below the number of requests in flight.

The system comes from SPEC.toml or from flags. A spec is asked about every concurrency and
system or variant that it has, or -n picks one; thresholds that are the same in all sets of its sweep are
held. --p stands for R2R's matrices: after a step of the small model a request goes to the large
one with probability p, its draft dropped, or commits a token and stays; the large model commits
one token and returns it. --routing and --commit give any matrices, one row a model: where a
request goes after a step, and how many tokens that move commits.

Time runs on a lattice. Without --quantum it is the exact common divisor of the step times; with
it, step times that do not fit are rounded to the nearest multiple, and what that costs is
printed.`

// predictFlags are the flags of predict as given.
type predictFlags struct {
	n          value[int]
	p          value[float64]
	latency    value[[]int64]
	routing    value[[][]float64]
	commit     value[[][]float64]
	quantum    value[int64]
	thresholds value[[]int]
	fix        value[[]int]
	json       bool
}

func newPredict() *cobra.Command {
	f := predictFlags{
		n:          value[int]{kind: "requests", parse: integer(1, 1024)},
		p:          value[float64]{kind: "probability", parse: probability},
		latency:    value[[]int64]{kind: "times", parse: durations},
		routing:    value[[][]float64]{kind: "matrix", parse: routingMatrix},
		commit:     value[[][]float64]{kind: "matrix", parse: commitMatrix},
		quantum:    value[int64]{kind: "time", parse: duration},
		thresholds: value[[]int]{kind: "counts", parse: thresholds(false)},
		fix:        value[[]int]{kind: "counts", parse: thresholds(true)},
	}
	c := &cobra.Command{
		Use:   "predict [SPEC.toml]",
		Short: "Find the best thresholds with the exact throughput model",
		Long:  predictLong,
		Example: `  tokenrouter predict -n 8 --p 0.35 --latency 6.0ms,27.9ms
  tokenrouter predict -n 8 --p 0.35 --latency 6.0ms,27.9ms --thresholds 1,5    # one set only
  tokenrouter predict -n 8 --p 0.35 --latency 6.0ms,27.9ms --fix 1,_           # hold the small model's
  tokenrouter predict -n 4 --routing "0.5,0.5;1,0" --commit "1,0;1,0" --latency 6ms,28ms --quantum 2ms
  tokenrouter predict experiments/threshold.toml --json`,
		Args:              between(0, 1, "at most one SPEC.toml"),
		ValidArgsFunction: specFiles,
		RunE: func(c *cobra.Command, args []string) error {
			questions, err := f.questions(args)
			if err != nil {
				return err
			}
			return tellPrediction(c.Context(), questions, f.json, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.VarP(&f.n, "concurrency", "n", "requests in flight, N")
	flags.Var(&f.p, "p", "R2R with this probability that a small model's token is routed to the large one")
	flags.Var(&f.latency, "latency", "step time of each model, such as 6.0ms,27.9ms")
	flags.Var(&f.routing, "routing", `routing matrix, such as "0.65,0.35;1,0"`)
	flags.Var(&f.commit, "commit", `tokens committed by each move, such as "1,0;1,0"`)
	flags.Var(&f.quantum, "quantum", "lattice of time (default: the exact common divisor of the step times)")
	flags.Var(&f.thresholds, "thresholds", "one set only, a threshold a model, such as 1,5")
	flags.Var(&f.fix, "fix", "hold some thresholds and search the others, such as 1,_")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	completeNumbers(c)
	return c
}

// question is one system with one number of requests in flight.
type question struct {
	experiment, system string   // of a spec
	mean               string   // rows that step times are of, if they depend on more than the rows
	notes, others      []string // what a reader must know of it, and of systems that are left out
	model              chain.Model
	n                  int
	only               []int // one set, nil: search
	fixed              []int // 0 for a free threshold; nil: all free
}

// tellPrediction solves all questions and prints the answers.
func tellPrediction(ctx context.Context, questions []question, asJSON bool, stdout, stderr io.Writer) error {
	bar := newProgress(stderr, "thresholds")
	defer bar.end()
	var predictions []prediction
	for _, q := range questions {
		p, err := q.solve(ctx, bar.show)
		if err != nil {
			return err
		}
		predictions = append(predictions, p)
	}
	bar.end()
	for _, p := range predictions {
		p.warn(stderr)
	}
	if asJSON {
		return printPredictions(stdout, questions[0].experiment, predictions)
	}
	for i, p := range predictions {
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := p.print(stdout); err != nil {
			return err
		}
	}
	return nil
}

// solversMax bounds the chains solved at a time: a large one takes hundreds of megabytes.
const solversMax = 4

func (q question) solve(ctx context.Context, progress func(done, total int)) (prediction, error) {
	options := chain.Options{Round: q.model.QuantumNs > 0, Coarsen: q.mean != ""}
	if q.only != nil {
		s, err := q.model.Solve(q.n, q.only, options)
		if err != nil {
			return prediction{}, judged(err)
		}
		return prediction{question: q, solutions: []*chain.Solution{s}}, nil
	}
	r, err := chain.Search(ctx, q.model, q.n, q.fixed, chain.SearchOptions{
		Options:  options,
		Workers:  min(runtime.GOMAXPROCS(0), solversMax),
		Progress: progress,
	})
	if err != nil {
		return prediction{}, judged(err)
	}
	p := prediction{question: q, best: r.Best, searched: true}
	for _, point := range r.Points {
		p.solutions = append(p.solutions, point.Solution)
	}
	return p, nil
}

// judged tells errors of the input from others.
func judged(err error) error {
	switch {
	case errors.Is(err, chain.ErrInfeasible), errors.Is(err, chain.ErrOffLattice):
		return badInput(err)
	case errors.Is(err, chain.ErrTooManyStates) && strings.Contains(err.Error(), "would fit"):
		return badInput(fmt.Errorf("%w (see --quantum)", err))
	case errors.Is(err, chain.ErrTooManyStates):
		return badInput(err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	return err
}
