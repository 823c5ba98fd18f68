package native

// #include "native.h"
import "C"

import (
	"errors"
	"fmt"
)

// What errors of devices wrap, with the device's own words beside it.
var (
	// ErrNoDevice: no driver, or no such device. Nothing is broken.
	ErrNoDevice = errors.New("no such device")
	// ErrInvalid: an argument is wrong. Nothing has changed.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnsupported: the device can not do it.
	ErrUnsupported = errors.New("not supported by the device")
	// ErrNoMemory: the budget or the memory of the device is too small.
	ErrNoMemory = errors.New("out of memory")
	// ErrFailed: the device failed in the middle of a step. All that it holds is void.
	ErrFailed = errors.New("the device failed")
)

// failure turns a status into an error, nil for TR_OK.
func (b Backend) failure(status C.int32_t, text *C.tr_error) error {
	var cause error
	switch status {
	case C.TR_OK:
		return nil
	case C.TR_NO_DEVICE:
		cause = ErrNoDevice
	case C.TR_INVALID:
		cause = ErrInvalid
	case C.TR_UNSUPPORTED:
		cause = ErrUnsupported
	case C.TR_NO_MEMORY:
		cause = ErrNoMemory
	case C.TR_FAILED:
		cause = ErrFailed
	default:
		panic(fmt.Sprintf("native: %s: status %d", b.Kind(), status))
	}
	return fmt.Errorf("%s: %w: %s", b.Kind(), cause, goText(text.text[:]))
}
