package core

import "fmt"

// Thresholds says, for each live N, how many requests must wait at each model before it
// starts. Every set in force is feasible: sum (B_i - 1) < N, or else all N could wait below
// their thresholds for ever. For N beyond the last row the last row counts: it is feasible
// there too.
type Thresholds struct{ table *thresholdTable }

type thresholdTable struct {
	rows   [][]int // rows[n-1][m]
	models int
}

// FixedThresholds is one set b for all N up to liveMax. It must be feasible at liveMax. At a
// smaller N, where it might never fill, each b[m] counts as at most N, and then the largest
// (the last of equals) is lowered by one until the set is feasible.
func FixedThresholds(b []int, liveMax int) (Thresholds, error) {
	if err := Feasible(b, liveMax); err != nil {
		return Thresholds{}, err
	}
	t := &thresholdTable{models: len(b)}
	for n := 1; n <= liveMax; n++ {
		t.rows = append(t.rows, clamped(b, n))
	}
	return Thresholds{t}, nil
}

// TableThresholds takes a set for each N: rows[n-1] for n = 1, 2, ... Each must be feasible
// at its N. For N beyond the table the last row counts.
func TableThresholds(rows [][]int) (Thresholds, error) {
	if len(rows) == 0 {
		return Thresholds{}, fmt.Errorf("threshold table is empty, want a row for N = 1")
	}
	t := &thresholdTable{models: len(rows[0])}
	for i, b := range rows {
		if len(b) != t.models {
			return Thresholds{}, fmt.Errorf("threshold table: row for N = %d has %d values, want %d",
				i+1, len(b), t.models)
		}
		if err := Feasible(b, i+1); err != nil {
			return Thresholds{}, fmt.Errorf("threshold table: row for N = %d: %w", i+1, err)
		}
		t.rows = append(t.rows, append([]int(nil), b...))
	}
	return Thresholds{t}, nil
}

// Feasible reports why b can not be in force with n live requests; nil if it can.
func Feasible(b []int, n int) error {
	sum := 0
	for m, v := range b {
		if v < 1 {
			return fmt.Errorf("threshold of model %d is %d, want at least 1", m, v)
		}
		if v > n {
			return fmt.Errorf("threshold of model %d is %d, want at most N = %d", m, v, n)
		}
		sum += v - 1
	}
	if sum >= n {
		return fmt.Errorf("thresholds %v with N = %d: sum of (B - 1) is %d, want below %d"+
			" or all can wait for ever", b, n, sum, n)
	}
	return nil
}

// At is the threshold of model m with n live requests. Nothing is live: nothing waits, 1.
func (t Thresholds) At(n, m int) int {
	if n < 1 {
		return 1
	}
	rows := t.table.rows
	return rows[min(n, len(rows))-1][m]
}

// Row is the set in force with n live requests, n >= 1. It must not be changed.
func (t Thresholds) Row(n int) []int { return t.table.rows[min(n, len(t.table.rows))-1] }

// Rows is the whole table, for N = 1, 2, ... It must not be changed.
func (t Thresholds) Rows() [][]int {
	if t.table == nil {
		return nil
	}
	return t.table.rows
}

// models is the number of models that t is for, 0 of the zero Thresholds.
func (t Thresholds) models() int {
	if t.table == nil {
		return 0
	}
	return t.table.models
}

func clamped(b []int, n int) []int {
	row := make([]int, len(b))
	sum := 0
	for m, v := range b {
		row[m] = min(v, n)
		sum += row[m] - 1
	}
	for ; sum >= n; sum-- {
		largest := 0
		for m, v := range row {
			if v >= row[largest] {
				largest = m
			}
		}
		row[largest]--
	}
	return row
}
