package cpu

// #cgo CXXFLAGS: -std=c++17 -O3 -pthread -Wall -Wextra -Wno-uninitialized -Wno-maybe-uninitialized -Wno-psabi
// #cgo LDFLAGS: -pthread
// #include "kernels.h"
import "C"

import "fmt"

// Path names one family of kernels. A later path needs all that an earlier one needs.
type Path int32

// The paths, from the one that runs everywhere to the fastest.
const (
	Plain      Path = iota + 1 // C++ and nothing else
	AVX2                       // AVX2 and FMA
	AVX512                     // AVX-512 F, BW, DQ, VL
	AVX512BF16                 // and products of bf16 pairs and of bytes
	AMX                        // and matrix tiles for both
)

// paths are all paths in order.
var paths = [...]Path{Plain, AVX2, AVX512, AVX512BF16, AMX}

// Best is the last path that this machine, its kernel and this process may use.
func Best() Path { return Path(C.cpu_best_path()) }

// Available reports whether kernels of path p run here: whether p is one of Plain to Best.
func (p Path) Available() bool { return p >= Plain && p <= Best() }

// String is the name of the path, such as "avx512-bf16".
func (p Path) String() string {
	switch p {
	case Plain:
		return "plain"
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	case AVX512BF16:
		return "avx512-bf16"
	case AMX:
		return "amx"
	}
	return fmt.Sprintf("Path(%d)", int32(p))
}
