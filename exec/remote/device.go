package remote

import (
	"context"
	"fmt"
	"math"
	"sync"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
)

// Execution is what results depend on besides the engine.
type Execution struct {
	Seed uint64 // of the run, for all draws of requests whose Sampling has no seed of its own
	EOS  []int  // tokens that end an answer
	// Keyed puts the draw in the place of a router's score, as native.Execution.Keyed does.
	Keyed bool
	// Entropy has the entropy of every distribution bounded, closely enough to tell on which side of Threshold
	// it is: core.Result.Entropy is then a number on that side.
	Entropy   bool
	Threshold float64
	// Bare has no log-probabilities asked for but where Entropy or a request's Sampling.Top needs them: results
	// have none then. It spares engines work, for comparisons.
	Bare bool
}

// Device makes an exec.Device of a Client, one a model.
type Device struct {
	client *Client
	c      Execution
	eos    map[int32]bool
	// slots of the engine, which belong to ours as long as a request has that.
	slots map[int32]int
	free  []int
}

// NewDevice makes an exec.Device of an engine.
func NewDevice(client *Client, c Execution) *Device {
	d := &Device{client: client, c: c, eos: make(map[int32]bool), slots: make(map[int32]int)}
	for _, id := range c.EOS {
		d.eos[int32(id)] = true
	}
	for slot := client.info.Slots - 1; slot >= 0; slot-- {
		d.free = append(d.free, slot)
	}
	return d
}

// Step implements exec.Device. Rows without a head are not worth a call: the engine is handed all tokens with
// the next one. A row that fails is in p.Errors, and the pass does not fail.
func (d *Device) Step(p *exec.Pass) error {
	for _, slot := range p.Freed {
		if of, ok := d.slots[slot]; ok {
			delete(d.slots, slot)
			d.free = append(d.free, of)
		}
	}
	engineNs := make([]int64, len(p.Launch.Rows))
	var calls sync.WaitGroup
	for i := range p.Launch.Rows {
		row := &p.Launch.Rows[i]
		if !row.Head {
			continue
		}
		slot := d.slot(row.Slot)
		calls.Go(func() {
			var err error
			if engineNs[i], err = d.row(p, i, slot); err != nil {
				p.Results[i] = core.Result{Failed: true}
				p.Errors[i] = err
			}
		})
	}
	calls.Wait()
	for _, ns := range engineNs {
		p.DeviceNs = max(p.DeviceNs, ns)
	}
	return nil
}

// slot is where the engine keeps the KV of ours, -1 if it may be anywhere.
func (d *Device) slot(ours int32) int {
	if of, ok := d.slots[ours]; ok {
		return of
	}
	if len(d.free) == 0 {
		return -1
	}
	of := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	d.slots[ours] = of
	return of
}

// row makes the call of a row, more than one where bounds of its entropy do not decide.
func (d *Device) row(p *exec.Pass, i, slot int) (engineNs int64, err error) {
	row, c := &p.Launch.Rows[i], &p.Contexts[i]
	a := Ask{
		IDs: c.IDs[:row.Start+row.Fresh], Sampling: c.Sampling, Biases: c.Biases(), Slot: slot,
		Seed: c.Bits(d.c.Seed, row, p.Launch.Model, keyed.Token),
	}
	if !d.c.Bare {
		a.Top = 1
	}
	wanted, vocab := 0, d.client.c.Vocab
	if s := c.Sampling; s != nil {
		wanted = min(s.Top, vocab)
		a.Top = max(a.Top, wanted)
		if d.c.Entropy && (s.Temperature > 0 || len(a.Biases) > 0) && d.client.c.Engine == SGLang {
			return 0, fmt.Errorf("log-probabilities of %s are those after temperature, biases and penalties, want"+
				" temperature 0 and none of the others for entropies", SGLang)
		}
	}
	if d.c.Entropy {
		a.Top = max(a.Top, min(topSteps[0], vocab))
	}
	ctx := context.Background() // Config.Timeout bounds each call
	answer, err := d.client.Next(ctx, &a)
	if err != nil {
		return 0, err
	}
	r := core.Result{
		Token: answer.Token, LogProb: answer.LogProb,
		EOS:  d.eos[answer.Token] && !(c.Sampling != nil && c.Sampling.IgnoreEOS),
		Draw: keyed.Float(c.Bits(d.c.Seed, row, p.Launch.Model, keyed.Route)),
	}
	if len(answer.Top) > 0 {
		r.TopProb = float32(math.Exp(float64(answer.Top[0].LogProb)))
	}
	if d.c.Keyed {
		r.Score = r.Draw
	}
	if wanted > 0 {
		p.Top[i] = answer.Top[:min(wanted, len(answer.Top))]
	}
	engineNs = answer.EngineNs
	if d.c.Entropy {
		var more int64
		r.Entropy, more, err = d.entropy(ctx, &a, answer.Top)
		engineNs += more
	}
	p.Results[i] = r
	return engineNs, err
}

// entropy bounds the entropy of an answer, asking for more of the distribution until the threshold lies
// outside of the bounds. It is what lies in the middle of them.
func (d *Device) entropy(ctx context.Context, a *Ask, top []exec.Candidate,
) (h float64, engineNs int64, err error) {
	vocab := d.client.c.Vocab
	for step := 1; ; step++ {
		low, high := Bounds(top, vocab)
		if decides(low, high, d.c.Threshold) || len(top) >= vocab {
			return (low + high) / 2, engineNs, nil
		}
		again := *a
		if again.Top = vocab; step < len(topSteps) {
			again.Top = min(max(topSteps[step], len(top)+1), vocab)
		}
		answer, err := d.client.Next(ctx, &again)
		if err != nil {
			return 0, engineNs, fmt.Errorf("for an entropy near the threshold: %w", err)
		}
		top = answer.Top
		engineNs += answer.EngineNs
	}
}
