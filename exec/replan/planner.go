package replan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/chain"
)

// Config says what a Planner plans for.
type Config struct {
	Models  int       // of the scheduler, at least 1
	LiveMax int       // most live requests, at least 1
	MaxWait core.Time // as core.Delayed.MaxWait; 0: patience steps of the model
	// Every is how often measured values are looked at; 0: every 2 s.
	Every time.Duration
}

const (
	everyDefault = 2 * time.Second
	// drift is by how much a measured value must have moved for thresholds to be planned again.
	drift = 0.1
	// worthwhile is by what share more waiting must raise the promised throughput: values are measured, and the
	// chain takes all requests for alike, so that less is no promise.
	worthwhile = 0.01
	// patience is how many steps of its model a request waits for others at most, as long as Config.MaxWait is
	// 0. The chain waits for a fraction of that; but where some requests stay with one model for long and
	// others with another, a threshold may not be reached for as long as they do.
	patience = 4
	// planTimeMax ends a plan that takes too long, on what the models leave of the processors. The thresholds
	// in force stay.
	planTimeMax = time.Minute
	// heldFrom is the N from which only the last model's threshold is searched, the others being 1: at N = 8 it
	// takes a quarter of the time, a tenth of a second. plannedMax is the last N that is planned for: its
	// thresholds hold for larger N too.
	heldFrom, plannedMax = 5, 64
)

// options bound the chains: a coarser quantum is enough for values that move.
var options = chain.Options{Round: true, Coarsen: true, MaxStates: 1 << 11, MaxTransitions: 1 << 16}

// Planner is a core.Policy that batches by planned thresholds: at first all are 1. Its methods Start, Observe
// and those of Watched are for the loop's goroutine, Run is for another, and State for any.
type Planner struct {
	c     Config
	force atomic.Pointer[force]
	wake  chan struct{} // an N has come up

	mu      sync.Mutex
	seen    *measured
	live    int // N
	planned *Figures
	sets    map[int]set      // by N: of planned
	at      time.Time        // of the last plan
	err     error            // of the last plan
	wanted  map[int]struct{} // N that have come up
}

// force is what the policy goes by.
type force struct {
	table core.Thresholds
	waits []core.Time // the longest of each model; 0: no limit
}

// set is what is best at an N: thresholds, and the throughput that they promise.
type set struct {
	thresholds []int
	rateTokS   float64
}

// New makes a Planner whose thresholds are all 1.
func New(c Config) (*Planner, error) {
	if c.Models < 1 || c.Models > core.ModelsMax || c.LiveMax < 1 || c.MaxWait < 0 || c.Every < 0 {
		return nil, fmt.Errorf("replan: %+v, want 1 to %d models, LiveMax from 1, MaxWait and Every from 0", c,
			core.ModelsMax)
	}
	if c.Every == 0 {
		c.Every = everyDefault
	}
	p := &Planner{
		c: c, wake: make(chan struct{}, 1), seen: newMeasured(c.Models), sets: make(map[int]set),
		wanted: make(map[int]struct{}),
	}
	return p, p.enforce()
}

// Start is core.Delayed with the thresholds and longest waits in force.
func (p *Planner) Start(m int, v *core.View) bool {
	f := p.force.Load()
	return core.Delayed{Thresholds: f.table, MaxWait: f.waits[m]}.Start(m, v)
}

// Observe hears of a turn (exec.Config.Observe). live is N after it.
func (p *Planner) Observe(now core.Time, in []core.Event, out *core.Actions, live int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range in {
		if in[i].Kind == core.BatchDone {
			p.seen.done(now, in[i].Model, in[i].Failed)
		}
	}
	for i := range out.Launches {
		p.seen.launched(now, &out.Launches[i])
	}
	if live == p.live {
		return
	}
	p.live = live
	if n := min(live, plannedMax); n > 0 {
		if _, known := p.wanted[n]; !known {
			p.wanted[n] = struct{}{}
			select {
			case p.wake <- struct{}{}:
			default:
			}
		}
	}
}

// Watched is the algorithm with its verdicts counted. It is no core.Batch. Of what else a may be it is a
// core.Entry, if a is.
func (p *Planner) Watched(a core.Algorithm) core.Algorithm {
	w := watched{planner: p, algorithm: a}
	if e, ok := a.(core.Entry); ok {
		return watchedEntry{w, e}
	}
	return w
}

type watched struct {
	planner   *Planner
	algorithm core.Algorithm
}

// Route is the algorithm's. A token that stays is committed.
func (w watched) Route(v *core.Visit, r *core.Result) int {
	next := w.algorithm.Route(v, r)
	if next == int(v.Model) {
		w.planner.move(next, next, true)
	}
	return next
}

// Send is the algorithm's.
func (w watched) Send(v *core.Visit, r *core.Result, peer int) bool {
	keep := w.algorithm.Send(v, r, peer)
	w.planner.move(int(v.Model), peer, keep)
	return keep
}

type watchedEntry struct {
	watched
	core.Entry
}

func (p *Planner) move(from, to int, keep bool) {
	p.mu.Lock()
	p.seen.move(from, to, keep)
	p.mu.Unlock()
}

// Run plans until ctx ends, on a thread that yields to all others where the system can do that: a plan
// takes longer than many steps of a small model, which would wait for it on a processor that both want.
func (p *Planner) Run(ctx context.Context) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	yieldToOthers()
	oneMore(1)
	defer oneMore(-1)
	every := time.NewTicker(p.c.Every)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-every.C:
		}
		p.plan(ctx)
	}
}

var goProcessors sync.Mutex

// oneMore lets Go run one goroutine more, or less, at a time: the planner beside as many others as before,
// for Go's own scheduler has no priorities, and would keep the loop waiting for milliseconds.
func oneMore(by int) {
	goProcessors.Lock()
	defer goProcessors.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + by)
}

// plan finds the thresholds of every N that has come up and has none for the present values.
func (p *Planner) plan(ctx context.Context) {
	p.mu.Lock()
	figures := p.seen.figures()
	if figures == nil {
		p.mu.Unlock()
		return
	}
	if p.planned == nil || moved(p.planned, figures) {
		p.planned = figures
		clear(p.sets)
	}
	figures = p.planned
	live := min(p.live, plannedMax)
	var missing []int
	for n := range p.wanted {
		if _, known := p.sets[n]; !known {
			missing = append(missing, n)
		}
	}
	p.mu.Unlock()
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, func(a, b int) int { // what holds now first
		return cmp.Or(cmp.Compare(abs(a-live), abs(b-live)), cmp.Compare(a, b))
	})
	limited, end := context.WithTimeout(ctx, planTimeMax)
	defer end()
	var failed error // of the N nearest to the present one: others are planned all the same
	for _, n := range missing {
		s, err := best(limited, figures, n)
		if err == nil {
			err = p.take(n, s)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("thresholds for N = %d: %w", n, err)
		}
	}
	p.mu.Lock()
	p.at, p.err = time.Now(), failed
	p.mu.Unlock()
}

func abs(x int) int { return max(x, -x) }

// take puts what was planned for n in force.
func (p *Planner) take(n int, s set) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sets[n] = s
	return p.enforce()
}

// enforce puts the sets in force: those of each N, where there are none those of the next smaller, which are
// feasible there too, and all 1 where there is no smaller either.
func (p *Planner) enforce() error {
	row := slices.Repeat([]int{1}, p.c.Models)
	var table [][]int
	for n := 1; n <= min(p.c.LiveMax, plannedMax); n++ {
		if own, planned := p.sets[n]; planned {
			row = own.thresholds
		}
		table = append(table, row)
	}
	t, err := core.TableThresholds(table)
	if err != nil {
		return err
	}
	waits, err := p.waits()
	if err == nil {
		p.force.Store(&force{t, waits})
	}
	return err
}

// waits are the longest of each model. Nothing waits before the first plan.
func (p *Planner) waits() ([]core.Time, error) {
	waits := slices.Repeat([]core.Time{p.c.MaxWait}, p.c.Models)
	if p.c.MaxWait > 0 || p.planned == nil {
		return waits, nil
	}
	for m := range waits {
		step, err := p.planned.Step[m].At(1)
		if err != nil {
			return nil, err
		}
		waits[m] = patience * core.Time(step)
	}
	return waits, nil
}

// best is, of the feasible sets at n whose throughput is within worthwhile of the highest, that which waits
// for the fewest requests; of several that of the highest throughput.
func best(ctx context.Context, f *Figures, n int) (set, error) {
	m := chain.Model{Routing: f.Routing, Commit: f.Commit, Step: f.Step}
	var hold []int
	if n >= heldFrom {
		hold = slices.Repeat([]int{1}, len(f.Step))
		hold[len(hold)-1] = 0
	}
	m.QuantumNs = m.EstimateQuantum(n)
	found, err := chain.Search(ctx, m, n, hold, chain.SearchOptions{Options: options})
	if err != nil {
		return set{}, err
	}
	point := &found.Points[found.Best]
	enough := (1 - worthwhile) * point.Solution.ThroughputTokS
	for i := range found.Points {
		q := &found.Points[i]
		if q.Solution.ThroughputTokS < enough {
			continue
		}
		fewer := cmp.Compare(sum(q.Thresholds), sum(point.Thresholds))
		if fewer < 0 || fewer == 0 && q.Solution.ThroughputTokS > point.Solution.ThroughputTokS {
			point = q
		}
	}
	return set{point.Thresholds, point.Solution.ThroughputTokS}, nil
}

func sum(thresholds []int) int {
	total := 0
	for _, t := range thresholds {
		total += t
	}
	return total
}

// moved says whether a value of b is off that of a by more than drift. Shares are compared to 1.
func moved(a, b *Figures) bool {
	far := func(x, y, scale float64) bool { return math.Abs(x-y) > drift*scale }
	for i := range a.Routing {
		for j := range a.Routing[i] {
			x, y := a.Routing[i][j], b.Routing[i][j]
			if far(x, y, max(min(x, y), drift)) {
				return true
			}
		}
		for _, rows := range []int{1, 8} {
			x, errX := a.Step[i].At(rows)
			y, errY := b.Step[i].At(rows)
			if errX != nil || errY != nil || far(float64(x), float64(y), float64(min(x, y))) {
				return true
			}
		}
	}
	return false
}

// State is what a Planner has in force.
type State struct {
	Live       int
	Thresholds []int     // in force at Live; at 0 those of 1
	Planned    bool      // they are of a plan; if not, all are 1, or those of a smaller N
	RateTokS   float64   // that the plan promises at Live; 0 if not Planned
	Figures    *Figures  // that were planned with; nil: none yet
	At         time.Time // of the last plan
	Err        error     // of the last plan
}

// State is the present one.
func (p *Planner) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(max(p.live, 1), plannedMax)
	own, planned := p.sets[n]
	return State{
		Live: p.live, Thresholds: p.force.Load().table.Row(n), Planned: planned, RateTokS: own.rateTokS,
		Figures: p.planned, At: p.at, Err: p.err,
	}
}
