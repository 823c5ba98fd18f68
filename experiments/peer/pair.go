package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tokenrouter/exec/cpu"
)

// decodes are the decode steps that are measured, beside prefill.
var decodes = []work{decode(1), decode(8), decode(requestsMax)}

// pauseNs is the time between bursts, in which threads of the last one stop spinning.
const pauseNs = 20 * time.Millisecond

// pair is one format's two models.
type pair struct {
	*options
	peer      *theirs
	ours      *ours
	processes []int // of both
}

// ask is peer.ask for what computes.
func (p *pair) ask(r request) (a answer, err error) {
	err = p.timed(func() error {
		a, err = p.peer.ask(r)
		return err
	})
	return a, err
}

// timed calls what computes. Another thing may then have the machine.
func (p *pair) timed(compute func() error) error {
	defer time.Sleep(pauseNs)
	if !p.urgent {
		return compute()
	}
	if err := setPolicy(p.processes, schedFIFO, burstPriority); err != nil {
		return err
	}
	return errors.Join(compute(), setPolicy(p.processes, schedOther, 0))
}

// step returns one of ours.
func (p *pair) step(w work) func() error {
	b := p.ours.batch(0, w.Requests, w.Start, w.Rows)
	return func() error { return p.ours.model.Forward(b) }
}

// measured is what was measured of a format. Reads, of as many bytes as the weights have, and decode steps of
// ours went in cycles: they have the same number of times, and equal places belong together.
type measured struct {
	weightBytes int64
	read        times
	results     []*result // decode of 1 request, of more and more, and a prompt
}

// result is what was measured of one work.
type result struct {
	work         work
	ours, theirs times
	variant      variant // llama.cpp's faster
	spreads      float64 // by which logits differ, root mean square, in standard deviations of a row
}

func (r *result) name() string { return fmt.Sprintf("%v %v", r.work, r.variant) }

// measure takes the rounds.
func (p *pair) measure(ctx context.Context) (*measured, error) {
	m := &measured{weightBytes: p.ours.model.Took().WeightBytes}
	reader, err := cpu.NewReader(threads, m.weightBytes)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	for _, w := range append(slices.Clone(decodes), prefill) {
		r, err := p.open(w)
		if err != nil {
			return nil, err
		}
		m.results = append(m.results, r)
	}
	for range p.rounds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := p.round(m, reader); err != nil {
			return nil, err
		}
	}
	for _, r := range m.results {
		if _, err := p.peer.ask(request{Do: "close", Name: r.name()}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// round takes a burst of each.
func (p *pair) round(m *measured, reader *cpu.Reader) error {
	steps := []func() error{reader.Read}
	for _, w := range decodes {
		steps = append(steps, p.step(w))
	}
	ours, err := p.cycles(3*p.burst, steps...)
	if err != nil {
		return err
	}
	prompt, err := p.cycles(p.burst, p.step(prefill))
	if err != nil {
		return err
	}
	m.read = append(m.read, ours[0]...)
	for i, t := range append(ours[1:], prompt...) {
		r := m.results[i]
		a, err := p.ask(request{Do: "run", Name: r.name(), ForNs: p.burst})
		if err != nil {
			return err
		}
		r.ours, r.theirs = append(r.ours, t...), append(r.theirs, a.Ns...)
	}
	return nil
}

// cycles is for steps of ours.
func (p *pair) cycles(forNs time.Duration, steps ...func() error) (all []times, err error) {
	err = p.timed(func() error {
		all, err = cycles(forNs, steps...)
		return err
	})
	return all, err
}

// open readies both sides for a work: it finds llama.cpp's faster variant and compares logits.
func (p *pair) open(w work) (*result, error) {
	tries := make([]times, len(variants))
	for range 3 {
		for i, v := range variants {
			r := &result{work: w, variant: v}
			if tries[i] == nil {
				if _, err := p.ask(request{Do: "open", Name: r.name(), work: &w, variant: &v}); err != nil {
					return nil, err
				}
			}
			a, err := p.ask(request{Do: "run", Name: r.name(), ForNs: p.burst / 2})
			if err != nil {
				return nil, err
			}
			tries[i] = append(tries[i], a.Ns...)
		}
	}
	faster := 0
	if tries[1].best() < tries[0].best() {
		faster = 1
	}
	slower := &result{work: w, variant: variants[1-faster]}
	if _, err := p.peer.ask(request{Do: "close", Name: slower.name()}); err != nil {
		return nil, err
	}
	r := &result{work: w, variant: variants[faster]}
	return r, p.compare(r)
}

// compare finds how far the logits of the last request are apart.
func (p *pair) compare(r *result) error {
	mine, err := p.ours.logits(p.ours.batch(0, r.work.Requests, r.work.Start, r.work.Rows))
	if err != nil {
		return err
	}
	a, err := p.peer.ask(request{Do: "logits", Name: r.name()})
	if err != nil {
		return err
	}
	r.spreads, err = spreads(mine, a.Logits)
	return err
}

// spreads is the root of the mean square of what two rows of logits differ by, in standard deviations of the
// first. The second lies as float32 in bytes.
func spreads(mine []float32, raw []byte) (float64, error) {
	if len(raw) != 4*len(mine) {
		return 0, fmt.Errorf("llama.cpp gave %d bytes of logits, want %d", len(raw), 4*len(mine))
	}
	var sum, squares, apart float64
	for i, x := range mine {
		y := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		sum += float64(x)
		squares += float64(x) * float64(x)
		apart += float64(x-y) * float64(x-y)
	}
	n := float64(len(mine))
	return math.Sqrt(apart / (squares - sum*sum/n)), nil
}
