package nativetest

import (
	"testing"

	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/native"
)

// Suite is what every native device must pass.
type Suite struct {
	Backend native.Backend
	Options native.Options

	// SameBits: the device promises that the answer to a request has the same bits in any batch, in whatever
	// parts its prompt comes and on whatever pages it lies. Without it the logits must be near.
	SameBits bool

	// Emulated: the device is so slow that only tiny models are run.
	Emulated bool

	// Int8: the device keeps matrices in 8 bits if it is asked to. Without it, it must say that it does not.
	Int8 bool

	// The format that is tested; see formats.
	weights native.Weights
	group   int
	router  *router.Router
}

// Run runs all of it.
func (s Suite) Run(t *testing.T) {
	s.RunSteps(t)
	t.Run("published", s.published)
	if !s.Emulated {
		t.Run("smollm", s.smollm)
	}
	t.Run("head mapping", s.headMapping)
	t.Run("types of weights", s.types)
	t.Run("signals", s.signals)
	t.Run("sampling", s.sampling)
	t.Run("samplable", s.samplable)
	t.Run("frequencies", s.frequencies)
	t.Run("int8", s.int8)
	t.Run("scores", s.scores)
}

// RunSteps runs what needs no arithmetic to be right: how requests, pages and steps go together.
func (s Suite) RunSteps(t *testing.T) {
	for _, name := range []string{"qwen3-untied", "qwen2-window"} {
		t.Run(name, func(t *testing.T) { s.laws(t, caseOf(name)) })
	}
	for _, f := range formats {
		t.Run(f.name, func(t *testing.T) {
			c := caseOf("qwen3-untied")
			if s, ok := s.in(t, f, c); ok {
				s.laws(t, c)
			}
		})
	}
	t.Run("memory", s.memory)
	t.Run("size in int8", s.int8Size)
	t.Run("router of another model", s.routerOfAnother)
}

// RunLaws runs how requests, pages and steps go together for one published case: what is left to show of a
// device's second way to do the same.
func (s Suite) RunLaws(t *testing.T, published string) { s.laws(t, caseOf(published)) }

// laws: how requests, pages and steps of a model go together.
func (s Suite) laws(t *testing.T, c model.Config) {
	for _, law := range []struct {
		name  string
		run   func(*testing.T, model.Config)
		cache bool // of the cache alone, of which a router knows nothing
	}{
		{"chunks", s.chunks, false}, {"ragged", s.ragged, false}, {"page sizes", s.pageSizes, true},
		{"shared pages", s.sharedPages, true}, {"dropped tokens", s.droppedTokens, true},
		{"used pages", s.usedPages, true}, {"not a number", s.notANumber, false}, {"refusals", s.refusals, true},
		{"two models", s.twoModels, false},
	} {
		if s.Emulated && s.router != nil && law.cache {
			continue
		}
		t.Run(law.name, func(t *testing.T) { law.run(t, c) })
	}
}
