package spec

import "math"

// Probe says which measured seeds count: those right before and right after which the machine was as fast as
// when the step times were measured. It is judged by steps of fixed shapes, never by what the seed gave.
type Probe struct {
	// Tolerance is the most that these steps may take longer or less long than then, as a share.
	Tolerance float64
	// Tries are the most that a seed gets. If none counts, the one nearest to the calibration is kept, marked.
	Tries int
	// WaitNs is the longest wait, before each repeated try, for the machine to be as fast.
	WaitNs int64
	// ExtraNs bounds all waits and repeated tries of a run together. They come at its end, for the seeds with
	// the machine farthest off first. A seed that has none that counts then is marked.
	ExtraNs int64
}

// probe reads the table of a system's probe.
func (s *section) probe() Probe {
	p := Probe{Tolerance: 0.1, Tries: 4, WaitNs: 2e9, ExtraNs: 300e9}
	t := s.sub("probe")
	if t == nil {
		return p
	}
	p.Tolerance = t.number("tolerance", p.Tolerance, aboveZero, math.Inf(1))
	p.Tries = int(t.whole("tries", int64(p.Tries), 1, 100))
	p.WaitNs = t.duration("wait", p.WaitNs, 0)
	p.ExtraNs = t.duration("extra", p.ExtraNs, 0)
	t.done()
	return p
}
