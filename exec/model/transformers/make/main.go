// Command make writes the tiny models of package transformers, a folder each, for oracle.py.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/exec/model/transformers"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: make DIR")
		os.Exit(2)
	}
	for _, c := range transformers.Cases() {
		if err := c.Make(context.Background(), filepath.Join(os.Args[1], c.Name)); err != nil {
			fmt.Fprintln(os.Stderr, "make:", err)
			os.Exit(1)
		}
	}
}
