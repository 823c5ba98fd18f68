package router

import "fmt"

// Algorithm is the routing algorithm that a network belongs to.
type Algorithm uint8

// The algorithms, in the order of the devices' numbers.
const (
	R2R   Algorithm = iota + 1 // score: probability that the small model's token diverges
	CITER                      // score: confidence that the small model's token is right
	CoLLM                      // score: probability of deferral
)

// String is the name that folders and command lines have.
func (a Algorithm) String() string {
	switch a {
	case R2R:
		return "r2r"
	case CITER:
		return "citer"
	case CoLLM:
		return "collm"
	}
	return fmt.Sprintf("Algorithm(%d)", uint8(a))
}

// Shape has the sizes of a router. Those that its algorithm has no use for are 0.
type Shape struct {
	Algorithm Algorithm
	Hidden    int // width of the small model
	Top       int // R2R: logits that it reads
	Width     int // R2R: of the backbone; CITER: of the inner layer
	Blocks    int // R2R
	Expanded  int // R2R: width inside a block
}

// String names the algorithm and its sizes.
func (s Shape) String() string {
	switch s.Algorithm {
	case R2R:
		return fmt.Sprintf("r2r (hidden %d, top %d, width %d, %d blocks, expanded %d)", s.Hidden, s.Top, s.Width,
			s.Blocks, s.Expanded)
	case CITER:
		return fmt.Sprintf("citer (hidden %d, width %d)", s.Hidden, s.Width)
	}
	return fmt.Sprintf("%v (hidden %d)", s.Algorithm, s.Hidden)
}

// PublishedShape returns the sizes that the authors of an algorithm use for a small model of that width. It
// panics for an algorithm that is none of R2R, CITER and CoLLM.
func PublishedShape(a Algorithm, hidden int) Shape {
	switch a {
	case R2R:
		return Shape{R2R, hidden, 100, 1024, 6, 4096}
	case CITER:
		return Shape{Algorithm: CITER, Hidden: hidden, Width: 2 * hidden}
	case CoLLM:
		return Shape{Algorithm: CoLLM, Hidden: hidden}
	}
	panic(fmt.Sprintf("router: no published shape of %v", a))
}

// sizeMax and blocksMax bound the sizes that are taken: no known router comes near.
const sizeMax, blocksMax = 1 << 20, 1024

// check refuses sizes that no router has.
func (s Shape) check() error {
	sizes := []struct {
		name        string
		value, most int
		of          []Algorithm
	}{
		{"hidden_size", s.Hidden, sizeMax, []Algorithm{R2R, CITER, CoLLM}},
		{"top_logits", s.Top, sizeMax, []Algorithm{R2R}},
		{"width", s.Width, sizeMax, []Algorithm{R2R, CITER}},
		{"blocks", s.Blocks, blocksMax, []Algorithm{R2R}},
		{"expanded_width", s.Expanded, sizeMax, []Algorithm{R2R}},
	}
	for _, size := range sizes {
		has := false
		for _, a := range size.of {
			has = has || a == s.Algorithm
		}
		switch {
		case has && (size.value < 1 || size.value > size.most):
			return fmt.Errorf("%s = %d, want 1 to %d", size.name, size.value, size.most)
		case !has && size.value != 0:
			return fmt.Errorf("%s = %d: a %v router has none", size.name, size.value, s.Algorithm)
		}
	}
	return nil
}

// Part says what a tensor is in the network of doc.go. The numbers are those that devices use.
type Part uint8

// The parts; shapes are [rows][columns], biases and norms one row. R2R has all, CITER First and Output with
// their biases, Co-LLM Output.
const (
	Top            Part = iota + 1 // [Hidden][Top]
	TopBias                        // [1][Hidden]
	Combined                       // [Width][3 * Hidden]
	CombinedBias                   // [1][Width]
	Input                          // [Width][Width]
	InputBias                      // [1][Width]
	Norm                           // of a block: [1][Width]
	NormBias                       // of a block: [1][Width]
	First                          // of a block: [Expanded][Width]; CITER: [Width][Hidden]
	FirstBias                      // of a block: [1][Expanded]; CITER: [1][Width]
	Second                         // of a block: [Width][Expanded]
	SecondBias                     // of a block: [1][Width]
	OutputNorm                     // [1][Width]
	OutputNormBias                 // [1][Width]
	Output                         // [1][Width]; Co-LLM: [1][Hidden]
	OutputBias                     // [1][1]
)

// Matrix reports whether devices may round a part to bf16 for matrix products; the rest stays float32.
func (p Part) Matrix() bool {
	return p == Top || p == Combined || p == Input || p == First || p == Second
}

// Tensor is one tensor of a network as it is computed: folded and fused.
type Tensor struct {
	Part          Part
	Block         int // 0 unless R2R has one a block
	Rows, Columns int
	Data          []float32 // [Rows][Columns]
}

// Router is a router folder in memory.
type Router struct {
	Dir          string
	Shape        Shape
	Threshold    float64 // what scores are compared with, if HasThreshold
	HasThreshold bool
	Text         map[string]string // the free text of router.json
	Tensors      []Tensor          // in the order of use; every part that the algorithm has
	Warnings     []string          // tensors that were left out, each with the reason
}

// tensor returns a tensor that the algorithm has.
func (r *Router) tensor(p Part, block int) *Tensor {
	for i := range r.Tensors {
		if t := &r.Tensors[i]; t.Part == p && t.Block == block {
			return t
		}
	}
	panic(fmt.Sprintf("router: %v has no part %d of block %d", r.Shape.Algorithm, p, block))
}
