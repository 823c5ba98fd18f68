package cuda

import (
	"errors"
	"testing"

	"tokenrouter/exec/native"
)

// TestBackend: without CUDA, or without a driver, it is said that there is no device; nothing is broken.
func TestBackend(t *testing.T) {
	b, err := Backend()
	if err == nil {
		var devices []native.Info
		if devices, err = b.Devices(); err != nil {
			t.Fatal(err)
		}
		if len(devices) > 0 {
			t.Logf("%+v", devices)
			return
		}
		_, err = b.Open(native.Options{})
	}
	if !errors.Is(err, native.ErrNoDevice) {
		t.Errorf("error %v, want %v", err, native.ErrNoDevice)
	}
}
