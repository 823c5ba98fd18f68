package latency

import (
	"fmt"
	"math"
)

// Link is a path between nodes or processes: a fixed latency and a bandwidth. Make one with NewLink.
// The zero Link takes no time.
type Link struct {
	latencyNs      int64
	bytesPerSecond float64
}

// NewLink returns a link of a latency in nanoseconds, 0 to MaxStepNs, and a bandwidth in bytes a second
// above 0; math.Inf(1) means that size does not matter.
func NewLink(latencyNs int64, bytesPerSecond float64) (Link, error) {
	if latencyNs < 0 || latencyNs > MaxStepNs {
		return Link{}, fmt.Errorf("latency: link latency of %d ns, want 0 to %d", latencyNs, MaxStepNs)
	}
	if !(bytesPerSecond > 0) {
		return Link{}, fmt.Errorf("latency: link bandwidth of %v bytes/s, want above 0", bytesPerSecond)
	}
	return Link{latencyNs: latencyNs, bytesPerSecond: bytesPerSecond}, nil
}

// TransferNs returns the time of a message of some bytes: latency + bytes / bandwidth, rounded up. It
// saturates at MaxStepNs and panics when bytes is negative.
func (l Link) TransferNs(bytes int64) int64 {
	if bytes < 0 {
		panic(fmt.Sprintf("latency: transfer of %d bytes", bytes))
	}
	if bytes == 0 || l.bytesPerSecond == 0 {
		return l.latencyNs
	}
	ns := math.Ceil(float64(bytes) * 1e9 / l.bytesPerSecond)
	if !(ns < float64(MaxStepNs-l.latencyNs)) {
		return MaxStepNs
	}
	return l.latencyNs + int64(ns)
}
