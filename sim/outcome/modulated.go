package outcome

import (
	"fmt"
	"math"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
)

// StatesMax bounds the states of a difficulty chain.
const StatesMax = 16

// Modulated has stretches of easy and of hard tokens: a hidden Markov chain runs along the
// positions of every request, and each of its states has a probability that a token is to be
// routed. Result.Score is 1 (route) or 0, for route.R2R{Threshold: 0.5}; Draw is the uniform
// that the verdict was made from; EOS is as in Uniform.
//
// The chain is keyed by request and position and starts from its stationary law. The state at
// a position is therefore the same for every model that tries it, under every policy and in
// every order of visits, and so is its share at every position.
//
// Make one with NewModulated or NewBursts. It may serve any number of runs at once.
type Modulated struct {
	route      []keyed.Chance // by state
	next       []keyed.Categorical
	first      keyed.Categorical
	stationary []float64
	routeShare float64
	two        [2]keyed.Chance // chain of two states: chance of state 1 after state s
}

// NewModulated takes the probability of routing in each state, 1 to StatesMax of them, each 0
// to 1, and the transition matrix from one position to the next: square, rows that sum to 1
// within 1e-9. Every state must be reachable from every other, or the share of each would
// depend on the start.
func NewModulated(route []float64, transition [][]float64) (*Modulated, error) {
	if n := len(route); n < 1 || n > StatesMax || len(transition) != n {
		return nil, fmt.Errorf("outcome: %d routing probabilities and %d rows of transitions, want one"+
			" of each a state, 1 to %d states", len(route), len(transition), StatesMax)
	}
	m := &Modulated{}
	for s, p := range route {
		if !(p >= 0 && p <= 1) {
			return nil, fmt.Errorf("outcome: routing probability[%d] = %v, want 0 to 1", s, p)
		}
		m.route = append(m.route, keyed.NewChance(p))
	}
	for s, row := range transition {
		if err := checkTransitions(s, row, len(route)); err != nil {
			return nil, err
		}
		law, err := keyed.NewCategorical(row)
		if err != nil {
			return nil, fmt.Errorf("outcome: transition[%d]: %w", s, err)
		}
		m.next = append(m.next, law)
	}
	if from, to, ok := unreachable(transition); ok {
		return nil, fmt.Errorf("outcome: state %d never comes after state %d, want a chain in which"+
			" every state is reachable from every other", to, from)
	}
	m.stationary = stationary(transition)
	for s, share := range m.stationary {
		m.routeShare += share * route[s]
	}
	law, err := keyed.NewCategorical(m.stationary)
	if err != nil {
		return nil, fmt.Errorf("outcome: stationary law: %w", err)
	}
	m.first = law
	if len(route) == 2 {
		m.two = [2]keyed.Chance{keyed.NewChance(transition[0][1]), keyed.NewChance(1 - transition[1][0])}
	}
	return m, nil
}

func checkTransitions(state int, row []float64, states int) error {
	if len(row) != states {
		return fmt.Errorf("outcome: transition[%d] has %d values, want %d", state, len(row), states)
	}
	sum := 0.0
	for to, p := range row {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("outcome: transition[%d][%d] = %v, want 0 to 1", state, to, p)
		}
		sum += p
	}
	if math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("outcome: transition[%d] sums to %v, want 1", state, sum)
	}
	return nil
}

// RouteShare is the stationary probability that a token is routed: the p of the throughput
// model, which knows nothing of bursts.
func (m *Modulated) RouteShare() float64 { return m.routeShare }

// Stationary is the long-run share of each state. The caller owns the slice.
func (m *Modulated) Stationary() []float64 { return append([]float64(nil), m.stationary...) }

// Fill implements Source. Request.Scratch remembers the chain: the positions walked so far and
// the state at the last of them.
func (m *Modulated) Fill(model int, rows []core.Row, requests []Request, results []core.Result) {
	results = results[:len(rows)]
	for i := range rows {
		row, result := &rows[i], &results[i]
		*result = core.Result{}
		if !row.Head {
			continue
		}
		request := &requests[row.Slot]
		position := request.position(row)
		state := m.walk(request, uint64(position))
		hash := request.Key.At(uint32(position), uint32(model), keyed.Route)
		result.Score = float64(bit(m.route[state].Hit(hash)))
		result.Draw = keyed.Float(hash)
		result.EOS = request.endsAt(position)
	}
}

// Err is always nil.
func (m *Modulated) Err() error { return nil }

// State is the chain's state at a position of a request.
func (m *Modulated) State(request *Request, position int32) int {
	return int(m.walk(request, uint64(position)))
}

// walk moves the request's chain to the position and returns the state there. A position
// before the last one asked for is walked to from the start again.
func (m *Modulated) walk(request *Request, position uint64) uint64 {
	walked, state := request.Scratch[0], request.Scratch[1]
	if walked > position+1 {
		walked = 0
	}
	for ; walked <= position; walked++ {
		hash := request.Key.At(uint32(walked), 0, keyed.Difficulty)
		switch {
		case walked == 0:
			state = uint64(m.first.Pick(hash))
		case len(m.next) == 2:
			state = bit(m.two[state].Hit(hash))
		default:
			state = uint64(m.next[state].Pick(hash))
		}
	}
	request.Scratch[0], request.Scratch[1] = walked, state
	return state
}

// bit is a number instead of a branch that nobody could predict.
func bit(b bool) uint64 {
	var n uint64
	if b {
		n = 1
	}
	return n
}
