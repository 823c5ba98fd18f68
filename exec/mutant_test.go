package exec_test

import (
	"time"

	"tokenrouter/exec"
)

// mutant is what a deliberately wrong executor does. The zero mutant does nothing wrong.
type mutant struct {
	gather   *time.Duration
	lateNs   int64 // passes end so much late
	tardyNs  int64 // clients submit so much late
	reorders bool  // links let short messages overtake long ones
	device   func(exec.Device) exec.Device
}
