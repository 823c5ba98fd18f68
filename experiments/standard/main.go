// Command standard measures our executor against ordinary engines behind the plain external dispatcher, one
// token a call, on the same models, prompts, rules and draws, and against the engines that serve the large
// model alone. It writes a table and the raw results.
//
//	go run ./experiments/standard [flags] EXPERIMENT.toml
//
// `make engines` brings llama.cpp's server and vLLM. Points are measured in turn by ours and by each engine,
// whose servers wait meanwhile; the median of the rounds counts.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"tokenrouter/exec/remote"
	"tokenrouter/experiments/system"
)

// options are the command line's.
type options struct {
	engines, work, out string
	short              bool
}

func main() {
	var o options
	flag.StringVar(&o.engines, "engines", ".engines", "folder of make engines")
	flag.StringVar(&o.work, "work", filepath.Join(".engines", "standard"), "folder for models and logs")
	flag.StringVar(&o.out, "out", "", "files to write, without .md and .json (default: print the table)")
	flag.BoolVar(&o.short, "short", false, "the shortest answers, in one round")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: standard [flags] EXPERIMENT.toml")
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "standard:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, path string) error {
	e, err := load(path)
	if err != nil {
		return err
	}
	if o.short {
		e.Outputs, e.Rounds = []int{min(e.Outputs[0], 32)}, 1
	}
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return err
	}
	r, err := e.measure(ctx, o.work, processes{folder: o.engines, work: o.work}.start)
	if err != nil {
		return err
	}
	if o.out == "" {
		r.write(os.Stdout)
		return nil
	}
	return r.save(o.out)
}

// report is all that was measured.
type report struct {
	e            *experiment
	models       *models
	promptTokens []int
	engines      []string // about them
	results      []*measurement
}

// measure takes all points.
func (e *experiment) measure(ctx context.Context, work string, start starter) (r *report, err error) {
	prompts, err := e.encode()
	if err != nil {
		return nil, err
	}
	longest := 0
	r = &report{e: e}
	for _, ids := range prompts {
		r.promptTokens, longest = append(r.promptTokens, len(ids)), max(longest, len(ids))
	}
	if r.models, err = e.prepare(ctx, work, longest); err != nil {
		return nil, err
	}
	var engines []*engine
	defer func() {
		for _, g := range engines {
			err = errors.Join(err, g.stop())
		}
	}()
	for _, name := range e.Engines {
		kind, err := remote.ParseEngine(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(os.Stderr, "starting", name)
		g, err := start(ctx, e, r.models, kind)
		if err != nil {
			return nil, err
		}
		engines, r.engines = append(engines, g), append(r.engines, g.about)
	}
	for i := range e.Routing {
		if err := r.rule(ctx, engines, prompts, &e.Routing[i]); err != nil {
			return nil, err
		}
	}
	return r, r.rule(ctx, engines, prompts, nil)
}

// encode makes ids of the prompts, as the small model's folder has them.
func (e *experiment) encode() ([][]int32, error) {
	encoder, err := system.FolderEncoder(e.Small.Dir)
	if err != nil {
		return nil, err
	}
	var prompts [][]int32
	for _, text := range e.Prompts {
		ids, err := encoder.Text(text)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, ids)
	}
	return prompts, nil
}

// rule measures all points of a rule; of nil, those of the large model alone.
func (r *report) rule(ctx context.Context, engines []*engine, prompts [][]int32, rule *routingKeys) error {
	o, err := openOurs(ctx, r.e, r.models, rule)
	if err != nil {
		return err
	}
	defer o.close()
	for _, tokens := range r.e.Outputs {
		for _, n := range r.e.Concurrency {
			p := point{Requests: n, Tokens: tokens, routing: rule}
			if rule != nil {
				p.Rule = rule.String()
			}
			fmt.Fprintf(os.Stderr, "%d requests of %d tokens, %s\n", n, tokens, p.Rule)
			found, err := r.at(ctx, o, engines, prompts, p)
			if err != nil {
				return fmt.Errorf("%d requests of %d tokens: %w", n, tokens, err)
			}
			r.results = append(r.results, found...)
		}
	}
	return nil
}

// at measures a point by all systems, in rounds, and keeps the median of each.
func (r *report) at(ctx context.Context, o *ours, engines []*engine, prompts [][]int32, p point,
) ([]*measurement, error) {
	planner, err := newPlanner(ctx, p.Requests)
	if err != nil {
		return nil, err
	}
	if p.routing == nil {
		planner = nil
	}
	warm := p
	warm.Tokens = min(p.Tokens, warmTokens)
	if _, err := o.measure(ctx, warm, prompts, planner); err != nil {
		return nil, err
	}
	warm.Tokens = min(p.Tokens, warmCalls)
	for _, g := range engines {
		if _, err := g.measure(ctx, r.e, warm, prompts); err != nil {
			return nil, err
		}
	}
	tries := make([][]*measurement, 1+len(engines))
	for range r.e.Rounds {
		m, err := o.measure(ctx, p, prompts, planner)
		if err != nil {
			return nil, err
		}
		tries[0] = append(tries[0], m)
		for i, g := range engines {
			if m, err = g.measure(ctx, r.e, p, prompts); err != nil {
				return nil, err
			}
			tries[1+i] = append(tries[1+i], m)
		}
	}
	var out []*measurement
	for _, of := range tries {
		m := median(of)
		out = append(out, m)
		m.compare(out[0].answers)
	}
	return out, nil
}

// Before ours is measured it makes some tokens, so that its thresholds are planned; so do engines, some of
// which compile what they first need when they need it.
const warmTokens, warmCalls = 256, 8

// median is the middle one of the tries by throughput, the slower one if two are, and it has all of theirs.
func median(tries []*measurement) *measurement {
	slices.SortFunc(tries, func(a, b *measurement) int { return cmp.Compare(a.ThroughputTok, b.ThroughputTok) })
	m := tries[(len(tries)-1)/2]
	for _, t := range tries {
		m.RoundsTok = append(m.RoundsTok, t.ThroughputTok)
	}
	return m
}
