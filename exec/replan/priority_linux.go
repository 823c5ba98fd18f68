package replan

import "golang.org/x/sys/unix"

// yieldToOthers has the calling thread run only where no other wants the processor. On Linux, process 0 is
// this thread alone. Where it is refused the thread runs on as it is.
func yieldToOthers() {
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
}
