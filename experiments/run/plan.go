package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"tokenrouter/core"
	"tokenrouter/core/chain"
	"tokenrouter/experiments/spec"
)

// chainOptions let a chain that is too large take a coarser quantum, which is then reported, as is what a
// quantum of Chain's rounds.
var chainOptions = chain.Options{Round: true, Coarsen: true, MaxStates: 1 << 20, MaxTransitions: 1 << 25}

// optionsOf bounds the chain of a point. With three models and more it is large, and where real models answer
// there are many; where step times are those of mean rows, a fine quantum is not worth its time. Then they
// are rounded more coarsely, which is reported, so that planning takes seconds.
func optionsOf(p *spec.Point) chain.Options {
	o := chainOptions
	if len(p.Models) > 2 && (p.Task != nil || p.MeanRows() != "") {
		o.MaxStates, o.MaxTransitions = 1<<11, 1<<16
	}
	return o
}

// Chain is the throughput model of a point. It fails where the chain does not describe it. It has a quantum
// where step times are those of mean rows, and then wants chain.Options.Round.
func Chain(p *spec.Point) (chain.Model, error) {
	if why := p.Unpredictable(); why != "" {
		return chain.Model{}, fmt.Errorf("the chain does not describe the point: %s", why)
	}
	m := chain.Model{Routing: p.Routing, Commit: p.Commit}
	for i, model := range p.Models {
		step := chain.Table(model.ByRows...)
		if slices.Max(model.ByRows) == slices.Min(model.ByRows) {
			step = chain.Constant(model.ByRows[0])
		}
		m.Step = append(m.Step, step)
		if p.Routing[0][i] == 1 {
			m.Start = i // all requests are there from the second token on
		}
		m.Beside = append(m.Beside, model.Beside)
	}
	if p.MeanRows() != "" {
		m.QuantumNs = m.EstimateQuantum(p.Concurrency)
	}
	return m, nil
}

// planner finds thresholds and predictions, each once.
type planner struct {
	lock  sync.Mutex
	known map[string]*planned
}

type planned struct {
	once  sync.Once
	table [][]int
	rate  float64 // tok/s; NaN if the chain does not describe the point
	note  string
	err   error
}

func newPlanner() *planner { return &planner{known: make(map[string]*planned)} }

func (q *planner) entry(key string) *planned {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.known[key] == nil {
		q.known[key] = &planned{}
	}
	return q.known[key]
}

// thresholds is the table in force at a point, for N = 1, 2, ...; nil for a policy without.
func (q *planner) thresholds(ctx context.Context, p *spec.Point) ([][]int, error) {
	if !p.Policy.Planned {
		return p.Policy.Table, nil
	}
	m, err := Chain(p)
	if err != nil {
		return nil, err
	}
	var table [][]int
	for n := 1; n <= p.Concurrency; n++ {
		m := upTo(m, n)
		e := q.entry(fmt.Sprintf("plan %d %v %v", n, p.Policy.Hold, m))
		e.once.Do(func() {
			var best []int
			best, e.err = plan(ctx, m, n, p)
			e.table = [][]int{best}
		})
		if e.err != nil {
			return nil, fmt.Errorf("thresholds planned for N = %d: %w", n, e.err)
		}
		table = append(table, e.table[0])
	}
	return table, nil
}

// upTo is the model without steps of more than n rows, so that points of several concurrencies share their
// plans.
func upTo(m chain.Model, n int) chain.Model {
	m.Step = slices.Clone(m.Step)
	for i := range m.Step {
		if step := &m.Step[i]; len(step.TableNs) > n {
			step.TableNs = step.TableNs[:n]
		}
	}
	return m
}

// plan is the best feasible set at n. Thresholds that are held count as much less as a small n needs.
func plan(ctx context.Context, m chain.Model, n int, p *spec.Point) ([]int, error) {
	held := make([]int, len(p.Policy.Hold))
	for i, b := range p.Policy.Hold {
		held[i] = max(b, 1)
	}
	t, err := core.FixedThresholds(held, p.Concurrency)
	if err != nil {
		return nil, err
	}
	hold := make([]int, len(held))
	for i, b := range p.Policy.Hold {
		if b > 0 {
			hold[i] = t.At(n, i)
		}
	}
	found, err := chain.Search(ctx, m, n, hold, chain.SearchOptions{Options: optionsOf(p)})
	if err != nil {
		return nil, err
	}
	return found.Points[found.Best].Thresholds, nil
}

// predict is the throughput of a point by the chain, tok/s; NaN where it does not apply. The note is a
// warning, or empty.
func (q *planner) predict(ctx context.Context, p *spec.Point) (rate float64, note string, err error) {
	set, ok, err := q.steadySet(ctx, p)
	if err != nil || !ok {
		return math.NaN(), "", err
	}
	e := q.entry("predict " + p.Key)
	e.once.Do(func() {
		e.rate = math.NaN()
		m, err := Chain(p)
		if err != nil {
			return
		}
		solution, err := m.Solve(p.Concurrency, set, optionsOf(p))
		if err != nil {
			e.note = "not predicted: " + err.Error()
			return
		}
		e.rate, e.note = solution.ThroughputTokS, predictionNote(p, solution)
	})
	return e.rate, e.note, nil
}

// predictionNote says what a prediction leaves out; empty if it is exact.
func predictionNote(p *spec.Point, s *chain.Solution) string {
	var parts []string
	if mean := p.MeanRows(); mean != "" {
		parts = append(parts, "for the mean step ("+mean+")")
	}
	if p.First {
		parts = append(parts, "as if first tokens were drawn like others")
	}
	if p.FrontNs > 0 {
		parts = append(parts, "without the time of requests at the front")
	}
	for _, r := range s.Rounding {
		if r.Relative != 0 {
			parts = append(parts, fmt.Sprintf("with step times rounded to %d ns, which costs %.3g %% of one"+
				" request's throughput", s.QuantumNs, -100*s.RoundingCost))
			break
		}
	}
	if parts == nil {
		return ""
	}
	return "predicted " + strings.Join(parts, ", ")
}

// steadySet is the threshold set of the steady state, if the chain describes the point.
func (q *planner) steadySet(ctx context.Context, p *spec.Point) (set []int, ok bool, err error) {
	if p.Unpredictable() != "" || !p.Workload.Closed() || p.Budget > 0 || p.Policy.MaxWaitNs > 0 {
		return nil, false, nil
	}
	need := (p.ContextMax + p.PageTokens - 1) / p.PageTokens
	for _, m := range p.Models {
		if m.Pages < need*p.Concurrency {
			return nil, false, nil // the pool may hold N down
		}
	}
	switch kind := p.Policy.Kind; {
	case kind == "eager" || p.Concurrency == 1: // one request waits for nobody
		return slices.Repeat([]int{1}, len(p.Models)), true, nil
	case kind == "delayed":
		table, err := q.thresholds(ctx, p)
		if err != nil {
			return nil, false, err
		}
		return table[p.Concurrency-1], true, nil
	default:
		return nil, false, nil // a barrier is another chain
	}
}

// policy is the core's policy of a point, and the set in force at its concurrency; nil for none.
func (q *planner) policy(ctx context.Context, p *spec.Point) (core.Policy, []int, error) {
	var table [][]int
	var set []int
	switch p.Policy.Kind {
	case "eager":
		set = slices.Repeat([]int{1}, len(p.Models))
	case "delayed":
		var err error
		if table, err = q.thresholds(ctx, p); err != nil {
			return nil, nil, err
		}
		set = table[min(p.Concurrency, len(table))-1]
	}
	policy, err := p.Policy.Core(table)
	return policy, set, err
}
