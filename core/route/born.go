package route

import "tokenrouter/core"

// Born draws by fixed weights where a request is born, and leaves it there: routing by request, at a given
// share for each model. Make one with NewBorn.
type Born struct {
	Stay
	weights ME
}

// NewBorn takes one weight a model, not all zero; they are divided by their sum.
func NewBorn(weights []float64) (Born, error) {
	me, err := NewME(weights)
	return Born{weights: me}, err
}

// Models is the number of weights.
func (b Born) Models() int { return b.weights.Models() }

// Weights returns the weights as NewBorn took them.
func (b Born) Weights() []float64 { return b.weights.Weights() }

// Enter draws the model that a request stays at.
func (b Born) Enter(draw float64, models uint32) int { return b.weights.Enter(draw, models) }

var _ core.Entry = Born{}
