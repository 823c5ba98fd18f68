package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/BurntSushi/toml"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/experiments/spec"
)

// experiment is what the file says.
type experiment struct {
	Small, Large   modelKeys
	Prompts        []string      // as many as the largest concurrency, or more
	Outputs        []int         // tokens of an answer
	Concurrency    []int         // requests at a time
	Engines        []string      // of llama.cpp and vllm
	Routing        []routingKeys // of tokens; large only comes by itself
	Threads        int           // of each model in every engine
	Seed           uint64        // of draws
	Rounds         int           // of every point, of which the median counts
	StartTimeout   string        `toml:"start_timeout"` // for an engine to be there
	startTimeoutNs time.Duration
	file           string
}

// modelKeys are a model folder, or a shape of random weights with the small model's tokenizer.
type modelKeys struct {
	Dir   string
	Shape string
	Seed  uint64
}

// routingKeys are a rule: r2r by keyed draws, with the share of drafts that are routed, or rstitch by the
// entropies that engines give.
type routingKeys struct {
	Algorithm string
	P         float64 // r2r
	Threshold float64 // rstitch
}

func (r *routingKeys) String() string {
	if r.Algorithm == "rstitch" {
		return fmt.Sprintf("R-Stitch, threshold %v", r.Threshold)
	}
	return fmt.Sprintf("R2R by draws, p = %v", r.P)
}

// keyed reports whether draws decide in place of signals.
func (r *routingKeys) keyed() bool { return r.Algorithm == "r2r" }

// rule is the algorithm.
func (r *routingKeys) rule() core.Algorithm {
	if r.keyed() {
		return route.R2R{Threshold: 1 - r.P}
	}
	return route.RStitch{Threshold: r.Threshold}
}

// load reads a file strictly.
func load(path string) (*experiment, error) {
	e := &experiment{Threads: 1, Rounds: 1, StartTimeout: "5m", file: path}
	meta, err := toml.DecodeFile(path, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, fmt.Errorf("%s: unknown key %s", path, unknown[0])
	}
	for _, m := range []*modelKeys{&e.Small, &e.Large} {
		if m.Dir != "" {
			m.Dir = filepath.Join(filepath.Dir(path), m.Dir)
		}
	}
	if e.startTimeoutNs, err = time.ParseDuration(e.StartTimeout); err != nil {
		return nil, fmt.Errorf("%s: start_timeout: %w", path, err)
	}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

func (e *experiment) check() error {
	positive := func(n int) bool { return n >= 1 }
	switch {
	case e.Small.Dir == "":
		return fmt.Errorf("small.dir: missing, want a model folder")
	case (e.Large.Dir == "") == (e.Large.Shape == ""):
		return fmt.Errorf("large: want dir or shape")
	case len(e.Outputs) == 0 || !all(e.Outputs, positive):
		return fmt.Errorf("outputs = %v, want numbers of tokens", e.Outputs)
	case len(e.Concurrency) == 0 || !all(e.Concurrency, positive):
		return fmt.Errorf("concurrency = %v, want numbers of requests", e.Concurrency)
	case len(e.Prompts) < slices.Max(e.Concurrency):
		return fmt.Errorf("prompts: %d, want one for each of %d requests", len(e.Prompts), e.live())
	case e.Threads < 1 || e.Rounds < 1:
		return fmt.Errorf("threads = %d and rounds = %d, want at least 1", e.Threads, e.Rounds)
	}
	for _, name := range e.Engines {
		if name != "llama.cpp" && name != "vllm" {
			return fmt.Errorf("engines: %q, want llama.cpp or vllm", name)
		}
	}
	for _, r := range e.Routing {
		switch {
		case r.Algorithm == "r2r" && r.P > 0 && r.P < 1 && r.Threshold == 0:
		case r.Algorithm == "rstitch" && r.Threshold >= spec.ThresholdMin && r.P == 0:
		default:
			return fmt.Errorf("routing: %+v, want r2r with p between 0 and 1, or rstitch with a threshold", r)
		}
	}
	return nil
}

func all(numbers []int, is func(int) bool) bool {
	return !slices.ContainsFunc(numbers, func(n int) bool { return !is(n) })
}

// tokensMax is the longest answer.
func (e *experiment) tokensMax() int { return slices.Max(e.Outputs) }

// live is the largest concurrency.
func (e *experiment) live() int { return slices.Max(e.Concurrency) }
