package router

import (
	"fmt"
	"math"
)

// normEpsilon is that of PyTorch's BatchNorm1d and LayerNorm.
const normEpsilon = 1e-5

// fold makes CITER's network of its published tensors: BatchNorm with its running statistics goes into the
// first linear, the last two linears become one row. Sums are in float64.
func (r *Router) fold(raw map[string][]float32) error {
	hidden, width := r.Shape.Hidden, r.Shape.Width
	first, firstBias := make([]float32, width*hidden), make([]float32, width)
	for i := range width {
		variance := float64(raw["mlp.1.running_var"][i])
		if variance < 0 {
			return fmt.Errorf("tensor mlp.1.running_var has %v at place %d, want 0 or more", variance, i)
		}
		scale := float64(raw["mlp.1.weight"][i]) / math.Sqrt(variance+normEpsilon)
		for k := range hidden {
			first[i*hidden+k] = float32(float64(raw["mlp.0.weight"][i*hidden+k]) * scale)
		}
		centred := float64(raw["mlp.0.bias"][i]) - float64(raw["mlp.1.running_mean"][i])
		firstBias[i] = float32(centred*scale + float64(raw["mlp.1.bias"][i]))
	}
	output, bias := make([]float64, width), float64(raw["linear.bias"][0])
	for k := range hidden {
		weight := float64(raw["linear.weight"][k])
		bias += weight * float64(raw["mlp.4.bias"][k])
		for i := range width {
			output[i] += weight * float64(raw["mlp.4.weight"][k*width+i])
		}
	}
	row := make([]float32, width)
	for i, x := range output {
		row[i] = float32(x)
	}
	r.Tensors = []Tensor{{First, 0, width, hidden, first}, {FirstBias, 0, 1, width, firstBias},
		{Output, 0, 1, width, row}, {OutputBias, 0, 1, 1, []float32{float32(bias)}}}
	for _, t := range r.Tensors {
		if err := finite("mlp.0 with mlp.1, or linear with mlp.4,", t.Data); err != nil {
			return err
		}
	}
	return nil
}
