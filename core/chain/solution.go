package chain

import (
	"fmt"
	"math"
)

// Solution holds the stationary figures of one threshold set. If the chain has several closed classes, every
// rate and share is the mean over the classes by their weights: the expected long-run average from the start.
type Solution struct {
	// Concurrency is the number of requests in flight, N.
	Concurrency int
	// Thresholds holds the threshold of each model.
	Thresholds []int
	// ThroughputTokS is the committed output in tokens per second.
	ThroughputTokS float64
	// ErrorBound bounds the relative error of ThroughputTokS against the exact solution of the model after
	// Rounding; LowTokS to HighTokS is the interval it leaves.
	ErrorBound        float64
	LowTokS, HighTokS float64
	// States and Transitions are the size of the chain; TransientStates are the states outside all closed
	// classes.
	States, Transitions, TransientStates int
	// Method is how the stationary law was found; Iteration if any class took it. CutStates is the number of
	// states of the watched chains that were solved.
	Method    Method
	CutStates int
	// MeanHoldingNs is the mean time between two instants at which batches complete, ns.
	MeanHoldingNs float64
	// Models holds figures of each model.
	Models []ModelFigures
	// Classes holds the closed classes; more than one means that the chain is reducible from the start.
	Classes []Class
	// QuantumNs is the quantum used, ns. Rounding holds one entry a model.
	QuantumNs int64
	Rounding  []Rounding
	// RoundingCost is how much Rounding changes the throughput of one request alone, relative; -0.0022 means
	// that the rounded times are 0.22 % slower. It is 0 if nothing was rounded.
	RoundingCost float64
}

// ModelFigures are the stationary figures of one model.
type ModelFigures struct {
	// Utilisation is the share of time in which the model runs a batch, 0 to 1.
	Utilisation float64
	// StartsPerS is the number of batches it starts per second, RowsPerS that of rows.
	StartsPerS, RowsPerS float64
	// MeanBatch is the mean number of rows of a batch at its start, 0 if it never starts one.
	MeanBatch float64
	// MeanQueue is the mean number of requests waiting for it, over time.
	MeanQueue float64
	// MeanWaitNs is the mean time from the arrival of a request at the model to the start of its batch, ns
	// (Little's law: MeanQueue over RowsPerS); 0 if it never starts one.
	MeanWaitNs float64
	// TokensPerS is the output that its steps commit, tokens per second; TokenShare the share of all output.
	TokensPerS, TokenShare float64
	// BesideShare is the share of its running time in which another model runs too; 0 if it never runs.
	BesideShare float64
}

// stationary solves the chain sp.
func (s *solver) stationary(thresholds []int, sp *space) (*Solution, error) {
	g := sp.graph
	classes, transient := closedClasses(g)
	h := sp.hints()
	weights, weightError, err := absorption(g, classes, h)
	if err != nil {
		return nil, err
	}
	out := &Solution{
		Concurrency: s.n, Thresholds: append([]int(nil), thresholds...), Method: Elimination,
		States: g.size(), Transitions: len(g.next), TransientStates: transient,
		Models:    make([]ModelFigures, sp.layout.models),
		QuantumNs: sp.lattice.quantumNs, Rounding: sp.lattice.rounding,
	}
	completionsPerS := 0.0
	for c, members := range classes {
		part := g.restrict(members)
		reward, hold := s.rewards(sp, members)
		l, err := stationaryLaw(part, h.restrict(members), reward, hold)
		if err != nil {
			return nil, err
		}
		r := s.rates(sp, members, l.visits)
		period, ticks := periods(part, hold)
		out.Classes = append(out.Classes, Class{Weight: weights[c], States: len(members),
			ThroughputTokS: r.tokens, Period: period, PeriodNs: ticks * sp.lattice.quantumNs})
		out.CutStates += l.cut
		if l.method == Iteration {
			out.Method = Iteration
		}
		spare := float64(4*len(out.Models) + 16 + len(classes))
		out.ErrorBound = max(out.ErrorBound, l.relative+weightError+spare*unit)
		completionsPerS += weights[c] * r.completions
		out.add(weights[c], r)
	}
	out.MeanHoldingNs = 1e9 / completionsPerS
	out.finish()
	out.RoundingCost, err = s.roundingCost(sp.lattice)
	return out, err
}

// rewards returns, for each of members, the tokens that the completions at its end commit on average, and the
// holding time in ticks. Both are exact up to graph.sourceRoundings.
func (s *solver) rewards(sp *space, members []int32) (reward, hold []float64) {
	reward, hold = make([]float64, len(members)), make([]float64, len(members))
	expected := s.expectedTokens()
	here := newState(sp.layout.models)
	for i, number := range members {
		sp.layout.unpack(sp.index.key(number), here)
		here.advance(sp.lattice.beside)
		hold[i] = float64(sp.hold[number])
		for j, b := range here.running {
			if here.ends[j] {
				reward[i] += float64(b) * expected[j]
			}
		}
	}
	return reward, hold
}

// expectedTokens returns the mean number of tokens that a row of each model commits.
func (s *solver) expectedTokens() []float64 {
	expected := make([]float64, len(s.routing))
	for i, row := range s.routing {
		for j, p := range row {
			expected[i] += p * s.model.Commit[i][j]
		}
	}
	return expected
}

// rates are the figures of one closed class: rates a second, and means over time.
type rates struct {
	tokens, completions       float64
	busy, starts, rows, queue []float64 // by model
	beside                    []float64 // of busy: with another model
	expected                  []float64 // tokens that a completed row commits, by model
}

// rates weighs the states of a closed class by their visits.
func (s *solver) rates(sp *space, members []int32, visits []float64) *rates {
	models := sp.layout.models
	here := newState(models)
	var elapsed, transitions compensated
	busy, starts := make([]compensated, models), make([]compensated, models)
	rows, queue := make([]compensated, models), make([]compensated, models)
	beside := make([]compensated, models)
	for i, number := range members {
		sp.layout.unpack(sp.index.key(number), here)
		here.advance(sp.lattice.beside)
		v := visits[i]
		time := v * float64(sp.hold[number])
		elapsed.add(time)
		transitions.add(v)
		others := -1
		for _, b := range here.running {
			if b > 0 {
				others++
			}
		}
		for j, b := range here.running {
			queue[j].add(time * float64(here.waiting[j]))
			if b == 0 {
				continue
			}
			busy[j].add(time)
			if others > 0 {
				beside[j].add(time)
			}
			if here.ends[j] { // as many batches end as start
				starts[j].add(v)
				rows[j].add(v * float64(b))
			}
		}
	}
	r := &rates{expected: s.expectedTokens()}
	total := elapsed.value()
	perSecond := 1e9 / float64(sp.lattice.quantumNs)
	for j := range models {
		r.busy = append(r.busy, busy[j].value()/total)
		r.beside = append(r.beside, beside[j].value()/total)
		r.starts = append(r.starts, starts[j].value()/total*perSecond)
		r.rows = append(r.rows, rows[j].value()/total*perSecond)
		r.queue = append(r.queue, queue[j].value()/total)
		r.tokens += r.rows[j] * r.expected[j]
	}
	r.completions = transitions.value() / total * perSecond
	return r
}

// add adds a class by its weight.
func (out *Solution) add(weight float64, r *rates) {
	out.ThroughputTokS += weight * r.tokens
	for i := range out.Models {
		f := &out.Models[i]
		f.Utilisation += weight * r.busy[i]
		f.BesideShare += weight * r.beside[i]
		f.StartsPerS += weight * r.starts[i]
		f.RowsPerS += weight * r.rows[i]
		f.MeanQueue += weight * r.queue[i]
		f.TokensPerS += weight * r.rows[i] * r.expected[i]
	}
}

// finish fills in the figures that are ratios of others.
func (out *Solution) finish() {
	out.LowTokS = out.ThroughputTokS * (1 - out.ErrorBound)
	out.HighTokS = out.ThroughputTokS * (1 + out.ErrorBound)
	for i := range out.Models {
		f := &out.Models[i]
		if f.Utilisation > 0 {
			f.BesideShare /= f.Utilisation
		}
		if f.StartsPerS > 0 {
			f.MeanBatch = f.RowsPerS / f.StartsPerS
			f.MeanWaitNs = f.MeanQueue / f.RowsPerS * 1e9
		}
		if out.ThroughputTokS > 0 {
			f.TokenShare = f.TokensPerS / out.ThroughputTokS
		}
	}
}

// roundingCost returns the relative change of the throughput of one request alone between the given step
// times of one row and those of the lattice.
func (s *solver) roundingCost(l *lattice) (float64, error) {
	exact := true
	for i := range l.ticks {
		given, _ := s.model.Step[i].At(1)
		exact = exact && l.ticks[i][1]*l.quantumNs == given
	}
	if exact {
		return 0, nil
	}
	alone := Model{Routing: s.model.Routing, Commit: s.model.Commit, Start: s.model.Start}
	rounded := alone
	ones := make([]int, len(l.ticks))
	for i := range l.ticks {
		given, _ := s.model.Step[i].At(1)
		alone.Step = append(alone.Step, Constant(given))
		rounded.Step = append(rounded.Step, Constant(l.ticks[i][1]*l.quantumNs))
		ones[i] = 1
	}
	before, err := alone.Solve(1, ones, Options{})
	if err != nil {
		return 0, err
	}
	after, err := rounded.Solve(1, ones, Options{})
	if err != nil || before.ThroughputTokS == 0 {
		return 0, err
	}
	return after.ThroughputTokS/before.ThroughputTokS - 1, nil
}

// worst says how far the worst step time is from the given one.
func (l *lattice) worst() string {
	worst := l.rounding[0]
	for _, r := range l.rounding {
		if math.Abs(r.Relative) > math.Abs(worst.Relative) {
			worst = r
		}
	}
	if worst.Relative == 0 {
		return "no step time rounded"
	}
	return fmt.Sprintf("the step time of model %d off by %+.3g %%", worst.Model, 100*worst.Relative)
}
