package route_test

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/route"
)

// R2R drops the small model's token where the router says that it diverges, and the large
// model makes one token in its place.
func ExampleR2R() {
	small := &core.Visit{ID: 1, Models: 0b11}
	diverges := &core.Result{Token: 12, Score: 0.8}
	r2r := route.R2R{Threshold: 0.5}
	next := r2r.Route(small, diverges)
	fmt.Println("go on at model", next, "and keep the token:", r2r.Send(small, diverges, next))
	// Output: go on at model 1 and keep the token: false
}

func ExampleCITER() {
	small := &core.Visit{ID: 1, Models: 0b11}
	fmt.Println(route.CITER{Threshold: 0.98}.Route(small, &core.Result{Score: 0.97}))
	// Output: 1
}

func ExampleCoLLM() {
	small := &core.Visit{ID: 1, Models: 0b11}
	fmt.Println(route.CoLLM{Threshold: 0.15}.Route(small, &core.Result{Score: 0.15}))
	// Output: 0
}

// R-Stitch stays at the large model while that is unsure, and keeps the token with which it
// returns.
func ExampleRStitch() {
	large := &core.Visit{ID: 1, Models: 0b11, Model: 1}
	sure := &core.Result{Entropy: 0.01}
	stitch := route.RStitch{Threshold: 0.03}
	next := stitch.Route(large, sure)
	fmt.Println("go on at model", next, "and keep the token:", stitch.Send(large, sure, next))
	// Output: go on at model 0 and keep the token: true
}

// ME draws the model of every token, the first included.
func ExampleNewME() {
	me, err := route.NewME([]float64{0.5, 0.3, 0.2})
	if err != nil {
		panic(err)
	}
	fmt.Println(me.Enter(0.1, 0b111), me.Enter(0.6, 0b111), me.Enter(0.9, 0b111))
	// Output: 0 1 2
}

// R2R's moves as a matrix: with probability 0.35 the draft is dropped and the request goes to
// the large model, which commits one token and returns it.
func ExampleNewMatrix() {
	moves, err := route.NewMatrix([][]float64{{0.65, 0.35}, {1, 0}}, [][]float64{{1, 0}, {1, 0}})
	if err != nil {
		panic(err)
	}
	small := &core.Visit{ID: 1, Models: 0b11}
	fmt.Println(moves.Route(small, &core.Result{Draw: 0.2}), moves.Route(small, &core.Result{Draw: 0.7}))
	_, err = route.NewMatrix([][]float64{{0.6, 0.3}, {1, 0}}, [][]float64{{1, 0}, {1, 0}})
	fmt.Println(err)
	// Output:
	// 0 1
	// row 0 of routing sums to 0.8999999999999999, want 1
}

func ExampleRecorded() {
	v := &core.Visit{ID: 1, Models: 0b11}
	fmt.Println(route.Recorded{}.Route(v, &core.Result{Next: 1}))
	// Output: 1
}
