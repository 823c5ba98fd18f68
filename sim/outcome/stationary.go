package outcome

import "math"

// unreachable finds a pair of states of which the second can never follow the first.
func unreachable(transition [][]float64) (from, to int, found bool) {
	n := len(transition)
	reach := make([]uint32, n) // bit t of reach[s]: t can follow s
	for s, row := range transition {
		reach[s] = 1 << s
		for t, p := range row {
			if p > 0 {
				reach[s] |= 1 << t
			}
		}
	}
	for via := range n {
		for s := range n {
			if reach[s]>>via&1 != 0 {
				reach[s] |= reach[via]
			}
		}
	}
	for s := range n {
		for t := range n {
			if reach[s]>>t&1 == 0 {
				return s, t, true
			}
		}
	}
	return 0, 0, false
}

// stationary solves share * transition = share, sum 1, for an irreducible chain by the
// elimination of Grassmann, Taksar and Heyman (Operations Research 33(5), 1985). It subtracts
// nothing, so that it is exact to rounding for nearly decomposable and periodic chains too.
func stationary(transition [][]float64) []float64 {
	n := len(transition)
	a := make([][]float64, n)
	for s, row := range transition {
		a[s] = append([]float64(nil), row...)
	}
	for k := n - 1; k > 0; k-- {
		out := 0.0
		for t := range k {
			out += a[k][t]
		}
		for s := range k {
			a[s][k] /= out
			for t := range k {
				a[s][t] += a[s][k] * a[k][t]
			}
		}
	}
	share := make([]float64, n)
	share[0] = 1
	total := 1.0
	for k := 1; k < n; k++ {
		for s := range k {
			share[k] = math.FMA(share[s], a[s][k], share[k])
		}
		total += share[k]
	}
	for k := range share {
		share[k] /= total
	}
	return share
}
