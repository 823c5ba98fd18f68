package chain

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/floats"
)

// law is the stationary law of an irreducible chain: how often each state is visited, up to a common factor.
type law struct {
	visits []float64
	// roundings bounds the relative error of every entry, relative to one another, in units of 2^-53.
	roundings float64
	cut       int
}

// unit is the largest relative rounding error of one operation.
const unit = 1.0 / (1 << 53)

var errUnderflow = errors.New("chain: probabilities leave the range of float64; the chain cannot be solved in it")

// eliminate returns the stationary law of an irreducible chain by exact elimination without subtractions.
//
// The chain watched only at its visits to the cut is again a Markov chain. Its transition matrix comes from one pass
// over the other states, which form an acyclic graph but for loops; its stationary vector from the elimination of
// Grassmann, Taksar and Heyman; and the visits to all other states from a pass the other way. Every operation adds,
// multiplies or divides numbers that are not negative, so relative errors only add up, whatever the condition of
// the chain; roundings counts them.
func eliminate(g *graph, c *chosen) (*law, error) {
	size := len(c.cut)
	matrix := make([]float64, size*size)
	errorsIn := censor(g, c, matrix)
	cutVisits, err := gth(matrix, size)
	if err != nil {
		return nil, err
	}
	l := &law{visits: make([]float64, g.size()), cut: size}
	start := gthRoundings(size) + 2*float64(size)*errorsIn
	l.roundings = start + forward(g, c, cutVisits, l.visits)
	return l, nil
}

// blockFloats is how many numbers one block of columns of censor may take.
const blockFloats = 1 << 25

// censor fills matrix, len(c.cut) squared, with the chances that the chain, having left one cut state, is next seen
// in another. It returns the largest relative error in units of 2^-53.
func censor(g *graph, c *chosen, matrix []float64) float64 {
	size := len(c.cut)
	width := min(size, max(8, blockFloats/max(1, len(c.order))))
	slots := make([]int32, g.size()) // state -> row of the block
	for i, s := range c.order {
		slots[s] = int32(i)
	}
	roundings := censorRoundings(g, c)
	block := make([]float64, len(c.order)*width)
	for from := 0; from < size; from += width {
		columns := min(width, size-from)
		for i := len(c.order) - 1; i >= 0; i-- {
			dst := block[i*width : i*width+columns]
			clear(dst)
			stay := gather(g, c, c.order[i], from, width, slots, block, dst)
			if stay != 1 {
				floats.Scale(1/stay, dst)
			}
		}
		for i, s := range c.cut {
			gather(g, c, s, from, width, slots, block, matrix[i*size+from:i*size+from+columns])
		}
	}
	return roundings
}

// gather adds up the rows of the successors of s, weighted by their probabilities. Loops outside the cut are left
// out; it returns the probability of leaving s, summed without them, or 1 if there is none.
func gather(g *graph, c *chosen, s int32, from, width int, slots []int32, block, dst []float64) float64 {
	next, probability := g.row(s)
	looped, leave := false, 0.0
	columns := len(dst)
	for e, t := range next {
		p := probability[e]
		if at := c.place[t]; at >= 0 {
			leave += p
			if column := int(at) - from; column >= 0 && column < columns {
				dst[column] += p
			}
			continue
		}
		if t == s {
			looped = true
			continue
		}
		leave += p
		at := int(slots[t]) * width
		floats.AddScaled(dst, p, block[at:at+columns])
	}
	if looped {
		return leave
	}
	return 1
}

// censorRoundings returns the largest number of roundings that a value of censor has gone through.
func censorRoundings(g *graph, c *chosen) float64 {
	count := make([]float64, g.size())
	most := 0.0
	row := func(s int32) float64 {
		next, _ := g.row(s)
		deepest := 0.0
		looped := false
		for _, t := range next {
			if t == s && c.place[s] < 0 {
				looped = true
			} else if c.place[t] < 0 {
				deepest = max(deepest, count[t])
			}
		}
		total := deepest + g.roundings + float64(len(next)) + 1
		if looped {
			total += g.roundings + float64(len(next)) + 2
		}
		return total
	}
	for i := len(c.order) - 1; i >= 0; i-- {
		count[c.order[i]] = row(c.order[i])
	}
	for _, s := range c.cut {
		most = max(most, row(s))
	}
	return most
}

// gth returns the stationary vector of the irreducible chain whose transition matrix of the given size is a, row by
// row, with the largest entry 1. It overwrites a. It does not read the diagonal, and subtracts nothing: Grassmann,
// Taksar and Heyman, Operations Research 33 (1985) 1107.
func gth(a []float64, size int) ([]float64, error) {
	leaving := make([]float64, size)
	for m := size - 1; m > 0; m-- {
		last := a[m*size : m*size+m]
		leaving[m] = sum(last)
		if !(leaving[m] > 0) {
			return nil, errUnderflow
		}
		for i := range m {
			into := a[i*size+m] / leaving[m]
			a[i*size+m] = into
			if into > 0 {
				floats.AddScaled(a[i*size:i*size+m], into, last)
			}
		}
	}
	visits := make([]float64, size)
	visits[0] = 1
	largest := 1.0
	for m := 1; m < size; m++ {
		for i := range m {
			visits[m] += visits[i] * a[i*size+m]
		}
		largest = max(largest, visits[m])
	}
	if math.IsInf(largest, 0) || math.IsNaN(largest) {
		return nil, errUnderflow
	}
	floats.Scale(1/largest, visits)
	return visits, nil
}

// gthRoundings bounds the relative error of gth's result for an exact matrix, in units of 2^-53, the rounding errors
// of second order left out.
//
// By the Markov chain tree theorem a stationary probability is a sum over spanning trees of products of m-1
// off-diagonal entries for m states. So if every entry is off by a factor within 1 +- d, the ratio of two
// probabilities is off by at most 2(m-1)d. One elimination step perturbs the entries of the remaining chain by at
// most 5 roundings: two in the compensated sum, a division, a product, an addition. The way back adds m+2.
func gthRoundings(size int) float64 {
	total := 0.0
	for m := 2; m <= size; m++ {
		total += 2*5*float64(m-2) + float64(m+2)
	}
	return total + 1
}

// sum adds numbers that are not negative with compensation (Neumaier), to within two roundings.
func sum(values []float64) float64 {
	total, lost := 0.0, 0.0
	for _, v := range values {
		t := total + v
		if total >= v {
			lost += (total - t) + v
		} else {
			lost += (v - t) + total
		}
		total = t
	}
	return total + lost
}

// forward spreads the visits of the cut states over all states. It returns the largest number of roundings that it
// added.
func forward(g *graph, c *chosen, cutVisits, visits []float64) float64 {
	count := make([]float64, g.size())
	ways := make([]int32, g.size())
	push := func(s int32, v, roundings float64) {
		next, probability := g.row(s)
		for e, t := range next {
			if c.place[t] >= 0 || t == s {
				continue
			}
			visits[t] += v * probability[e]
			count[t] = max(count[t], roundings)
			ways[t]++
		}
	}
	for i, s := range c.cut {
		visits[s] = cutVisits[i]
		push(s, visits[s], 0)
	}
	most := 0.0
	for _, s := range c.order {
		count[s] += g.roundings + 1 + float64(ways[s])
		if leave, looped := leaving(g, s); looped {
			visits[s] /= leave
			next, _ := g.row(s)
			count[s] += g.roundings + float64(len(next)) + 1
		}
		most = max(most, count[s])
		push(s, visits[s], count[s])
	}
	return most
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
