package system

import (
	"errors"
	"fmt"
	"slices"

	"tokenrouter/core"
	"tokenrouter/exec/model"
	"tokenrouter/exec/model/router"
	"tokenrouter/exec/model/tokenizer"
	"tokenrouter/exec/native"
	"tokenrouter/exec/remote"
	"tokenrouter/experiments/spec"
)

// Plan is a system that is known to fit together and into memory, with nothing loaded yet. It holds model
// folders open until Close.
type Plan struct {
	// Spec is the description with all that the folders add: algorithm, threshold, context, page size.
	Spec spec.System
	// Core is the scheduler's configuration: the models that make tokens, in order.
	Core core.Config
	// Tokenizer is that of all models; nil if none has one, as models of random weights.
	Tokenizer *tokenizer.Tokenizer
	// EOS are the tokens that end an answer, whoever makes them: all that any model's folder names.
	EOS []int

	backend native.Backend
	info    native.Info // of its first device, which is used
	models  []*opened
	network *router.Router // nil: the algorithm has none
	scorer  Scorer         // nil: requests are not routed as a whole
	budget  int64          // bytes

	samplable int  // ids below it may be sampled
	keyed     bool // Choice.Algorithm
	closed    bool
}

// opened is one model that makes tokens.
type opened struct {
	spec       spec.SystemModel
	folder     *model.Folder // nil: random weights, or a server's
	config     model.Config
	processors []int // that it runs on; nil: any
	threads    int
	needs      native.Needs
}

// Choice is what a Plan takes from elsewhere than a spec.System.
type Choice struct {
	Backend native.Backend
	// Algorithm, if not nil, takes the place of Spec.Router: verdicts come from draws that are keyed by
	// request and position (native.Execution.Keyed), as in the simulator, and no router is read.
	Algorithm core.Algorithm
	// Scorer, if not nil, takes the place of the router folder of the algorithm query.
	Scorer Scorer
}

// Prepare opens the folders of s, which has no Faults, and plans memory. Its errors are about what was given,
// not about the world, but for those of the backend.
func Prepare(s *spec.System, c Choice) (p *Plan, err error) {
	p = &Plan{Spec: *s, backend: c.Backend, keyed: c.Algorithm != nil}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	if c.Algorithm == nil {
		if err = p.openRouter(c.Scorer); err != nil {
			return p, err
		}
	}
	if err := p.openModels(); err != nil {
		return p, err
	}
	v, err := vocabularyOf(p.models)
	if err != nil {
		return p, err
	}
	p.Tokenizer, p.samplable = v.tokenizer, v.samplable
	if err := p.configure(c.Algorithm); err != nil {
		return p, err
	}
	return p, p.share()
}

// Close lets go of the model folders; again, it does nothing. A System keeps none.
func (p *Plan) Close() error {
	if p.closed {
		return nil
	}
	p.closed = true
	var errs []error
	for _, m := range p.models {
		if m.folder != nil {
			errs = append(errs, m.folder.Close())
		}
	}
	return errors.Join(errs...)
}

// Samplable is the end of the tokens that all models know and that stand for something.
func (p *Plan) Samplable() int { return p.samplable }

// Warnings are tensors and files of the folders that were left out, each with the reason.
func (p *Plan) Warnings() []string {
	var all []string
	for _, m := range p.models {
		if m.folder != nil {
			all = append(all, m.folder.Warnings...)
		}
	}
	if p.network != nil {
		all = append(all, p.network.Warnings...)
	}
	return all
}

// openModels reads the configuration of every model that makes tokens.
func (p *Plan) openModels() error {
	for i, m := range p.Spec.Used() {
		o := &opened{spec: m}
		if m.Server != nil && !p.keyed {
			if err := remote.Refusal(m.Server.Engine, p.Spec.Router.Algorithm, i); err != nil {
				return fmt.Errorf("model %q: %w", m.Name, err)
			}
		}
		p.models = append(p.models, o)
		switch {
		case m.Shape != nil:
			o.config = *m.Shape
		case m.Server != nil:
			config, err := model.ReadConfig(m.Dir)
			if err != nil {
				return fmt.Errorf("model %q: %w", m.Name, err)
			}
			o.config = config
		default:
			folder, err := model.Open(m.Dir)
			if err != nil {
				return fmt.Errorf("model %q: %w", m.Name, err)
			}
			o.folder, o.config = folder, folder.Config
		}
		for _, id := range o.config.EOS {
			if !slices.Contains(p.EOS, id) {
				p.EOS = append(p.EOS, id)
			}
		}
	}
	if p.network != nil && p.network.Shape.Hidden != p.models[0].config.Hidden {
		return fmt.Errorf("router %s reads hidden states of %d numbers, and those of model %q have %d",
			p.Spec.Router.Dir, p.network.Shape.Hidden, p.models[0].spec.Name, p.models[0].config.Hidden)
	}
	return nil
}

// configure makes the scheduler's configuration, but for the pages.
func (p *Plan) configure(algorithm core.Algorithm) error {
	s := &p.Spec
	positions := p.models[0]
	for _, m := range p.models {
		if m.config.Positions < positions.config.Positions {
			positions = m
		}
	}
	if s.ContextMax == 0 {
		s.ContextMax = min(spec.SystemContextMax, positions.config.Positions)
	}
	if s.ContextMax > positions.config.Positions {
		return fmt.Errorf("a context of %d tokens, and model %q can have %d", s.ContextMax,
			positions.spec.Name, positions.config.Positions)
	}
	devices, err := p.backend.Devices()
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return fmt.Errorf("%s: %w", p.backend.Kind(), native.ErrNoDevice)
	}
	if p.info = devices[0]; s.PageTokens == 0 {
		s.PageTokens = p.info.PageTokens
	}
	if p.budget = s.MemoryBytes; p.budget == 0 {
		p.budget = p.info.FreeBytes / 10 * 9
	}
	s.Budget = max(s.Budget, 2*s.PageTokens)
	policy, err := s.Policy.Core(s.Policy.Table)
	if err != nil {
		return err
	}
	p.Core = core.Config{
		Algorithm: algorithm, Policy: policy, Admission: s.Admission,
		Requests: s.Concurrency + s.Queue, LiveMax: s.Concurrency,
		ContextMax: s.ContextMax, PageTokens: s.PageTokens, TokenBudget: s.Budget,
	}
	if algorithm == nil {
		p.Core.Algorithm, err = p.Rule(s.Router)
	}
	for _, m := range p.models {
		p.Core.Models = append(p.Core.Models, core.Model{Name: m.spec.Name, RowsMax: m.spec.RowsMax})
	}
	if len(p.models) == 1 { // nobody to wait for
		p.Core.Policy = core.Eager{}
	}
	return err
}
