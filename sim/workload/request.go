package workload

import (
	"fmt"
	"math"
)

// Request is one request of a workload.
type Request struct {
	ID           uint64 // 0, 1, ... in order of arrival
	ArrivalNs    int64  // planned arrival, 0 to MaxArrivalNs; never falls from one request to the next
	PromptTokens int32  // tokens of the prompt, at least 1
	OutputTokens int32  // natural length, at which the end-of-sequence token comes; 0: never
	MaxTokens    int32  // limit on output tokens; 0: none
	PrefixGroup  uint32 // requests of one group begin with the same PrefixTokens tokens; 0: no group
	PrefixTokens int32  // shared tokens at the start of the prompt, at most PromptTokens
}

// EndTokens returns after how many output tokens the request ends: its natural length or its limit,
// whichever comes first.
func (r Request) EndTokens() int32 {
	if r.OutputTokens == 0 || r.MaxTokens > 0 && r.MaxTokens < r.OutputTokens {
		return r.MaxTokens
	}
	return r.OutputTokens
}

// Source is a stream of requests in order of arrival.
type Source interface {
	// Next returns the next request, or ok = false at the end. After the end, ask Err.
	Next() (r Request, ok bool)
}

// Err returns the error that ended a source early, or nil when it ended as it should. Sources that can
// fail (traces, open loops that outrun the clock) have a method Err() error.
func Err(s Source) error {
	if s, ok := s.(interface{ Err() error }); ok {
		return s.Err()
	}
	return nil
}

const (
	// MaxArrivalNs is the latest arrival, 2^62 ns or about 146 years; as much again is left for service.
	MaxArrivalNs int64 = 1 << 62
	// Endless is a count of requests that never runs out.
	Endless uint64 = math.MaxUint64
	// MaxPerSecond is the highest arrival rate. Gaps are whole nanoseconds, and above it their rounding
	// would bend the law.
	MaxPerSecond = 1e7
)

// Lengths says how long the requests of a generated workload are.
type Lengths struct {
	Prompt    Length // tokens of the prompt
	Output    Length // natural output tokens; the zero Length means never, and needs MaxTokens
	MaxTokens int32  // limit on output tokens; 0: none

	PrefixGroups uint32 // how many groups share a prefix, drawn uniformly a request; 0: none
	PrefixTokens int32  // shared tokens of each group, cut to the prompt where that is shorter
}

func (l Lengths) check() error {
	switch {
	case l.Prompt.kind == 0:
		return fmt.Errorf("workload: no prompt length, want a distribution")
	case l.MaxTokens < 0:
		return fmt.Errorf("workload: max tokens = %d, want 0 (no limit) or more", l.MaxTokens)
	case l.Output.kind == 0 && l.MaxTokens == 0:
		return fmt.Errorf("workload: neither output length nor max tokens, so no request would ever end")
	case l.PrefixTokens < 0:
		return fmt.Errorf("workload: prefix tokens = %d, want 0 or more", l.PrefixTokens)
	case l.PrefixGroups > 0 && l.PrefixTokens == 0:
		return fmt.Errorf("workload: %d prefix groups with prefix tokens = 0, want at least 1", l.PrefixGroups)
	case l.PrefixGroups == 0 && l.PrefixTokens > 0:
		return fmt.Errorf("workload: prefix tokens = %d with no prefix groups, want at least 1", l.PrefixTokens)
	}
	return nil
}
