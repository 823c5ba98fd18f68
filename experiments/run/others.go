package run

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
)

// processorTime is how the processors of this machine have spent their time so far, in seconds, as far as
// Linux tells.
type processorTime struct {
	all  float64 // of all processors, idle or not
	busy float64 // of that, with anything, on a virtual machine with other guests too
	own  float64 // of that, with this process
}

// processorTimeNow is all zero where the system does not tell.
func processorTimeNow() (t processorTime) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return t
	}
	const idle, wait, steal = 3, 4, 7       // proc_stat(5)
	const ticksPerSecond, micros = 100, 1e6 // USER_HZ of every architecture that Go runs on
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for i, field := range bytes.Fields(line) {
		ticks, err := strconv.ParseFloat(string(field), 64)
		if err != nil || i-1 > steal { // the name; guests count as user time already
			continue
		}
		t.all += ticks / ticksPerSecond
		if i-1 != idle && i-1 != wait {
			t.busy += ticks / ticksPerSecond
		}
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return processorTime{}
	}
	t.own = float64(own.Utime.Sec+own.Stime.Sec) + float64(own.Utime.Usec+own.Stime.Usec)/micros
	return t
}

// othersSince is the share of the processors' time since then that went to others; NaN if that is not known.
func othersSince(then processorTime) float64 {
	now := processorTimeNow()
	if now.all <= then.all {
		return math.NaN()
	}
	return max(now.busy-then.busy-(now.own-then.own), 0) / (now.all - then.all)
}
