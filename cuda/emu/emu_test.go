package emu

import (
	"testing"

	"tokenrouter/exec/native"
	"tokenrouter/exec/native/nativetest"
)

// TestSuite: the suite of native devices, with graphs and without.
func TestSuite(t *testing.T) {
	for _, kernels := range []string{"graphs", "eager"} {
		t.Run(kernels, func(t *testing.T) {
			nativetest.Suite{Backend: Backend(), Options: native.Options{Kernels: kernels}, SameBits: true,
				Emulated: true}.Run(t)
		})
	}
}
