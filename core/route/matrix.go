package route

import (
	"fmt"
	"math"

	"tokenrouter/core"
)

// Matrix moves by fixed probabilities: after a step on i the request goes to j with
// probability P[i][j], and the token is committed if C[i][j] is 1 (TokenRouter, appendix D).
// It is the model of the throughput theory, for simulation. The draw is Result.Draw.
type Matrix struct {
	p    [][]float64
	up   [][]float64 // up[i][j]: sum of p[i][0..j]
	keep [][]bool
}

// NewMatrix takes square P, rows summing to 1, and C of the same size, entries 0 or 1. A
// step that stays must commit: the executor makes no token twice on one model.
func NewMatrix(p, c [][]float64) (Matrix, error) {
	var a Matrix
	if len(p) == 0 || len(c) != len(p) {
		return a, fmt.Errorf("routing has %d rows and commit %d, want as many as models", len(p), len(c))
	}
	for i := range p {
		if len(p[i]) != len(p) || len(c[i]) != len(p) {
			return a, fmt.Errorf("row %d of routing has %d and of commit %d values, want %d",
				i, len(p[i]), len(c[i]), len(p))
		}
		up, keep := make([]float64, len(p)), make([]bool, len(p))
		sum := 0.0
		for j, v := range p[i] {
			if !(v >= 0 && v <= 1) {
				return a, fmt.Errorf("routing[%d][%d] = %v, want 0 to 1", i, j, v)
			}
			if c[i][j] != 0 && c[i][j] != 1 {
				return a, fmt.Errorf("commit[%d][%d] = %v, want 0 or 1: a step makes one token", i, j, c[i][j])
			}
			if i == j && v > 0 && c[i][j] == 0 {
				return a, fmt.Errorf("commit[%d][%d] = 0: a step that stays commits its token", i, j)
			}
			sum += v
			up[j], keep[j] = sum, c[i][j] == 1
		}
		if math.Abs(sum-1) > 1e-9 {
			return a, fmt.Errorf("row %d of routing sums to %v, want 1", i, sum)
		}
		for j := len(up) - 1; j >= 0 && up[j] == sum; j-- {
			up[j] = 1 // rounding leaves no gap, and a trailing 0 is never drawn
		}
		a.p = append(a.p, append([]float64(nil), p[i]...))
		a.up, a.keep = append(a.up, up), append(a.keep, keep)
	}
	return a, nil
}

// Models is the size of the matrices.
func (a Matrix) Models() int { return len(a.up) }

// Matrices returns P and C: NewMatrix makes the same Matrix of them.
func (a Matrix) Matrices() (p, c [][]float64) {
	for i := range a.p {
		commit := make([]float64, len(a.p))
		for j, keep := range a.keep[i] {
			if keep {
				commit[j] = 1
			}
		}
		p, c = append(p, append([]float64(nil), a.p[i]...)), append(c, commit)
	}
	return p, c
}

// Route draws the next model from row v.Model.
func (a Matrix) Route(v *core.Visit, r *core.Result) int { return pick(a.up[v.Model], r.Draw) }

// Send keeps the token where the commit matrix says so.
func (a Matrix) Send(v *core.Visit, _ *core.Result, peer int) bool { return a.keep[v.Model][peer] }

// Judge implements core.Batch.
func (a Matrix) Judge(model int, results []core.Result, verdicts []core.Verdict) {
	up, keep := a.up[model], a.keep[model]
	for i := range results {
		next := pick(up, results[i].Draw)
		verdicts[i] = core.Verdict{Next: next, Keep: next == model || keep[next]}
	}
}
