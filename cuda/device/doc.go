// Package device has what drives the kernels on a card, in C++: the C ABI of package native over the CUDA
// runtime. Package emu compiles it over an emulated runtime, `make cuda` over the real one.
package device

import "embed"

// Sources are all files that make up the device.
//
//go:embed *.h *.cu
var Sources embed.FS
