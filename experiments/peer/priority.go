package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// Scheduling policies and a priority of sched(7).
const (
	schedOther, schedFIFO = 0, 1
	burstPriority         = 10
)

// setPolicy has all threads of some processes scheduled in another way.
func setPolicy(processes []int, policy, priority int32) error {
	for _, process := range processes {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
		if err != nil {
			return err
		}
		for _, task := range tasks {
			thread, err := strconv.Atoi(filepath.Base(task))
			if err != nil {
				return err
			}
			_, _, code := syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, uintptr(thread), uintptr(policy),
				uintptr(unsafe.Pointer(&priority)))
			if code != 0 && code != syscall.ESRCH { // the thread may have ended
				return os.NewSyscallError("sched_setscheduler", code)
			}
		}
	}
	return nil
}
