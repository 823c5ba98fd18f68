package chain

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrOffLattice is wrapped by the error of a step time that is not a whole number of quanta.
var ErrOffLattice = errors.New("step time does not fit the quantum")

// Rounding reports how one step time was moved to the lattice of the quantum.
type Rounding struct {
	// Model is the index of the model.
	Model int
	// Batch is the batch size in rows with the largest relative error; 1 if the time is constant.
	Batch int
	// GivenNs is the step time as given, UsedNs the multiple of the quantum that was used, ns.
	GivenNs, UsedNs int64
	// Relative is UsedNs/GivenNs - 1.
	Relative float64
}

// lattice holds the step times in ticks of the quantum.
type lattice struct {
	quantumNs int64
	ticks     [][]int64 // [model][rows], rows from 1
	rounding  []Rounding
	beside    []float64 // Model.Beside; nil: no factor is above 1
}

// newLattice brings the step times of m for batches of 1 to n rows to the lattice of quantumNs, 0 for the
// exact one. With round set, times go to the nearest multiple (halves to the even one, never to 0); otherwise
// a time that does not fit is an error.
func newLattice(m Model, n int, quantumNs int64, round bool) (*lattice, error) {
	if quantumNs == 0 {
		quantumNs = exactQuantum(m, n)
	}
	l := &lattice{quantumNs: quantumNs, ticks: make([][]int64, len(m.Step))}
	if m.contended() {
		l.beside = m.Beside
	}
	for i, step := range m.Step {
		l.ticks[i] = make([]int64, n+1)
		worst := Rounding{Model: i, Batch: 1}
		for rows := 1; rows <= n; rows++ {
			given, err := step.At(rows)
			if err != nil {
				return nil, fmt.Errorf("chain: step time of model %d: %w", i, err)
			}
			ticks := nearestTicks(given, quantumNs)
			used := ticks * quantumNs
			if used != given && !round {
				byBatch := len(step.TableNs) > 0 || step.PerRowNs != 0
				return nil, offLatticeError(i, rows, byBatch, given, used, quantumNs)
			}
			l.ticks[i][rows] = ticks
			r := Rounding{Model: i, Batch: rows, GivenNs: given, UsedNs: used,
				Relative: float64(used-given) / float64(given)}
			if rows == 1 || math.Abs(r.Relative) > math.Abs(worst.Relative) {
				worst = r
			}
		}
		l.rounding = append(l.rounding, worst)
	}
	return l, nil
}

// nearestTicks returns the whole number of quanta nearest to ns, at least 1; halves go to the even number.
func nearestTicks(ns, quantumNs int64) int64 {
	ticks, rest := ns/quantumNs, ns%quantumNs
	if rest > quantumNs-rest || (rest == quantumNs-rest && ticks%2 == 1) {
		ticks++
	}
	return max(ticks, 1)
}

// exactQuantum returns the greatest common divisor of all step times of m for batches of 1 to n rows.
func exactQuantum(m Model, n int) int64 {
	var divisor int64
	for _, step := range m.Step {
		for rows := 1; rows <= n; rows++ {
			if ns, err := step.At(rows); err == nil {
				divisor = gcd(divisor, ns)
			}
		}
	}
	return divisor
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// offLatticeError says which time does not fit, and what rounding would make of it.
func offLatticeError(model, rows int, byBatch bool, given, used, quantumNs int64) error {
	batch := ""
	if byBatch {
		batch = fmt.Sprintf(" at %d rows", rows)
	}
	percent := 100 * float64(used-given) / float64(given)
	return fmt.Errorf("chain: step time of model %d%s is %v, not a whole number of quanta of %v; "+
		"rounding would use %v (%+.3g %%): %w", model, batch,
		time.Duration(given), time.Duration(quantumNs), time.Duration(used), percent, ErrOffLattice)
}
