package cpu

import (
	"testing"

	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// TestSuite: the suite of native devices, on every path of kernels that this machine has.
func TestSuite(t *testing.T) {
	for _, path := range paths {
		if !path.Available() {
			continue
		}
		t.Run(path.String(), func(t *testing.T) {
			nativetest.Suite{Backend: Backend(), Options: native.Options{Kernels: path.String()},
				SameBits: true, Int8: true}.Run(t)
		})
	}
}
