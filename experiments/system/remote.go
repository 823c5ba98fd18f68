package system

import (
	"context"
	"fmt"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/route"
	"tokenrouter/exec"
	"tokenrouter/exec/remote"
)

// Remote reports whether a server runs any of the models.
func (p *Plan) Remote() bool {
	for _, m := range p.models {
		if m.spec.Server != nil {
			return true
		}
	}
	return false
}

// connect finds the servers and refuses those that do not fit: another vocabulary, a context that is too
// short, fewer slots than requests, not as much of a distribution as the algorithm needs.
func (s *System) connect(ctx context.Context) error {
	for _, m := range s.models {
		s.clients = append(s.clients, nil)
		of := m.spec.Server
		if of == nil {
			continue
		}
		client, err := remote.Open(ctx, remote.Config{
			Name: m.spec.Name, Engine: of.Engine, URL: of.URL, Model: of.Model, Timeout: time.Duration(of.TimeoutNs),
			Vocab: m.config.Vocab, Samplable: s.samplable,
		})
		if err != nil {
			return err
		}
		s.clients[len(s.clients)-1] = client
		if err := s.fits(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// fits refuses a server that can not do what the plan asks of it.
func (s *System) fits(ctx context.Context, client *remote.Client) error {
	info := client.Info()
	if n := info.ContextMax; n > 0 && n < s.Core.ContextMax {
		return fmt.Errorf("%s has a context of %d tokens, want at least scheduler.context_max = %d", client, n,
			s.Core.ContextMax)
	}
	if n := info.Slots; n > 0 && n < s.Core.LiveMax {
		return fmt.Errorf("%s has %d slots, want at least scheduler.concurrency = %d: start it with -np %d", client,
			n, s.Core.LiveMax, s.Core.LiveMax)
	}
	if s.Tokenizer != nil {
		if _, err := client.CheckVocabulary(ctx, s.Tokenizer); err != nil {
			return err
		}
	}
	if _, needs := s.entropy(s.Core); needs {
		return client.CheckEntropy(ctx)
	}
	return nil
}

// remote is the device of model i under a scheduling, nil for one that runs here.
func (s *System) remote(i int, c core.Config, seed uint64) exec.Device {
	if s.clients[i] == nil {
		return nil
	}
	threshold, needs := s.entropy(c)
	return remote.NewDevice(s.clients[i], remote.Execution{
		Seed: seed, EOS: s.eos(i), Keyed: s.keyed, Entropy: needs, Threshold: threshold,
	})
}

// entropy is the threshold of a scheduling's algorithm, if that compares entropies.
func (s *System) entropy(c core.Config) (threshold float64, needs bool) {
	if rule, ok := c.Algorithm.(route.RStitch); ok {
		return rule.Threshold, true
	}
	return s.Spec.Router.Threshold, s.Spec.Router.Algorithm == "rstitch" && !s.keyed
}
