// Package emu runs the CUDA device without a card: the very sources of its kernels and of what drives them,
// compiled for the processor, over a small emulation of the runtime. It is for tests, and slow.
//
// A CUDA thread is a fiber; blocks and threads take their turns in an order that is drawn anew each time,
// memory is poisoned, a stream does its work when somebody waits for it, and a barrier that not all threads
// of a block reach ends the process with a message. Within a kernel everything happens on one thread of the
// host, so that two CUDA threads never write at the very same time, and memory is as coherent as it gets:
// what depends on fences is not tested here.
package emu

// #cgo CXXFLAGS: -std=c++17 -O2 -DTOKENROUTER_EMULATED -I${SRCDIR}/include -Wall -Wextra -Wno-unknown-pragmas
// #include "../device/backend.h"
// #include "faults.h"
import "C"

import (
	"tokenrouter/cuda/device"
	"tokenrouter/cuda/kernels"
	"tokenrouter/exec/native"
)

// Go compiles this package anew if what it includes from others changes, for these embed that.
var _, _ = device.Sources, kernels.Sources

// Backend is the emulated device: one, with 1 GiB of memory.
func Backend() native.Backend { return native.Wrap(C.cuda_backend()) }

// FailFrom makes the count-th call of the runtime from now on, and all after it, fail as those of a broken
// card do; 0: none. It is of the calling thread of the operating system.
func FailFrom(count int) { C.emu_fail_from(C.int32_t(count)) }

// Driver makes the driver one for a version of CUDA, such as 12040; 0: that of the runtime, as it is at
// first. Where it is older there is no device.
func Driver(version int) { C.emu_driver(C.int32_t(version)) }
