package chain

// Class describes one closed class of the chain: a set of states that, once entered, is never left.
type Class struct {
	// Weight is the chance that the chain, started with all requests waiting at Model.Start, ends in this
	// class.
	Weight float64
	// States is the number of states of the class.
	States int
	// ThroughputTokS is the throughput once in this class, tokens per second.
	ThroughputTokS float64
	// Period is the period of the class in transitions, PeriodNs in time: the greatest common divisor of the
	// numbers of transitions, or of the times, of all its cycles. A class with a period has its stationary
	// law all the same, and time averages follow it.
	Period   int
	PeriodNs int64
}

// closedClasses returns the states of each closed class, classes in order of their first state, states
// ascending, and the number of states that are in none.
func closedClasses(g *graph) (classes [][]int32, transient int) {
	component, count := g.components(nil)
	open := make([]bool, count)
	for s, c := range component {
		for _, t := range g.next[g.first[s]:g.first[s+1]] {
			if component[t] != c {
				open[c] = true
				break
			}
		}
	}
	position := make([]int, count)
	for s, c := range component {
		if open[c] {
			transient++
			continue
		}
		if position[c] == 0 {
			classes = append(classes, nil)
			position[c] = len(classes)
		}
		at := position[c] - 1
		classes[at] = append(classes[at], int32(s))
	}
	return classes, transient
}

// absorption returns the chance to end in each closed class when the chain starts in state 0, and a bound on
// the relative error. It closes the chain: each class becomes one state that leads back to state 0. The chain
// so made is irreducible, and it visits the classes in proportion to the chances.
func absorption(g *graph, classes [][]int32, h *hints) (chances []float64, relative float64, err error) {
	if len(classes) == 1 {
		return []float64{1}, 0, nil
	}
	classOf := make([]int32, g.size())
	for c, members := range classes {
		for _, s := range members {
			classOf[s] = int32(c) + 1
		}
	}
	local := make([]int32, g.size())
	var transient []int32
	for s, c := range classOf {
		if c == 0 {
			local[s] = int32(len(transient))
			transient = append(transient, int32(s))
		}
	}
	closed := &graph{first: make([]int64, 1), roundings: g.roundings, pool: g.pool}
	for _, s := range transient {
		next, _ := g.row(s)
		for _, t := range next {
			to := local[t]
			if c := classOf[t]; c > 0 {
				to = int32(len(transient)) + c - 1
			}
			closed.next = append(closed.next, to)
		}
		closed.first = append(closed.first, int64(len(closed.next)))
		closed.odds = append(closed.odds, g.odds[s])
	}
	closed.pool = append(append([]float64(nil), g.pool...), 1)
	for range classes {
		closed.next = append(closed.next, 0)
		closed.first = append(closed.first, int64(len(closed.next)))
		closed.odds = append(closed.odds, int64(len(g.pool)))
	}
	cut := chooseCut(closed, h.extend(transient, len(classes)))
	_, visits, relative, err := newCensored(closed, cut).elimination()
	if err != nil {
		return nil, 0, err
	}
	chances = visits[len(transient):]
	total := sum(chances)
	for c := range chances {
		chances[c] /= total
	}
	return chances, 2*relative + 3*unit, nil
}

// restrict returns the hints of members alone.
func (h *hints) restrict(members []int32) *hints {
	if len(members) == len(h.phase) {
		return h
	}
	return h.extend(members, 0)
}

// extend returns the hints of members, followed by those of more states that are best cut first.
func (h *hints) extend(members []int32, more int) *hints {
	out := &hints{phases: h.phases + more}
	for _, s := range members {
		out.together = append(out.together, h.together[s])
		out.leading = append(out.leading, h.leading[s])
		out.phase = append(out.phase, h.phase[s])
	}
	for i := range more {
		out.together = append(out.together, 255)
		out.leading = append(out.leading, true)
		out.phase = append(out.phase, int32(h.phases+i))
	}
	return out
}

// hints describes the states of a space to chooseCut.
func (sp *space) hints() *hints {
	n := sp.graph.size()
	h := &hints{together: make([]uint8, n), leading: make([]bool, n), phase: make([]int32, n)}
	phases := newIndex(sp.layout.words)
	here := newState(sp.layout.models)
	key := make([]uint64, sp.layout.words)
	for s := range int32(n) {
		sp.layout.unpack(sp.index.key(s), here)
		clear(key)
		started, running := 0, 0
		for i, b := range here.running {
			if b == 0 {
				continue
			}
			fresh := here.residue[i] == sp.lattice.ticks[i][b]
			running++
			if fresh {
				started++
			}
			h.leading[s] = fresh // the highest running model speaks last
			f := sp.layout.fields[i]
			key[f.word] |= uint64(here.residue[i]) << f.residue
		}
		if started == running {
			h.together[s] = uint8(running)
		}
		h.phase[s] = phases.add(key)
	}
	h.phases = phases.size()
	return h
}

// periods returns the period of an irreducible chain in transitions and in the unit of hold.
func periods(g *graph, hold []float64) (transitions int, time int64) {
	n := g.size()
	steps := make([]int64, n)
	at := make([]int64, n)
	seen := make([]bool, n)
	queue := []int32{0}
	seen[0] = true
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		next, _ := g.row(s)
		for _, t := range next {
			if !seen[t] {
				seen[t] = true
				steps[t], at[t] = steps[s]+1, at[s]+int64(hold[s])
				queue = append(queue, t)
			}
		}
	}
	var inSteps, inTime int64
	for s := range int32(n) {
		next, _ := g.row(s)
		for _, t := range next {
			if inSteps != 1 {
				inSteps = gcd(inSteps, abs(steps[s]+1-steps[t]))
			}
			if inTime != 1 {
				inTime = gcd(inTime, abs(at[s]+int64(hold[s])-at[t]))
			}
		}
	}
	return int(inSteps), inTime
}

func abs(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}
