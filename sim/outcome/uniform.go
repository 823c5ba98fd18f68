package outcome

import (
	"tokenrouter/core"
	"tokenrouter/core/keyed"
)

// Uniform draws independently at every position and model. Score and Draw of a Result are one
// uniform in [0, 1), so that route.R2R{Threshold: 1 - p} leaves the small model with
// probability p, and route.Matrix and route.ME move by their matrix or weights. The token of
// position Request.OutputTokens-1 and any later one is EOS. All else is zero.
//
// The zero Uniform is ready. One value may serve any number of runs at once.
type Uniform struct{}

// Fill implements Source.
func (Uniform) Fill(model int, rows []core.Row, requests []Request, results []core.Result) {
	results = results[:len(rows)]
	for i := range rows {
		row, result := &rows[i], &results[i]
		*result = core.Result{}
		if !row.Head {
			continue
		}
		request := &requests[row.Slot]
		position := request.position(row)
		u := keyed.Float(request.Key.At(uint32(position), uint32(model), keyed.Route))
		result.Score, result.Draw, result.EOS = u, u, request.endsAt(position)
	}
}

// Err is always nil.
func (Uniform) Err() error { return nil }

// position is where the token that the row samples stands in the answer, from 0.
func (r *Request) position(row *core.Row) int32 { return row.Start + row.Fresh - r.PromptTokens }

// endsAt reports whether a token at the position is EOS. OutputTokens 0 becomes the greatest
// number here: never.
func (r *Request) endsAt(position int32) bool {
	return uint32(position) >= uint32(r.OutputTokens-1)
}
