package chain

import (
	"cmp"
	"slices"
)

// chosen is a set of states, the cut, that every cycle of the chain passes through, cycles of one state left
// out, and the other states in an order in which every edge goes to a later place or to the cut.
type chosen struct {
	cut   []int32
	order []int32 // the states outside the cut
	place []int32 // state -> position in cut, or -1
}

// hints describes states to the choice of a cut. Any hints give a right cut; good ones give a small one.
type hints struct {
	// together is the number of running batches if all of them have just started, else 0, by state.
	together []uint8
	// leading says that the running batch of the highest model has just started, by state. Every cycle holds
	// such a state: residual times only fall between launches, so on a cycle the highest model that ever runs
	// launches.
	leading []bool
	// phase numbers the vectors of residual times, by state.
	phase  []int32
	phases int
}

// chooseCut picks the cut of an irreducible chain. It takes states where several batches start together as
// long as there are cycles without them, then whole phases, then leading states, and at last any state that
// closes a cycle.
func chooseCut(g *graph, h *hints) *chosen {
	n := g.size()
	l := &left{g: g, removed: make([]bool, n)}
	l.find()
	most := uint8(0)
	for _, t := range h.together {
		most = max(most, t)
	}
	for m := most; m >= 1; m-- {
		l.remove(func(s int) bool { return h.together[s] == m })
	}
	if l.looped != nil {
		phases := cutPhases(g, h, l.component, l.looped)
		l.remove(func(s int) bool { return phases[h.phase[s]] })
	}
	l.remove(func(s int) bool { return h.leading[s] })
	for l.looped != nil { // only if the hints are wrong: one state of every cyclic component
		first := map[int32]int{}
		for s := n - 1; s >= 0; s-- {
			first[l.component[s]] = s
		}
		l.remove(func(s int) bool { return first[l.component[s]] == s })
	}
	return arrange(g, l.removed, l.component)
}

// left is what a chain holds when some states are removed.
type left struct {
	g         *graph
	removed   []bool
	component []int32
	looped    []bool // by component: it has cycles of more than one state; nil if none has
}

// find brings the components up to date.
func (l *left) find() { l.component, l.looped = cycles(l.g, l.removed) }

// remove removes the states of cyclic components that match.
func (l *left) remove(match func(s int) bool) {
	if l.looped == nil {
		return
	}
	changed := false
	for s := range l.removed {
		if !l.removed[s] && l.looped[l.component[s]] && match(s) {
			l.removed[s] = true
			changed = true
		}
	}
	if changed {
		l.find()
	}
}

// cycles returns the components of the states that are left and which of them have more than one state, nil
// if none.
func cycles(g *graph, removed []bool) (component []int32, looped []bool) {
	component, count := g.components(removed)
	looped = make([]bool, count)
	seen := make([]bool, count)
	found := false
	for _, c := range component {
		if c < 0 {
			continue
		}
		if seen[c] {
			looped[c] = true
			found = true
		}
		seen[c] = true
	}
	if !found {
		return component, nil
	}
	return component, looped
}

// arrange orders the states outside the cut by the length of the longest way to it, longest first, equal ones
// by number: neighbours in the order then have neighbours as successors.
func arrange(g *graph, removed []bool, component []int32) *chosen {
	n := g.size()
	c := &chosen{place: make([]int32, n)}
	byComponent := make([]int32, n)
	for s := range int32(n) {
		c.place[s] = -1
		if removed[s] {
			c.place[s] = int32(len(c.cut))
			c.cut = append(c.cut, s)
			continue
		}
		byComponent[component[s]] = s
	}
	if len(c.cut) == 0 { // a single state with a loop
		c.cut, c.place[0] = []int32{0}, 0
		return c
	}
	level := make([]int32, n)
	inner := n - len(c.cut)
	deepest := int32(0)
	for _, s := range byComponent[:inner] {
		next, _ := g.row(s)
		l := int32(0)
		for _, t := range next {
			if t != s && !removed[t] {
				l = max(l, level[t]+1)
			}
		}
		level[s] = l
		deepest = max(deepest, l)
	}
	at := make([]int, deepest+2)
	for s := range n {
		if !removed[s] {
			at[deepest-level[s]+1]++
		}
	}
	for l := range deepest + 1 {
		at[l+1] += at[l]
	}
	c.order = make([]int32, inner)
	for s := range int32(n) {
		if !removed[s] {
			l := deepest - level[s]
			c.order[at[l]] = s
			at[l]++
		}
	}
	return c
}

// cutPhases chooses phases so that the cyclic components, looked at by phase alone, have no cycle of more
// than one phase without them. Greedy: of the phases on cycles, the one with the most ways through it for its
// states, later on several at a time.
func cutPhases(g *graph, h *hints, component []int32, looped []bool) []bool {
	weight := make([]float64, h.phases)
	links := map[[2]int32]bool{}
	flow := &graph{first: make([]int64, 1)}
	from := make([][]int32, h.phases)
	for s, c := range component {
		if c < 0 || !looped[c] {
			continue
		}
		weight[h.phase[s]]++
		next, _ := g.row(int32(s))
		for _, t := range next {
			link := [2]int32{h.phase[s], h.phase[t]}
			if component[t] == c && link[0] != link[1] && !links[link] {
				links[link] = true
				from[link[0]] = append(from[link[0]], link[1])
			}
		}
	}
	for _, targets := range from {
		flow.next = append(flow.next, targets...)
		flow.first = append(flow.first, int64(len(flow.next)))
	}
	cut := make([]bool, h.phases)
	for round := 0; ; round++ {
		component, looped := cycles(flow, cut)
		if looped == nil {
			break
		}
		for _, s := range busiest(flow, weight, component, looped, 1<<(round/8)) {
			cut[s] = true
		}
	}
	return cut
}

// busiest returns, for every cyclic component, the count nodes with the largest product of ways in and out
// per weight.
func busiest(g *graph, weight []float64, component []int32, looped []bool, count int) []int32 {
	in := make([]float64, g.size())
	out := make([]float64, g.size())
	var nodes []int32
	for s, c := range component {
		if c < 0 || !looped[c] {
			continue
		}
		nodes = append(nodes, int32(s))
		for _, t := range g.next[g.first[s]:g.first[s+1]] {
			if component[t] == c {
				out[s]++
				in[t]++
			}
		}
	}
	slices.SortStableFunc(nodes, func(s, t int32) int {
		return cmp.Or(cmp.Compare(component[s], component[t]),
			cmp.Compare(in[t]*out[t]/weight[t], in[s]*out[s]/weight[s]))
	})
	var best []int32
	taken, last := 0, int32(-1)
	for _, s := range nodes {
		if component[s] != last {
			taken, last = 0, component[s]
		}
		if taken < count {
			best = append(best, s)
			taken++
		}
	}
	return best
}
