// Package nativetest has what tests of native devices share.
package nativetest

// #cgo CFLAGS: -I${SRCDIR}/.. -std=c11 -O2 -Wall -Wextra
// #cgo LDFLAGS: -lm
// #include "fake.h"
import "C"

import (
	"unsafe"

	"tokenrouter/exec/native"
)

// What Fake does when the last token of a request is one of these.
const (
	ScoreToken  = 1 // the router's score is not a number
	NaNToken    = 2 // the row of logits is not finite
	FailToken   = 3 // the step fails in the middle: ErrFailed, for good
	RefuseToken = 4 // the step is refused: ErrInvalid
)

// Fake is a backend that computes nothing and checks everything: the logits of a row are a hash of the
// model's weights and of all tokens of the request up to the row, which it reads from the KV pages that were
// granted. So a token of another request, a page that was not granted, or a position that was never fed shows
// as an error or as another answer. It samples by temperature and bias alone, and no token below 5; a
// router's score is of the same hash. It has one device, of 1 GiB, and steps take no time.
func Fake() native.Backend { return native.Wrap(unsafe.Pointer(C.tr_fake_backend())) }
