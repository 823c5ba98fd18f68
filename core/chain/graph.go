package chain

// graph is a finite Markov chain in compressed rows: the successors of state s are next[first[s]:first[s+1]],
// and the probability of the e-th of them is pool[odds[s]+e]. Rows that share a law share its place in the
// pool.
type graph struct {
	first []int64
	next  []int32
	odds  []int64
	pool  []float64
	// roundings bounds the relative rounding error of every probability, in units of 2^-53.
	roundings float64
	// sourceRoundings is the same for the rewards of states.
	sourceRoundings float64
}

// size returns the number of states.
func (g *graph) size() int { return len(g.first) - 1 }

// row returns the successors of s and their probabilities.
func (g *graph) row(s int32) ([]int32, []float64) {
	from, to := g.first[s], g.first[s+1]
	at := g.odds[s]
	return g.next[from:to], g.pool[at : at+to-from]
}

// restrict returns the chain on members alone, which must be closed, with states numbered as in members.
func (g *graph) restrict(members []int32) *graph {
	if len(members) == g.size() {
		return g
	}
	local := make([]int32, g.size())
	for i, s := range members {
		local[s] = int32(i)
	}
	out := &graph{pool: g.pool, roundings: g.roundings, sourceRoundings: g.sourceRoundings}
	out.first = make([]int64, 1, len(members)+1)
	for _, s := range members {
		next, _ := g.row(s)
		for _, t := range next {
			out.next = append(out.next, local[t])
		}
		out.first = append(out.first, int64(len(out.next)))
		out.odds = append(out.odds, g.odds[s])
	}
	return out
}

// components numbers the strongly connected components of the states that are not removed (nil: none is), in
// an order in which every edge leads to the same or an earlier component. Removed states get -1. It returns
// the number of each state and the number of components.
func (g *graph) components(removed []bool) (component []int32, count int) {
	n := g.size()
	const unseen = -2
	component = make([]int32, n)
	low := make([]int32, n) // discovery number, then the lowest one reachable
	edge := make([]int64, n)
	for s := range component {
		component[s] = unseen
		if removed != nil && removed[s] {
			component[s] = -1
		}
	}
	var path, open []int32
	discovered := int32(0)
	for root := range int32(n) {
		if component[root] != unseen || low[root] != 0 {
			continue
		}
		path = append(path, root)
		for len(path) > 0 {
			s := path[len(path)-1]
			if low[s] == 0 {
				discovered++
				low[s] = discovered
				edge[s] = g.first[s]
				open = append(open, s)
			}
			if child := g.advance(s, edge, low, component); child >= 0 {
				path = append(path, child)
				continue
			}
			path = path[:len(path)-1]
			open, count = g.closeComponent(s, low, component, open, count)
		}
	}
	return component, count
}

// advance moves along the edges of s to the next undiscovered successor, or returns -1 when none is left. The
// low numbers of successors that are still open are folded in closeComponent, once they are final.
func (g *graph) advance(s int32, edge []int64, low, component []int32) int32 {
	end := g.first[s+1]
	for e := edge[s]; e < end; e++ {
		t := g.next[e]
		if component[t] == -2 && low[t] == 0 {
			edge[s] = e
			return t
		}
	}
	edge[s] = end
	return -1
}

// closeComponent ends the search below s: it takes the lowest number its successors reach, and if that is its
// own, takes the component from the open stack.
func (g *graph) closeComponent(s int32, low, component, open []int32, count int) ([]int32, int) {
	own := low[s]
	lowest := own
	for _, t := range g.next[g.first[s]:g.first[s+1]] {
		if component[t] == -2 && low[t] < lowest {
			lowest = low[t]
		}
	}
	low[s] = lowest
	if lowest < own {
		return open, count
	}
	for {
		t := open[len(open)-1]
		open = open[:len(open)-1]
		component[t] = int32(count)
		if t == s {
			return open, count + 1
		}
	}
}
