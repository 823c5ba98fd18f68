package main

import (
	"cmp"
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

// times are steps of one kind, shortest first.
type times []time.Duration

func (t times) best() time.Duration   { return t[0] }
func (t times) median() time.Duration { return t[len(t)/2] }

func sorted(t times) times {
	slices.SortFunc(t, func(a, b time.Duration) int { return cmp.Compare(a, b) })
	return t
}

// repeated calls step once, which does not count, and then for a time, twice at least.
func repeated(forNs time.Duration, step func() error) (times, error) {
	if err := step(); err != nil {
		return nil, err
	}
	var all times
	for end := time.Now().Add(forNs); len(all) < 2 || time.Now().Before(end); {
		begin := time.Now()
		if err := step(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(begin))
	}
	return all, nil
}
