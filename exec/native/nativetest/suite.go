package nativetest

import (
	"testing"

	"tokenrouter/exec/native"
)

// Suite is what every native device must pass.
type Suite struct {
	Backend native.Backend
	Options native.Options

	// SameBits: the device promises that the answer to a request has the same bits in any batch, in whatever
	// parts its prompt comes and on whatever pages it lies. Without it the logits must be near.
	SameBits bool
}

// Run runs all of it.
func (s Suite) Run(t *testing.T) {
	s.RunSteps(t)
	t.Run("published", s.published)
	t.Run("smollm", s.smollm)
	t.Run("head mapping", s.headMapping)
	t.Run("types of weights", s.types)
	t.Run("signals", s.signals)
	t.Run("sampling", s.sampling)
	t.Run("samplable", s.samplable)
	t.Run("frequencies", s.frequencies)
}

// RunSteps runs what needs no arithmetic to be right: how requests, pages and steps go together.
func (s Suite) RunSteps(t *testing.T) {
	for _, name := range []string{"qwen3-untied", "qwen2-window"} {
		c := caseOf(name)
		t.Run(name, func(t *testing.T) {
			t.Run("chunks", func(t *testing.T) { s.chunks(t, c) })
			t.Run("ragged", func(t *testing.T) { s.ragged(t, c) })
			t.Run("page sizes", func(t *testing.T) { s.pageSizes(t, c) })
			t.Run("shared pages", func(t *testing.T) { s.sharedPages(t, c) })
			t.Run("dropped tokens", func(t *testing.T) { s.droppedTokens(t, c) })
			t.Run("used pages", func(t *testing.T) { s.usedPages(t, c) })
			t.Run("not a number", func(t *testing.T) { s.notANumber(t, c) })
			t.Run("refusals", func(t *testing.T) { s.refusals(t, c) })
			t.Run("two models", func(t *testing.T) { s.twoModels(t, c) })
		})
	}
	t.Run("memory", s.memory)
}
