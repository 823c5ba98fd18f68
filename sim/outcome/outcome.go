// Package outcome says what forward passes give in the simulator: keyed draws, or what a
// recorded run gave. It knows requests and positions, never policies or batches, so that
// every policy meets the same world.
//
// Sources:
//
//   - Uniform: an independent draw at every position and model.
//   - Modulated (NewBursts, NewModulated): easy and hard stretches, a hidden Markov chain.
//   - First: one verdict for the first token of every answer; all else from another source.
//   - Recorded: a trace (package trace), by its paths or by its signals.
package outcome

import (
	"tokenrouter/core"
	"tokenrouter/core/keyed"
)

// Request is what the world knows of a live request, and the scheduler must not (I11).
type Request struct {
	ID           uint64
	Key          keyed.Key // of seed and ID: base of all its draws
	PromptTokens int32
	OutputTokens int32 // the token of position OutputTokens-1 is EOS; 0: never
	Scratch      [2]uint64
}

// Source fills in results. Each method call covers one launch.
type Source interface {
	// Fill writes results[i] for rows[i], a row of a launch of the model, whose request is
	// requests[rows[i].Slot]. The position of the sampled token in the answer is
	// rows[i].Start + rows[i].Fresh - PromptTokens. Rows without Head get a zero Result.
	Fill(model int, rows []core.Row, requests []Request, results []core.Result)
	// Err is the first fault met, for example a position that a trace does not have.
	Err() error
}

// Enterer is implemented by a Source that knows at which model a request enters.
type Enterer interface {
	Entry(id uint64) int
}

// Leaver is implemented by a Source that keeps something of each request until it has left.
type Leaver interface {
	Leave(id uint64)
}
