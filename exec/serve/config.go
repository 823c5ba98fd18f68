package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/replan"
)

// Config says what a Server offers, and its limits.
type Config struct {
	// Name is that of all models together. Models are the scheduler's, small first; with one, its own name is
	// as good as Name.
	Name   string
	Models []string

	Tokenizer *tokenizer.Tokenizer
	Template  *chat.Template      // nil: there is no /v1/chat/completions
	EOS       func(id int32) bool // tokens that end an answer
	Vocab     int                 // ids below it are known to all models
	Core      core.Config         // the loop's: models, ContextMax, LiveMax
	// Entry says, with routing by request, which model answers a prompt, at a threshold of the request's own or
	// nil; without, it is nil.
	Entry func(ids []int32, threshold *float64) (int, error)
	// Rule makes the algorithm of a request with a threshold of its own; nil: there is none. It needs
	// exec.Config.OwnAlgorithms.
	Rule func(threshold float64) core.Algorithm
	// Scores says that the first model's drafts have a score of a router (core.Result.Score).
	Scores bool
	// Planner, if not nil, is the scheduler's policy; /health and /metrics show what it has in force.
	// Thresholds are shown without one; nil: all 1.
	Planner    *replan.Planner
	Thresholds *core.Thresholds
	Seed       uint64 // of the loop's devices: draws of requests without a seed
	// Fatal says of a device's error that the device will not run again.
	Fatal func(error) bool

	Slots        int           // choices at a time, live or waiting
	ChoicesMax   int           // of one request
	BodyBytesMax int64         // of one request
	ReadTimeout  time.Duration // for the whole of a request's body
	WriteTimeout time.Duration // for each piece of an answer
	TimeMax      time.Duration // most time of a request, from its arrival to its end
	DrainTime    time.Duration // for live requests, once the server is told to end
	KeepAlive    time.Duration // between comments in a stream that has nothing to say
	APIKey       string        // wanted by /v1 and /tokenize; empty: none
	Origins      []string      // of pages of other hosts that may call (CORS); "*": any
	Log          *slog.Logger
}

// Defaults of a Config.
const (
	ChoicesMaxDefault   = 8
	BodyBytesMaxDefault = 4 << 20
	ReadTimeoutDefault  = 30 * time.Second
	WriteTimeoutDefault = 30 * time.Second
	TimeMaxDefault      = 10 * time.Minute
	DrainTimeDefault    = 30 * time.Second
	KeepAliveDefault    = 15 * time.Second
)

// complete fills in defaults and refuses what can not be.
func (c *Config) complete() error {
	defaults := func(d *time.Duration, of time.Duration) {
		if *d == 0 {
			*d = of
		}
	}
	defaults(&c.ReadTimeout, ReadTimeoutDefault)
	defaults(&c.WriteTimeout, WriteTimeoutDefault)
	defaults(&c.TimeMax, TimeMaxDefault)
	defaults(&c.DrainTime, DrainTimeDefault)
	defaults(&c.KeepAlive, KeepAliveDefault)
	if c.ChoicesMax == 0 {
		c.ChoicesMax = ChoicesMaxDefault
	}
	if c.BodyBytesMax == 0 {
		c.BodyBytesMax = BodyBytesMaxDefault
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Name == "" || len(c.Models) == 0 || len(c.Models) != len(c.Core.Models) {
		return fmt.Errorf("serve: name %q and models %q, want a name, and one for each of %d models", c.Name,
			c.Models, len(c.Core.Models))
	}
	if c.Tokenizer == nil || c.EOS == nil {
		return errors.New("serve: Tokenizer and EOS must be set")
	}
	if c.Slots < 1 || c.Vocab < 1 || c.ChoicesMax < 1 || c.BodyBytesMax < 1 {
		return fmt.Errorf("serve: Slots = %d, Vocab = %d, ChoicesMax = %d, BodyBytesMax = %d, want at least 1 each",
			c.Slots, c.Vocab, c.ChoicesMax, c.BodyBytesMax)
	}
	for _, d := range []time.Duration{c.ReadTimeout, c.WriteTimeout, c.TimeMax, c.DrainTime, c.KeepAlive} {
		if d < 0 {
			return fmt.Errorf("serve: a time of %v, want at least 0", d)
		}
	}
	return nil
}
