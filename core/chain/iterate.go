package chain

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Limits of the iteration: vectors kept by GMRES, and restarts.
const (
	krylovVectors = 40
	krylovCycles  = 25
)

// stalled is the factor by which a restart must reduce the residual for another one to follow.
const stalled = 0.9

// iterated solves the chain by GMRES on the watched chain: once from the right for the reward rate and its
// bias, which certify turns into a proven interval, and once from the left for the visits. Only the reward
// rate is proven; other means rest on the residual of the visits, 1e-13 of their sum if that can be had.
func (w *censored) iterated(reward, hold []float64) *law {
	l := &law{visits: make([]float64, w.g.size()), cut: len(w.c.cut), method: Iteration}
	x := w.cutVisits(l.visits)
	w.forward(x, l.visits, make([]float64, len(x)))
	rate := ratio(l.visits, reward, hold)
	l.low, l.high = w.enclose(reward, hold, rate, x)
	l.relative = relativeError(rate, l.low, l.high)
	return l
}

// enclose solves for reward rate and bias until the interval of certify is narrow or the residual falls no
// more. The unknown vector holds the bias of each cut state, and in the place of the reference state, whose
// bias is 0, the correction of the rate.
func (w *censored) enclose(reward, hold []float64, rate float64, x []float64) (low, high float64) {
	size := len(x)
	reference := floats.MaxIdx(x)
	values := make([]float64, w.g.size())
	zero, none := make([]float64, size), make([]float64, w.g.size())
	rewards, times := make([]float64, size), make([]float64, size)
	w.backward(reward, zero, values, rewards)
	w.backward(hold, zero, values, times)
	floats.AddScaled(rewards, -rate, times)
	floats.Scale(1/floats.Dot(x, times), times)
	floats.Scale(floats.Sum(x), times)
	bias := make([]float64, size)
	apply := func(dst, v []float64) {
		copy(bias, v)
		bias[reference] = 0
		w.backward(none, bias, values, dst)
		for k := range dst {
			dst[k] = bias[k] - dst[k] + v[reference]*times[k]
		}
	}
	low, high = 0, math.Inf(1)
	solution := make([]float64, size)
	last := math.Inf(1)
	for range krylovCycles {
		residual := gmres(apply, rewards, solution, 1e-15)
		copy(bias, solution)
		bias[reference] = 0
		lower, upper := w.certify(reward, hold, bias, rate)
		low, high = max(low, lower), min(high, upper)
		if high-low <= wanted*low || residual > stalled*last {
			break
		}
		last = residual
	}
	return low, high
}

// cutVisits returns the stationary vector of the watched chain with the largest entry about 1. visits is
// scratch.
func (w *censored) cutVisits(visits []float64) []float64 {
	size := len(w.c.cut)
	x, moved := make([]float64, size), make([]float64, size)
	floats.AddConst(1, x)
	step := func() {
		w.forward(x, visits, moved)
		floats.Add(x, moved)
		floats.Scale(1/floats.Max(x), x)
	}
	for range 10 {
		step()
	}
	reference := floats.MaxIdx(x)
	v := make([]float64, size)
	apply := func(dst, u []float64) {
		copy(v, u)
		v[reference] = 0
		w.forward(v, visits, moved)
		for k := range dst {
			dst[k] = v[k] - moved[k]
		}
		dst[reference] = u[reference]
	}
	arrivals := make([]float64, size)
	v[reference] = 1
	w.forward(v, visits, arrivals)
	arrivals[reference] = 0
	solution := append([]float64(nil), x...)
	floats.Scale(1/x[reference], solution)
	solution[reference] = 0
	last := math.Inf(1)
	for range krylovCycles {
		residual := gmres(apply, arrivals, solution, 1e-15)
		if residual <= 1e-14 || residual > stalled*last {
			break
		}
		last = residual
	}
	copy(x, solution)
	x[reference] = 1
	for k := range x {
		x[k] = math.Abs(x[k]) // a vanishing entry may come out on the wrong side of 0
	}
	step()
	return x
}

// gmres improves x as a solution of A x = b by one cycle of krylovVectors steps of GMRES (Saad and Schultz,
// SIAM J. Sci. Stat. Comput. 7 (1986) 856), A given by its product. It stops early when the residual,
// relative to b, is at most tolerance, and returns the estimate of the residual.
func gmres(apply func(dst, v []float64), b, x []float64, tolerance float64) float64 {
	size := len(b)
	norm := floats.Norm(b, 2)
	if norm == 0 {
		clear(x)
		return 0
	}
	r := make([]float64, size)
	apply(r, x)
	floats.SubTo(r, b, r)
	start := floats.Norm(r, 2)
	if start <= tolerance*norm {
		return start / norm
	}
	floats.Scale(1/start, r)
	basis := [][]float64{r}
	var upper [][]float64 // columns of the triangular factor
	var cosines, sines []float64
	right := []float64{start}
	for j := range krylovVectors {
		v := make([]float64, size)
		apply(v, basis[j])
		column := orthogonalise(v, basis)
		for i := range j {
			u, v := column[i], column[i+1]
			column[i], column[i+1] = cosines[i]*u+sines[i]*v, cosines[i]*v-sines[i]*u
		}
		length := math.Hypot(column[j], column[j+1])
		if length == 0 {
			break
		}
		cosine, sine := column[j]/length, column[j+1]/length
		broke := column[j+1] <= 1e-300
		column[j] = length
		cosines, sines = append(cosines, cosine), append(sines, sine)
		upper = append(upper, column)
		right = append(right, -sine*right[j])
		right[j] *= cosine
		if broke || math.Abs(right[j+1]) <= tolerance*norm {
			break
		}
		basis = append(basis, v)
	}
	steps := len(upper)
	for j := steps - 1; j >= 0; j-- {
		right[j] /= upper[j][j]
		for i := range j {
			right[i] -= upper[j][i] * right[j]
		}
		floats.AddScaled(x, right[j], basis[j])
	}
	return math.Abs(right[steps]) / norm
}

// orthogonalise makes v orthogonal to the basis and of length 1, by modified Gram-Schmidt done twice. It
// returns its coordinates, the length last.
func orthogonalise(v []float64, basis [][]float64) []float64 {
	column := make([]float64, len(basis)+1)
	for range 2 {
		for i, u := range basis {
			d := floats.Dot(u, v)
			column[i] += d
			floats.AddScaled(v, -d, u)
		}
	}
	length := floats.Norm(v, 2)
	column[len(basis)] = length
	if length > 0 {
		floats.Scale(1/length, v)
	}
	return column
}
