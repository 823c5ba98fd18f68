package chain

import (
	"errors"
	"fmt"
	"time"
)

// ErrTooManyStates is wrapped by the error of a chain that exceeds Options.MaxStates or
// Options.MaxTransitions.
var ErrTooManyStates = errors.New("too many states")

// space is the chain of one threshold set on the states reachable from the start.
type space struct {
	layout  *layout
	lattice *lattice
	index   *index
	graph   *graph
	hold    []int64 // ticks to the next completion, by state
}

// explorer builds a space. Breadth first: states are numbered in the order in which they are first reached,
// which depends on the input alone.
type explorer struct {
	space
	n          int
	thresholds []int
	spreads    *spreads
	here       *state
	idle       []bool     // after the completions
	ready      [][]uint64 // [model][waiting]: bits of an idle model, which launches from its threshold on
	base       []uint64   // bits of the models that go on running
	key        []uint64
	limits     Options
}

// explore builds the space of m with n requests.
func explore(m Model, n int, thresholds []int, l *lattice, s *spreads, limits Options) (*space, error) {
	places, err := newLayout(l, n)
	if err != nil {
		return nil, err
	}
	e := &explorer{n: n, thresholds: thresholds, spreads: s, limits: limits, here: newState(places.models)}
	e.layout, e.lattice, e.index = places, l, newIndex(places.words)
	e.graph = &graph{first: make([]int64, 1), sourceRoundings: float64(4*places.models + 4)}
	e.idle = make([]bool, places.models)
	e.base = make([]uint64, places.models)
	e.key = make([]uint64, places.words)
	for i, f := range places.fields {
		e.ready = append(e.ready, make([]uint64, n+1))
		for k := range n + 1 {
			e.ready[i][k] = f.pack(k, 0, 0)
			if k >= thresholds[i] {
				e.ready[i][k] = f.pack(0, k, l.ticks[i][k])
			}
		}
	}
	for i, f := range places.fields {
		k := 0
		if i == m.Start {
			k = n
		}
		e.key[f.word] |= e.ready[i][k]
	}
	e.index.add(e.key)
	for number := int32(0); int(number) < e.index.size(); number++ {
		if err := e.leave(number); err != nil {
			return nil, err
		}
	}
	e.graph.pool = s.pool
	return &e.space, nil
}

// leave writes the transitions out of a state.
func (e *explorer) leave(number int32) error {
	e.layout.unpack(e.index.key(number), e.here)
	holding := e.here.advance(e.lattice.beside)
	if holding == 0 {
		panic(fmt.Sprintf("chain: no batch runs in state %+v under thresholds %v", *e.here, e.thresholds))
	}
	totals := e.spreads.totals
	clear(totals)
	for i, f := range e.layout.fields {
		b := e.here.running[i]
		e.idle[i] = b == 0 || e.here.ends[i]
		if e.here.ends[i] {
			totals[e.spreads.classOf[i]] += b
		}
		e.base[i] = f.pack(0, b, e.here.left[i])
	}
	g := e.graph
	law := e.spreads.of(totals)
	if law == nil {
		return e.tooLarge(len(g.next) + e.limits.MaxTransitions)
	}
	g.roundings = max(g.roundings, law.roundings)
	models := e.layout.models
	for a := 0; a < len(law.arrivals); a += models {
		clear(e.key)
		for i, f := range e.layout.fields {
			k := e.here.waiting[i] + int(law.arrivals[a+i])
			if e.idle[i] {
				e.key[f.word] |= e.ready[i][k]
			} else {
				e.key[f.word] |= e.base[i] | uint64(k)<<f.waiting
			}
		}
		g.next = append(g.next, e.index.add(e.key))
	}
	g.first = append(g.first, int64(len(g.next)))
	g.odds = append(g.odds, law.offset)
	e.hold = append(e.hold, holding)
	if e.index.size() > e.limits.MaxStates || len(g.next) > e.limits.MaxTransitions {
		return e.tooLarge(len(g.next))
	}
	return nil
}

// tooLarge returns the error of an enumeration that stopped.
func (e *explorer) tooLarge(transitions int) error {
	return &sizeError{states: e.index.size(), transitions: transitions,
		quantumNs: e.lattice.quantumNs, limits: e.limits}
}

// sizeError is the error of a chain that is too large. It says how far the enumeration came, and in
// advice what would fit.
type sizeError struct {
	states, transitions int
	quantumNs           int64
	limits              Options
	advice              string
}

func (e *sizeError) Error() string {
	return fmt.Sprintf("chain: at least %d states and %d transitions with a quantum of %v, "+
		"want at most %d and %d; %s%v", e.states, e.transitions, time.Duration(e.quantumNs),
		e.limits.MaxStates, e.limits.MaxTransitions, e.advice, ErrTooManyStates)
}

func (e *sizeError) Unwrap() error { return ErrTooManyStates }
