package jsonline_test

import (
	"fmt"

	"tokenrouter/core/turnlog/jsonline"
)

// A line is read from left to right; what does not belong there is named with its place.
func Example() {
	read := func(line string) (rows []int, err error) {
		c := jsonline.NewCursor([]byte(line))
		err = c.Object(func(key string) error {
			if key != "rows" {
				return jsonline.Unknown("rows")
			}
			return c.Array(func(int) error {
				n, err := jsonline.Integer(c, 1, 64)
				rows = append(rows, n)
				return err
			})
		})
		return rows, err
	}
	fmt.Println(read(`{"rows":[3,1,4]}`))
	fmt.Println(read(`{"rows":[3,65]}`))
	fmt.Println(read(`{"Rows":[3]}`))
	// Output:
	// [3 1 4] <nil>
	// [3 0] rows[1] = 65, want a whole number 1 to 64
	// [] Rows = an unknown key, want one of rows
}
