package outcome

import (
	"math"

	"tokenrouter/core"
)

// First gives the first token of every answer one verdict. Nearly all answers of a model to one kind of
// prompt begin alike, so that the first token is as easy or as hard each time, whatever the share of hard
// ones later. All else is as Source has it.
type First struct {
	Source
	// Verdict is Score and Draw of the small model's result at position 0: 0, or AlwaysRouted.
	Verdict float64
}

// AlwaysRouted is the greatest score and draw below 1: no threshold and no matrix in which the large model
// can follow keeps it.
var AlwaysRouted = math.Nextafter(1, 0)

// Fill implements Source.
func (f First) Fill(model int, rows []core.Row, requests []Request, results []core.Result) {
	f.Source.Fill(model, rows, requests, results)
	if model != 0 {
		return
	}
	for i := range rows {
		if row := &rows[i]; row.Head && requests[row.Slot].position(row) == 0 {
			results[i].Score, results[i].Draw = f.Verdict, f.Verdict
		}
	}
}
