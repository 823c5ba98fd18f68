package chain

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
)

// oracle is the slow and obvious twin of Solve: the slot model written out request by request, in rational
// numbers, with dense elimination. It shares no code with the package.
type oracle struct {
	p, c       [][]*big.Rat
	ticks      func(model, rows int) int
	thresholds []int
	states     map[string]int
	list       []oracleState
	moves      []map[int]*big.Rat
}

// oracleState is what is seen just after the launches of an instant.
type oracleState struct{ waiting, running, residue []int }

func (s oracleState) String() string { return fmt.Sprint(s.waiting, s.running, s.residue) }

func (s oracleState) clone() oracleState {
	return oracleState{slices.Clone(s.waiting), slices.Clone(s.running), slices.Clone(s.residue)}
}

// newOracle explores the chain of n requests that wait at model start.
func newOracle(p, c [][]float64, ticks func(model, rows int) int, n, start int, thresholds []int) *oracle {
	o := &oracle{ticks: ticks, thresholds: thresholds, states: map[string]int{}}
	for i := range p {
		o.p = append(o.p, nil)
		o.c = append(o.c, nil)
		sum := new(big.Rat)
		for j := range p[i] {
			o.p[i] = append(o.p[i], new(big.Rat).SetFloat64(p[i][j]))
			o.c[i] = append(o.c[i], new(big.Rat).SetFloat64(c[i][j]))
			sum.Add(sum, o.p[i][j])
		}
		for j := range p[i] {
			o.p[i][j].Quo(o.p[i][j], sum)
		}
	}
	first := oracleState{make([]int, len(p)), make([]int, len(p)), make([]int, len(p))}
	first.waiting[start] = n
	o.add(o.launch(first))
	for at := 0; at < len(o.list); at++ {
		moves := map[int]*big.Rat{}
		o.spread(o.list[at], moves)
		o.moves = append(o.moves, moves)
	}
	return o
}

func (o *oracle) add(s oracleState) int {
	key := s.String()
	if _, ok := o.states[key]; !ok {
		o.states[key] = len(o.list)
		o.list = append(o.list, s)
	}
	return o.states[key]
}

// launch starts every idle model whose queue is long enough.
func (o *oracle) launch(s oracleState) oracleState {
	s = s.clone()
	for i := range s.waiting {
		if s.running[i] == 0 && s.waiting[i] >= o.thresholds[i] {
			s.running[i], s.waiting[i] = s.waiting[i], 0
			s.residue[i] = o.ticks(i, s.running[i])
		}
	}
	return s
}

// holding is the time to the next completion.
func (s oracleState) holding() int {
	shortest := 0
	for i, b := range s.running {
		if b > 0 && (shortest == 0 || s.residue[i] < shortest) {
			shortest = s.residue[i]
		}
	}
	return shortest
}

// spread routes the completed requests of s one by one and adds up the chances of what follows.
func (o *oracle) spread(s oracleState, moves map[int]*big.Rat) {
	holding := s.holding()
	after := s.clone()
	var from []int
	for i, b := range s.running {
		if b == 0 {
			continue
		}
		after.residue[i] -= holding
		if after.residue[i] == 0 {
			after.running[i] = 0
			for range b {
				from = append(from, i)
			}
		}
	}
	var route func(at int, chance *big.Rat)
	route = func(at int, chance *big.Rat) {
		if at == len(from) {
			to := o.add(o.launch(after))
			if moves[to] == nil {
				moves[to] = new(big.Rat)
			}
			moves[to].Add(moves[to], chance)
			return
		}
		for j, p := range o.p[from[at]] {
			if p.Sign() > 0 {
				after.waiting[j]++
				route(at+1, new(big.Rat).Mul(chance, p))
				after.waiting[j]--
			}
		}
	}
	route(0, big.NewRat(1, 1))
}

// throughput returns the expected long-run tokens per tick from the start.
func (o *oracle) throughput() *big.Rat {
	n := len(o.list)
	reach := make([][]bool, n)
	for s := range n {
		reach[s] = make([]bool, n)
		stack := []int{s}
		for len(stack) > 0 {
			u := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if reach[s][u] {
				continue
			}
			reach[s][u] = true
			for t := range o.moves[u] {
				stack = append(stack, t)
			}
		}
	}
	rate := make([]*big.Rat, n) // of recurrent states
	var transient []int
	for s := range n {
		var class []int
		closed := true
		for t := range n {
			if reach[s][t] {
				class = append(class, t)
				closed = closed && reach[t][s]
			}
		}
		switch {
		case !closed:
			transient = append(transient, s)
		case class[0] == s:
			g := o.classRate(class)
			for _, t := range class {
				rate[t] = g
			}
		}
	}
	if rate[0] != nil {
		return rate[0]
	}
	// The rate from a transient state is the mean of the rates from its successors.
	place := map[int]int{}
	for i, s := range transient {
		place[s] = i
	}
	rows := make([][]*big.Rat, len(transient))
	for i, s := range transient {
		rows[i] = zeros(len(transient) + 1)
		rows[i][i].SetInt64(1)
		for t, p := range o.moves[s] {
			if at, ok := place[t]; ok {
				rows[i][at].Sub(rows[i][at], p)
			} else {
				rows[i][len(transient)].Add(rows[i][len(transient)], new(big.Rat).Mul(p, rate[t]))
			}
		}
	}
	return solveRational(rows)[place[0]]
}

// classRate returns mean tokens over mean holding time in a closed class.
func (o *oracle) classRate(class []int) *big.Rat {
	sort.Ints(class)
	place := map[int]int{}
	for i, s := range class {
		place[s] = i
	}
	n := len(class)
	rows := make([][]*big.Rat, n)
	for i := range rows {
		rows[i] = zeros(n + 1)
		rows[i][i].SetInt64(-1)
	}
	for i, s := range class {
		for t, p := range o.moves[s] {
			rows[place[t]][i].Add(rows[place[t]][i], p)
		}
	}
	for j := range n { // one balance equation gives way to the sum
		rows[n-1][j].SetInt64(1)
	}
	rows[n-1][n].SetInt64(1)
	law := solveRational(rows)
	tokens, time := new(big.Rat), new(big.Rat)
	for i, s := range class {
		state := o.list[s]
		holding := state.holding()
		time.Add(time, new(big.Rat).Mul(law[i], big.NewRat(int64(holding), 1)))
		for j, b := range state.running {
			if b == 0 || state.residue[j] != holding {
				continue
			}
			for k := range o.p[j] {
				move := new(big.Rat).Mul(o.p[j][k], o.c[j][k])
				move.Mul(move, big.NewRat(int64(b), 1))
				tokens.Add(tokens, move.Mul(move, law[i]))
			}
		}
	}
	return tokens.Quo(tokens, time)
}

func zeros(n int) []*big.Rat {
	out := make([]*big.Rat, n)
	for i := range out {
		out[i] = new(big.Rat)
	}
	return out
}

// solveRational solves the linear equations rows, right side last, by Gauss-Jordan elimination.
func solveRational(rows [][]*big.Rat) []*big.Rat {
	n := len(rows)
	for column := range n {
		pivot := column
		for rows[pivot][column].Sign() == 0 {
			pivot++
		}
		rows[column], rows[pivot] = rows[pivot], rows[column]
		scale := new(big.Rat).Inv(rows[column][column])
		for j := column; j <= n; j++ {
			rows[column][j].Mul(rows[column][j], scale)
		}
		for i := range n {
			if i == column || rows[i][column].Sign() == 0 {
				continue
			}
			factor := new(big.Rat).Set(rows[i][column])
			for j := column; j <= n; j++ {
				if rows[column][j].Sign() != 0 {
					rows[i][j].Sub(rows[i][j], new(big.Rat).Mul(factor, rows[column][j]))
				}
			}
		}
	}
	out := make([]*big.Rat, n)
	for i := range out {
		out[i] = rows[i][n]
	}
	return out
}
