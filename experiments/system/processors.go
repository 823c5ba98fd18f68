package system

import (
	"os"
	"strconv"
	"strings"

	"tokenrouter/exec/native"
)

// allowedProcessors are those that this process may use, nil where the system does not say: the numbers of
// Cpus_allowed_list in proc(5).
func allowedProcessors() []int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return parseRanges(strings.TrimSpace(list))
		}
	}
	return nil
}

// parseRanges reads a list such as 0-3,8; nil if it is none.
func parseRanges(list string) []int {
	var all []int
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from > to {
			return nil
		}
		for p := from; p <= to; p++ {
			all = append(all, p)
		}
	}
	return all
}

// parts splits processors among n models as evenly as can be, the last ones get those that are left over, and
// none more than a device takes; nil if there are fewer than models.
func parts(processors []int, n int) [][]int {
	if len(processors) < n {
		return nil
	}
	out := make([][]int, n)
	for i := range out {
		part := processors[i*len(processors)/n : (i+1)*len(processors)/n]
		out[i] = part[:min(len(part), native.ProcessorsMax)]
	}
	return out
}
