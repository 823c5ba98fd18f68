package cpu

// #include "backend.h"
import "C"

import "tokenrouter/exec/native"

// Backend is this device: one, which has all processors of the machine.
func Backend() native.Backend { return native.Wrap(C.cpu_backend()) }
