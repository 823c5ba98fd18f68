package chain

// unit is the largest relative error of one rounding to float64. Counts of roundings below bound relative
// errors in this unit; errors of second order are left out.
const unit = 1.0 / (1 << 53)

// backwardRoundings returns the largest number of roundings that any term of a backward pass goes through.
func (w *censored) backwardRoundings() float64 {
	g, c := w.g, w.c
	count := make([]float64, g.size())
	most := 0.0
	row := func(s int32) float64 {
		next, _ := g.row(s)
		deepest := 0.0
		for _, t := range next {
			if t != s && c.place[t] < 0 {
				deepest = max(deepest, count[t])
			}
		}
		return deepest + g.roundings + float64(len(next)) + 2
	}
	for i := len(c.order) - 1; i >= 0; i-- {
		s := c.order[i]
		count[s] = row(s) + w.exitRoundings(i)
	}
	for _, s := range c.cut {
		most = max(most, row(s))
	}
	return most
}

// exitRoundings returns the number of roundings that the division by exit[i] adds.
func (w *censored) exitRoundings(i int) float64 {
	if w.exit[i] == 1 {
		return 0
	}
	next, _ := w.g.row(w.c.order[i])
	return w.g.roundings + float64(len(next)) + 2
}

// forwardRoundings returns the largest number of roundings that a forward pass adds to the relative errors of
// visits that are not negative.
func (w *censored) forwardRoundings() float64 {
	g, c := w.g, w.c
	count := make([]float64, g.size())
	ways := make([]int32, g.size())
	push := func(s int32) {
		next, _ := g.row(s)
		for _, t := range next {
			if c.place[t] < 0 && t != s {
				count[t] = max(count[t], count[s])
				ways[t]++
			}
		}
	}
	for _, s := range c.cut {
		push(s)
	}
	most := 0.0
	for i, s := range c.order {
		count[s] += g.roundings + 1 + float64(ways[s]) + w.exitRoundings(i)
		most = max(most, count[s])
		push(s)
	}
	return most
}

// eliminationRoundings bounds the relative error of the stationary vector from factors of the given size, in
// units of a rounding, when every entry of the matrix went through roundings of them.
//
// By the Markov chain tree theorem a stationary probability of m states is a sum over spanning trees of
// products of m-1 off-diagonal entries. So if every entry is off by a factor within 1 +- d, the ratio of two
// probabilities is off by at most 2(m-1)d, whatever the condition of the chain. One elimination step perturbs
// the entries of the remaining chain by at most 5 roundings: two in the compensated sum, a division, a
// product, an addition. The way back adds m+2 for the m-th entry.
func eliminationRoundings(size int, roundings float64) float64 {
	total := 2*float64(size)*roundings + 1
	for m := 2; m <= size; m++ {
		total += 2*5*float64(m-2) + float64(m+2)
	}
	return total
}
