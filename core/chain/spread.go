package chain

import (
	"encoding/binary"
	"sort"
)

// least is the smallest probability of one transition that is kept. Smaller ones are taken as 0: what they
// lead to is also reached by moves one after the other, whose probabilities are kept (leastRouting).
const least = 1e-290

// spread is the law of where the requests of completed batches go: row e says that arrivals[e*models+j]
// requests go to model j, with probability pool[offset+e].
type spread struct {
	offset   int64
	count    int
	arrivals []uint16
	// roundings bounds the relative rounding error of every probability, in units of 2^-53.
	roundings float64
}

// spreads computes and keeps the spreads of one Model. Models with the same row of P share a row class, since
// only the sum of their batches matters.
type spreads struct {
	models  int
	rows    [][]float64 // distinct rows of P
	classOf []int       // row class of each model
	byKey   map[string]*spread
	pool    []float64
	key     []byte
	totals  []int
	limit   float64 // most entries of a spread, and most work for one
}

// newSpreads returns the empty store for the routing matrix p, whose rows sum to 1. limit is the most entries
// that a spread may have.
func newSpreads(p [][]float64, limit int) *spreads {
	s := &spreads{models: len(p), limit: float64(limit), byKey: map[string]*spread{}}
	s.classOf = make([]int, len(p))
	for i, row := range p {
		s.classOf[i] = -1
		for c, known := range s.rows {
			if equalRows(row, known) {
				s.classOf[i] = c
				break
			}
		}
		if s.classOf[i] < 0 {
			s.classOf[i] = len(s.rows)
			s.rows = append(s.rows, row)
		}
	}
	s.totals = make([]int, len(s.rows))
	s.key = make([]byte, 2*len(s.rows))
	return s
}

func equalRows(a, b []float64) bool {
	for j := range a {
		if a[j] != b[j] {
			return false
		}
	}
	return true
}

// of returns the spread of totals[c] requests that completed on models of row class c, or nil if it is larger
// than the limit. totals is left as it was.
func (s *spreads) of(totals []int) *spread {
	for c, t := range totals {
		binary.LittleEndian.PutUint16(s.key[2*c:], uint16(t))
	}
	if found := s.byKey[string(s.key)]; found != nil {
		return found
	}
	key := string(s.key)
	last := len(totals) - 1
	for last > 0 && totals[last] == 0 {
		last--
	}
	if s.compositions(last, totals[last]) > s.limit {
		return nil
	}
	made := s.multinomial(last, totals[last])
	rest := append([]int(nil), totals...)
	rest[last] = 0
	for _, t := range rest {
		if t > 0 {
			before := s.of(rest)
			if before == nil || float64(before.count)*float64(made.count) > s.limit {
				return nil
			}
			made = s.convolve(before, made)
			break
		}
	}
	s.byKey[key] = made
	return made
}

// compositions returns the number of ways in which rows requests of one row class can go.
func (s *spreads) compositions(class, rows int) float64 {
	ways, targets := 1.0, 0
	for _, p := range s.rows[class] {
		if p > 0 {
			targets++
		}
	}
	for t := 1; t < targets; t++ {
		ways *= float64(rows+t) / float64(t)
	}
	return ways
}

// multinomial returns the spread of rows requests of one row class, arrivals in lexicographic order.
func (s *spreads) multinomial(class, rows int) *spread {
	p := s.rows[class]
	var targets []int
	for j, pj := range p {
		if pj > 0 {
			targets = append(targets, j)
		}
	}
	out := &spread{offset: int64(len(s.pool)), roundings: float64(rows*(s.models+5) + 1)}
	counts := make([]int, len(targets))
	var fill func(t, left int)
	fill = func(t, left int) {
		if t < len(targets)-1 {
			for a := 0; a <= left; a++ {
				counts[t] = a
				fill(t+1, left-a)
			}
			return
		}
		counts[t] = left
		probability := multinomialTerm(rows, counts, targets, p)
		if probability < least {
			return
		}
		at := len(out.arrivals)
		out.arrivals = append(out.arrivals, make([]uint16, s.models)...)
		for u, a := range counts {
			out.arrivals[at+targets[u]] = uint16(a)
		}
		s.pool = append(s.pool, probability)
		out.count++
	}
	fill(0, rows)
	return out
}

// multinomialTerm returns rows!/(prod counts!) * prod p^counts. Factors are taken in an order that keeps
// partial products in range up to maxConcurrency rows; each of the rows factors costs three roundings.
func multinomialTerm(rows int, counts, targets []int, p []float64) float64 {
	x := 1.0
	for t, a := range counts {
		for i := 1; i <= a; i++ {
			x *= p[targets[t]] * (float64(rows-a+i) / float64(i))
		}
		rows -= a
	}
	return x
}

// convolve returns the law of the sum of two independent spreads, arrivals in lexicographic order.
func (s *spreads) convolve(a, b *spread) *spread {
	index := map[string]int{}
	var rows []string
	var sums []float64
	packed := make([]byte, 2*s.models)
	for x := range a.count {
		for y := range b.count {
			for j := range s.models {
				total := a.arrivals[x*s.models+j] + b.arrivals[y*s.models+j]
				binary.BigEndian.PutUint16(packed[2*j:], total)
			}
			probability := s.pool[a.offset+int64(x)] * s.pool[b.offset+int64(y)]
			if at, ok := index[string(packed)]; ok {
				sums[at] += probability
				continue
			}
			index[string(packed)] = len(rows)
			rows = append(rows, string(packed))
			sums = append(sums, probability)
		}
	}
	sort.Strings(rows)
	out := &spread{offset: int64(len(s.pool))}
	out.roundings = a.roundings + b.roundings + float64(min(a.count, b.count)) + 1
	for _, row := range rows {
		probability := sums[index[row]]
		if probability < least {
			continue
		}
		s.pool = append(s.pool, probability)
		out.count++
		for j := range s.models {
			out.arrivals = append(out.arrivals, binary.BigEndian.Uint16([]byte(row[2*j:2*j+2])))
		}
	}
	return out
}
