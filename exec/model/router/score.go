package router

import (
	"fmt"
	"math"
)

// Score computes the network in float64 for one row: the reference of the devices, slow. hidden is the small
// model's hidden state after its last norm. R2R also reads the embedding of the sampled token and the
// Shape.Top largest raw logits, largest first; the others do not look at them. It panics for slices of other
// lengths.
func (r *Router) Score(hidden []float32, embedding, topLogits []float32) float64 {
	s := r.Shape
	if len(hidden) != s.Hidden || s.Algorithm == R2R && (len(embedding) != s.Hidden || len(topLogits) != s.Top) {
		panic(fmt.Sprintf("router: %d hidden numbers, %d of an embedding, %d logits for %v", len(hidden),
			len(embedding), len(topLogits), s))
	}
	x := widened(hidden)
	switch s.Algorithm {
	case R2R:
		x = append(append(x, widened(embedding)...), r.linear(Top, 0, widened(topLogits))...)
		x = r.backbone(x)
	case CITER:
		x = r.linear(First, 0, x)
		for i, v := range x {
			if v < 0 {
				x[i] = 0
			}
		}
	case CoLLM:
		return sigmoid(product(r.tensor(Output, 0), x)[0])
	}
	return sigmoid(r.linear(Output, 0, x)[0])
}

// backbone is R2R's network from the combined projection to the last norm.
func (r *Router) backbone(joined []float64) []float64 {
	x := r.linear(Input, 0, r.linear(Combined, 0, joined))
	for block := range r.Shape.Blocks {
		inner := r.linear(First, block, r.norm(Norm, block, x))
		for i, v := range inner {
			inner[i] = v * math.Erfc(-v/math.Sqrt2) / 2
		}
		for i, v := range r.linear(Second, block, inner) {
			x[i] += v
		}
	}
	return r.norm(OutputNorm, 0, x)
}

// linear is the product with a part, and the bias after it.
func (r *Router) linear(p Part, block int, x []float64) []float64 {
	y := product(r.tensor(p, block), x)
	for i, b := range r.tensor(p+1, block).Data {
		y[i] += float64(b)
	}
	return y
}

func (r *Router) norm(p Part, block int, x []float64) []float64 {
	weight, bias := r.tensor(p, block).Data, r.tensor(p+1, block).Data
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+normEpsilon)*float64(weight[i]) + float64(bias[i])
	}
	return y
}

func product(t *Tensor, x []float64) []float64 {
	y := make([]float64, t.Rows)
	for i := range y {
		for k, w := range t.Data[i*t.Columns : (i+1)*t.Columns] {
			y[i] += float64(w) * x[k]
		}
	}
	return y
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
