package keyed_test

import (
	"fmt"

	"tokenrouter/core/keyed"
)

// A verdict depends on what it is for and on nothing that was drawn before.
func ExampleKey_At() {
	routed := keyed.NewChance(0.35)
	request := keyed.NewKey(1, 42) // seed 1, request 42
	for position := range uint32(5) {
		fmt.Print(routed.Hit(request.At(position, 0, keyed.Route)), " ")
	}
	fmt.Println(routed.Hit(request.At(3, 0, keyed.Route)))
	// Output: true false true true true true
}

// A sweep point is named by its values, so that points put in front of it change nothing.
func ExampleDerive() {
	for _, n := range []uint64{8, 1, 2} {
		fmt.Println(n, keyed.Derive(7, keyed.Text("n"), keyed.Number(n), keyed.Text("replicate"), keyed.Number(0)))
	}
	// Output:
	// 8 9475254689452079082
	// 1 8383061749359913454
	// 2 6809038450376203479
}
