package exec

import (
	"tokenrouter/core"
	"tokenrouter/core/keyed"
)

// Device runs the forward passes of one model. Step is called from one goroutine, one pass at
// a time, never from two threads at once but not always from the same thread.
type Device interface {
	// Step feeds the pass and fills p.Results for the rows with a Head. An error ends all
	// requests of the pass as failed; the device must be able to go on with others. A panic is
	// not caught.
	Step(p *Pass) error
}

// Pass is one forward pass. The device must not keep it, nor change what it may read.
type Pass struct {
	Launch core.Launch
	At     core.Time // of the turn that launched it
	// Tokens[i] are the ids to feed for Launch.Rows[i]: positions Start to Start+Fresh.
	Tokens [][]int32
	// Results[i] is for Launch.Rows[i]. All are zero when Step is called.
	Results []core.Result
	// Freed are slots whose requests have left since the model's last pass. What the device
	// keeps of them is void. Freed comes before Grants: a slot may have been taken again.
	Freed []int32
	// Grants are the KV pages given since the model's last pass, in order. A later grant of a
	// slot and index replaces an earlier one: pages may have been taken away and given anew.
	Grants []core.Grant
	// Errors[i] is for the device to set where Results[i] has failed: why. nil stands for logits that are not
	// numbers.
	Errors []error
	// Contexts[i] is of the request of Launch.Rows[i].
	Contexts []Context
	// Top[i] is for the device to set where Contexts[i].Sampling wants it: the most likely tokens of
	// Launch.Rows[i], the most likely first. It must stay until the next Step.
	Top [][]Candidate
	// DeviceNs is for the device to set: how long the work itself took, without what is around it. 0, as
	// it is when Step is called, stands for all of Step.
	DeviceNs core.Time
}

// Context is what a device may know of a request beyond the ids to feed. It may read it during Step.
type Context struct {
	Sampling *Sampling // nil: the most likely token each time
	Prompt   int       // tokens of the prompt
	IDs      []int32   // prompt and answer as far as they are known here
}

// Bits are the uniform bits of a row's draw at a model for a purpose: of the request's own seed, or of the
// run's and the request's ID.
func (c *Context) Bits(runSeed uint64, row *core.Row, model int, purpose keyed.Purpose) uint64 {
	seed, id := runSeed, row.ID
	if c.Sampling != nil && c.Sampling.Seed != nil {
		seed, id = *c.Sampling.Seed, 0
	}
	position := row.Start + row.Fresh - int32(c.Prompt)
	return keyed.Hash(seed, id, uint32(position), uint32(model), purpose)
}

// Biases are what is added to logits before a token is drawn, one a token: the request's biases less the
// penalties of the answer's tokens.
func (c *Context) Biases() []TokenBias {
	s := c.Sampling
	if s == nil {
		return nil
	}
	var biases []TokenBias
	at := make(map[int32]int)
	entry := func(id int32) *TokenBias {
		i, ok := at[id]
		if !ok {
			i = len(biases)
			at[id], biases = i, append(biases, TokenBias{Token: id})
		}
		return &biases[i]
	}
	for _, b := range s.Bias {
		entry(b.Token).Bias += b.Bias
	}
	if s.PresencePenalty == 0 && s.FrequencyPenalty == 0 {
		return biases
	}
	had := make(map[int32]bool)
	for _, id := range c.IDs[c.Prompt:] {
		b := entry(id)
		if b.Bias -= s.FrequencyPenalty; !had[id] {
			b.Bias -= s.PresencePenalty
			had[id] = true
		}
	}
	return biases
}

// runner is a device and its goroutine.
type runner struct {
	device Device
	passes chan *Pass
	pass   Pass // of the launch in flight
	grants []core.Grant
	freed  []int32
	busy   bool
	rowOf  []int32 // by slot: its row of the pass
	// The pass was due at due, 0 while none is, and began at started.
	due, started core.Time
}

// run steps passes until the channel is closed.
func (l *Loop) run(m int) {
	defer l.running.Done()
	for p := range l.runners[m].passes {
		l.runners[m].started = l.Now()
		err := l.runners[m].device.Step(p)
		l.inbox.complete(stamped{at: l.Now(), kind: core.BatchDone, model: m, err: err})
	}
}
