// Package kernels has the CUDA kernels and their references, in C++. Headers say what each does and how exact
// it is; package emu compiles them for the processor, `make cuda` for cards.
package kernels

import "embed"

// Sources are all files that make up the kernels.
//
//go:embed *.h *.cuh *.cu
var Sources embed.FS
