package router_test

import (
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/exec/model/router"
)

// A random router of a tiny model: made, opened, and asked about one row.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	shape := router.Shape{Algorithm: router.R2R, Hidden: 4, Top: 3, Width: 8, Blocks: 2, Expanded: 16}
	if err := router.Make(filepath.Join(dir, "r2r"), shape, 1); err != nil {
		panic(err)
	}
	r, err := router.Open(filepath.Join(dir, "r2r"))
	if err != nil {
		panic(err)
	}
	hidden, embedding := []float32{1, -1, 0.5, 0}, []float32{0.1, 0.2, 0, -0.1}
	score := r.Score(hidden, embedding, []float32{17.5, 12, 11.5})
	fmt.Println(r.Shape)
	fmt.Printf("%d tensors, threshold %v, to the large model: %v\n", len(r.Tensors), r.Threshold,
		score >= r.Threshold)
	// Output:
	// r2r (hidden 4, top 3, width 8, 2 blocks, expanded 16)
	// 22 tensors, threshold 0.5, to the large model: true
}
