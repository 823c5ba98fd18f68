//go:build cuda

package cuda

// #cgo LDFLAGS: -L${SRCDIR}/../.cuda/lib -ltokenrouter_cuda -lcudart_static -lstdc++ -ldl -lrt -lpthread -lm
// #include "device/backend.h"
import "C"

import "tokenrouter/exec/native"

// Built says whether this program has the device: the tag "cuda".
const Built = true

// Backend is the cards of this machine. Where there is no driver it has no devices.
func Backend() (native.Backend, error) { return native.Wrap(C.cuda_backend()), nil }
