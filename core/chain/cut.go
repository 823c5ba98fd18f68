package chain

// chosen is a set of states, the cut, that every cycle of the chain passes through, cycles of one state left out,
// and the other states in an order in which every edge goes to a later place or to the cut.
type chosen struct {
	cut   []int32
	order []int32 // the states outside the cut
	place []int32 // state -> position in cut, or -1
}

// hints describes states to the choice of a cut. Any hints give a right cut; good ones give a small one.
type hints struct {
	// together is the number of running batches if all of them have just started, else 0, by state.
	together []uint8
	// leading says that the running batch of the highest model has just started, by state. Every cycle holds such
	// a state: residual times only fall between launches, so on a cycle the highest model that ever runs launches.
	leading []bool
	// phase numbers the vectors of residual times, by state.
	phase  []int32
	phases int
}

// chooseCut picks the cut of an irreducible chain. It takes states where several batches start together as long as
// there are cycles without them, then whole phases, then leading states, and at last any state that closes a cycle.
func chooseCut(g *graph, h *hints) *chosen {
	n := g.size()
	removed := make([]bool, n)
	component, looped := cycles(g, removed)
	most := uint8(0)
	for _, t := range h.together {
		most = max(most, t)
	}
	for m := most; m >= 1 && looped != nil; m-- {
		component, looped = removeWhere(g, removed, component, looped, func(s int) bool { return h.together[s] == m })
	}
	if looped != nil {
		phases := cutPhases(g, h, component, looped)
		component, looped = removeWhere(g, removed, component, looped, func(s int) bool { return phases[h.phase[s]] })
	}
	if looped != nil {
		component, looped = removeWhere(g, removed, component, looped, func(s int) bool { return h.leading[s] })
	}
	for looped != nil { // only if the hints are wrong: one state of every cyclic component
		first := map[int32]int{}
		for s := n - 1; s >= 0; s-- {
			first[component[s]] = s
		}
		component, looped = removeWhere(g, removed, component, looped,
			func(s int) bool { return first[component[s]] == s })
	}
	return arrange(g, removed, component)
}

// removeWhere removes the states of cyclic components that match, and finds the cycles that are left.
func removeWhere(g *graph, removed []bool, component []int32, looped []bool, match func(s int) bool) ([]int32, []bool) {
	changed := false
	for s := range removed {
		if !removed[s] && looped[component[s]] && match(s) {
			removed[s] = true
			changed = true
		}
	}
	if !changed {
		return component, looped
	}
	return cycles(g, removed)
}

// cycles returns the components of the states that are left and which of them have more than one state, nil if none.
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

// arrange orders the states outside the cut by the length of the longest way to it, longest first, equal ones by
// number: neighbours in the order then have neighbours as successors.
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

// cutPhases chooses phases so that the cyclic components, looked at by phase alone, have no cycle of more than one
// phase without them. Greedy: of the phases on cycles, the one with the most ways through it for its states.
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
	for range h.phases {
		component, looped := cycles(flow, cut)
		if looped == nil {
			break
		}
		for _, s := range busiest(flow, weight, component, looped) {
			cut[s] = true
		}
	}
	return cut
}

// busiest returns, for every cyclic component, the node with the largest product of ways in and out per weight.
func busiest(g *graph, weight []float64, component []int32, looped []bool) []int32 {
	in := make([]float64, g.size())
	out := make([]float64, g.size())
	for s, c := range component {
		for _, t := range g.next[g.first[s]:g.first[s+1]] {
			if c >= 0 && component[t] == c {
				out[s]++
				in[t]++
			}
		}
	}
	best := make([]int32, len(looped))
	for c := range best {
		best[c] = -1
	}
	score := func(s int32) float64 { return in[s] * out[s] / weight[s] }
	for s, c := range component {
		if c >= 0 && looped[c] && (best[c] < 0 || score(int32(s)) > score(best[c])) {
			best[c] = int32(s)
		}
	}
	var nodes []int32
	for _, s := range best {
		if s >= 0 {
			nodes = append(nodes, s)
		}
	}
	return nodes
}
