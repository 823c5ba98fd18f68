//go:build !cuda

package cuda

import (
	"fmt"

	"tokenrouter/exec/native"
)

// Backend fails: this program was built without the tag "cuda".
func Backend() (native.Backend, error) {
	return native.Backend{}, fmt.Errorf("cuda: %w: built without CUDA; `make cuda` builds with it",
		native.ErrNoDevice)
}
