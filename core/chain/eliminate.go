package chain

import (
	"errors"
	"math"
	"sort"

	"gonum.org/v1/gonum/floats"
)

// errUnderflow is the error of a chain whose elimination leaves the range of float64.
var errUnderflow = errors.New("chain: probabilities leave the range of float64")

// blockFloats is how many numbers one block of columns of matrix may take.
const blockFloats = 1 << 25

// matrix returns the transition matrix of the watched chain, row by row. Only additions, multiplications and
// divisions of numbers that are not negative are used.
func (w *censored) matrix() []float64 {
	size, inner := len(w.c.cut), len(w.c.order)
	out := make([]float64, size*size)
	width := min(size, max(8, blockFloats/max(1, inner)))
	slots := make([]int32, w.g.size()) // state -> row of the block
	for i, s := range w.c.order {
		slots[s] = int32(i)
	}
	block := make([]float64, inner*width)
	for from := 0; from < size; from += width {
		columns := min(width, size-from)
		for i := inner - 1; i >= 0; i-- {
			dst := block[i*width : i*width+columns]
			clear(dst)
			w.gather(w.c.order[i], from, width, slots, block, dst)
			if w.exit[i] != 1 {
				floats.Scale(1/w.exit[i], dst)
			}
		}
		for k, s := range w.c.cut {
			w.gather(s, from, width, slots, block, out[k*size+from:k*size+from+columns])
		}
	}
	return out
}

// gather adds up the rows of the successors of s, weighted by their probabilities; loops outside the cut are
// left out.
func (w *censored) gather(s int32, from, width int, slots []int32, block, dst []float64) {
	next, probability := w.g.row(s)
	columns := len(dst)
	for e, t := range next {
		if at := w.c.place[t]; at >= 0 {
			if column := int(at) - from; column >= 0 && column < columns {
				dst[column] += probability[e]
			}
			continue
		}
		if t != s {
			at := int(slots[t]) * width
			floats.AddScaled(dst, probability[e], block[at:at+columns])
		}
	}
}

// factors is the elimination of the matrix of an irreducible chain by Grassmann, Taksar and Heyman,
// Operations Research 33 (1985) 1107: it never reads the diagonal and subtracts nothing.
type factors struct {
	size    int
	order   []int // place -> state; states that are often visited first, so that they are eliminated last
	leaving []float64
	// a holds below the diagonal the rows of the chains watched on ever fewer states, above it the shares
	// in which a removed state passes on what comes to it.
	a []float64
}

// eliminate returns the factors of matrix, the transition matrix of an irreducible chain of the given size.
func eliminate(matrix []float64, size int) (*factors, error) {
	f := &factors{size: size, order: byVisits(matrix, size), leaving: make([]float64, size)}
	f.a = make([]float64, size*size)
	for i, s := range f.order {
		for j, t := range f.order {
			f.a[i*size+j] = matrix[s*size+t]
		}
	}
	for m := size - 1; m > 0; m-- {
		last := f.a[m*size : m*size+m]
		f.leaving[m] = sum(last)
		if !(f.leaving[m] > 0) {
			return nil, errUnderflow
		}
		for i := range m {
			share := f.a[i*size+m] / f.leaving[m]
			f.a[i*size+m] = share
			if share > 0 {
				floats.AddScaled(f.a[i*size:i*size+m], share, last)
			}
		}
	}
	return f, nil
}

// byVisits returns the states of a chain by falling rough frequency, that after some damped steps from
// anywhere. Any order is right; with rare states last, fewer digits of the bias are lost.
func byVisits(matrix []float64, size int) []int {
	x, moved := make([]float64, size), make([]float64, size)
	floats.AddConst(1, x)
	for range 20 {
		copy(moved, x)
		for i, v := range x {
			floats.AddScaled(moved, v, matrix[i*size:(i+1)*size])
		}
		floats.Scale(1/floats.Max(moved), moved)
		x, moved = moved, x
	}
	order := make([]int, size)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return x[order[i]] > x[order[j]] })
	return order
}

// stationary returns the stationary vector with the largest entry 1.
func (f *factors) stationary() ([]float64, error) {
	placed := make([]float64, f.size)
	placed[0] = 1
	for i := range f.size { // by rows: entry i is final when all earlier ones have been spread
		floats.AddScaled(placed[i+1:], placed[i], f.a[i*f.size+i+1:(i+1)*f.size])
	}
	largest := floats.Max(placed)
	if math.IsInf(largest, 0) || math.IsNaN(largest) {
		return nil, errUnderflow
	}
	visits := make([]float64, f.size)
	for i, s := range f.order {
		visits[s] = placed[i] / largest
	}
	return visits, nil
}

// bias returns a solution h of h = b + P h that is 0 in one place, for b of stationary mean 0.
func (f *factors) bias(b []float64) []float64 {
	placed := make([]float64, f.size)
	for i, s := range f.order {
		placed[i] = b[s]
	}
	for m := f.size - 1; m > 0; m-- {
		for i := range m {
			placed[i] += f.a[i*f.size+m] * placed[m]
		}
	}
	placed[0] = 0
	for m := 1; m < f.size; m++ {
		placed[m] = (placed[m] + floats.Dot(f.a[m*f.size:m*f.size+m], placed[:m])) / f.leaving[m]
	}
	h := make([]float64, f.size)
	for i, s := range f.order {
		h[s] = placed[i]
	}
	return h
}

// sum adds numbers that are not negative with compensation (Neumaier), to within two roundings.
func sum(values []float64) float64 {
	var c compensated
	for _, v := range values {
		c.add(v)
	}
	return c.value()
}

// compensated is a sum of numbers that are not negative, good to two roundings (Neumaier).
type compensated struct{ total, lost float64 }

func (c *compensated) add(v float64) {
	t := c.total + v
	if c.total >= v {
		c.lost += (c.total - t) + v
	} else {
		c.lost += (v - t) + c.total
	}
	c.total = t
}

func (c *compensated) value() float64 { return c.total + c.lost }
