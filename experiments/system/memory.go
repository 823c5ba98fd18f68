package system

import (
	"fmt"

	"tokenrouter/core"
	"tokenrouter/exec/native"
)

// share gives the models their processors and pages of KV memory: the same number of tokens to each, as many
// as the budget has room for and the requests can use.
func (p *Plan) share() error {
	if err := p.assign(); err != nil {
		return err
	}
	s := &p.Spec
	context := (s.ContextMax + s.PageTokens - 1) / s.PageTokens
	enough := context * s.Concurrency
	var footprints []core.Footprint
	for i, m := range p.models {
		if p.Core.Models[i].Pages = 1; m.spec.Server != nil {
			p.Core.Models[i].Pages = enough // the server's own memory is its own matter
			continue
		}
		needs, err := p.probe(i)
		if err != nil {
			return fmt.Errorf("model %q: %w", m.spec.Name, err)
		}
		footprints = append(footprints, core.Footprint{
			Name: m.spec.Name, WeightBytes: needs.WeightBytes + needs.WorkBytes,
			KVBytesPerTok: needs.KVBytesPerToken,
		})
	}
	if footprints == nil {
		return nil
	}
	pages, err := core.PlanPages(p.budget, footprints, s.PageTokens)
	if err != nil {
		return err
	}
	pages = min(pages, enough)
	for {
		if pages < context {
			return fmt.Errorf("memory of %d bytes has room for %d tokens beside the weights of %s, want at"+
				" least one context of %d tokens: more memory or a smaller context", p.budget,
				max(pages, 0)*s.PageTokens, p.names(), s.ContextMax)
		}
		total, err := p.total(pages)
		if err != nil {
			return err
		}
		if total <= p.budget { // work memory may grow with the pages
			return nil
		}
		pages--
	}
}

// Narrow makes do with the KV memory of requests that have at most so many tokens each, prompt and answer, in
// place of Spec.ContextMax if that is more. It must come before Open.
func (p *Plan) Narrow(tokens int) error {
	if tokens >= p.Spec.ContextMax {
		return nil
	}
	p.Spec.ContextMax, p.Core.ContextMax = tokens, tokens
	return p.share()
}

// total is what all models take with so many pages, which they get.
func (p *Plan) total(pages int) (int64, error) {
	sum := int64(0)
	for i, m := range p.models {
		if m.spec.Server != nil {
			continue
		}
		p.Core.Models[i].Pages = pages
		needs, err := p.probe(i)
		if err != nil {
			return 0, fmt.Errorf("model %q: %w", m.spec.Name, err)
		}
		m.needs = needs
		sum += needs.Total()
	}
	return sum, nil
}

func (p *Plan) probe(i int) (native.Needs, error) {
	return p.backend.Probe(p.config(i), native.LimitsOf(p.Core, i))
}

func (p *Plan) names() string {
	text := ""
	for i, m := range p.models {
		if i > 0 {
			text += " and "
		}
		text += fmt.Sprintf("%q", m.spec.Name)
	}
	return text
}

// assign says on which processors each model runs. On a card that is all of it, or a part of its own.
func (p *Plan) assign() error {
	if p.onCard() {
		return p.assignParts()
	}
	if p.Spec.GraphBatches != nil || p.Spec.GraphTokens != nil {
		return fmt.Errorf("device.graph_batches and graph_tokens: backend %s has no graphs", p.backend.Kind())
	}
	if p.Spec.Shared {
		return nil
	}
	var here []*opened
	for _, m := range p.models {
		if m.spec.Server == nil {
			here = append(here, m)
		}
	}
	own := parts(allowedProcessors(), len(here))
	for i, m := range here {
		switch {
		case m.spec.Processors != nil:
			m.processors = m.spec.Processors
		case m.spec.Threads > 0:
			m.threads = m.spec.Threads
		case own != nil:
			m.processors = own[i]
		}
	}
	return nil
}

// assignParts gives models the multiprocessors that they shall have to themselves.
func (p *Plan) assignParts() error {
	sum := 0
	for _, m := range p.models {
		if m.spec.Processors != nil {
			return fmt.Errorf("model %q: processors are of backend cpu: want threads, multiprocessors of its own, or"+
				" neither", m.spec.Name)
		}
		m.threads = m.spec.Threads
		sum += m.threads
	}
	if sum > p.info.Processors {
		return fmt.Errorf("models with %d multiprocessors of their own (threads), and %s has %d", sum, p.info.Name,
			p.info.Processors)
	}
	return nil
}

// onCard reports whether models run on a card, which they share.
func (p *Plan) onCard() bool { return p.backend.Kind() == "cuda" }
