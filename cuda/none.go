//go:build !cuda

package cuda

import (
	"fmt"

	"tokenrouter/exec/native"
)

// Built says whether this program has the device: the tag "cuda".
const Built = false

// Backend fails: this program was built without the tag "cuda".
func Backend() (native.Backend, error) {
	return native.Backend{}, fmt.Errorf("cuda: %w: built without CUDA; `make cuda` builds with it",
		native.ErrNoDevice)
}
