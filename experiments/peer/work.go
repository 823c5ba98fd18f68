package main

import (
	"fmt"
	"slices"
	"time"
)

// work is what a step does: Requests requests, each with Rows fresh tokens after Start tokens in KV. Logits,
// and of ours a token, come after the last of each.
type work struct {
	Requests int `json:"requests"`
	Start    int `json:"start"`
	Rows     int `json:"rows"`
}

// Tokens of a request while it decodes, and of a prompt.
const contextTokens, promptTokens = 128, 512

func decode(requests int) work { return work{requests, contextTokens - 1, 1} }

var prefill = work{1, 0, promptTokens}

func (w work) String() string {
	if w.Start == 0 {
		return fmt.Sprintf("prefill of %d tokens", w.Rows)
	}
	return fmt.Sprintf("decode, batch %d", w.Requests)
}

// token is what every request feeds at a position, as in peer.py.
func token(position int) int32 { return int32(position*7 + 1) }

// times are steps of one kind, in order.
type times []time.Duration

func (t times) best() time.Duration { return slices.Min(t) }

func (t times) median() time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[len(s)/2]
}

// cycles calls steps in turn, once without counting and then for a time, twice at least: what makes the
// machine slower for a while makes all of a cycle slower. It returns the times of each.
func cycles(forNs time.Duration, steps ...func() error) ([]times, error) {
	all := make([]times, len(steps))
	begin := time.Now()
	for n := 0; n < 3 || time.Since(begin) < forNs; n++ {
		for i, step := range steps {
			start := time.Now()
			if err := step(); err != nil {
				return nil, err
			}
			if n > 0 {
				all[i] = append(all[i], time.Since(start))
			}
		}
	}
	return all, nil
}
