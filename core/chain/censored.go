package chain

// censored is an irreducible chain watched at its visits to a cut. It applies the transition matrix of the
// watched chain without forming it, by one pass over all transitions.
type censored struct {
	g    *graph
	c    *chosen
	exit []float64 // by position in the order: probability of leaving a state with a loop, else 1
}

// newCensored prepares the passes.
func newCensored(g *graph, c *chosen) *censored {
	w := &censored{g: g, c: c, exit: make([]float64, len(c.order))}
	for i, s := range c.order {
		w.exit[i] = 1
		if leave, looped := leaving(g, s); looped {
			w.exit[i] = leave
		}
	}
	return w
}

// leaving returns the probability of leaving s for another state, and whether s has a loop.
func leaving(g *graph, s int32) (leave float64, looped bool) {
	next, probability := g.row(s)
	for e, t := range next {
		if t == s {
			looped = true
			continue
		}
		leave += probability[e]
	}
	return leave, looped
}

// backward sets out[k], for every cut state k, to the expected sum of source over the states seen from k on,
// k included, up to the next cut state, plus final of that one. values is scratch, one number a state.
func (w *censored) backward(source, final, values, out []float64) {
	g, c := w.g, w.c
	for k, s := range c.cut {
		values[s] = final[k]
	}
	for i := len(c.order) - 1; i >= 0; i-- {
		s := c.order[i]
		values[s] = 0
		next, probability := g.row(s)
		total := source[s]
		for e, t := range next {
			total += probability[e] * values[t]
		}
		values[s] = total / w.exit[i]
	}
	for k, s := range c.cut {
		next, probability := g.row(s)
		total := source[s]
		for e, t := range next {
			total += probability[e] * values[t]
		}
		out[k] = total
	}
}

// forward spreads the visits x of the cut states over all states, into visits, and sets out to the visits
// that then arrive at the cut: the product of x with the matrix of the watched chain.
func (w *censored) forward(x, visits, out []float64) {
	g, c := w.g, w.c
	clear(visits)
	for k, s := range c.cut {
		next, probability := g.row(s)
		for e, t := range next {
			visits[t] += x[k] * probability[e]
		}
	}
	for i, s := range c.order {
		next, probability := g.row(s)
		v := visits[s] / w.exit[i]
		for e, t := range next {
			visits[t] += v * probability[e]
		}
		visits[s] = v // a loop has added to it: its visits are v in all
	}
	for k, s := range c.cut {
		out[k] = visits[s]
		visits[s] = x[k]
	}
}
