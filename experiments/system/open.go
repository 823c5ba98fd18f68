package system

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/model/chat"
	"tokenrouter/exec/native"
	"tokenrouter/exec/remote"
)

// Run is what one run of a system needs besides its Plan.
type Run struct {
	Seed    uint64 // of all draws of requests without a seed of their own
	Observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	Failed  func(error) // is told of device errors, from the loop's goroutine
	// OwnAlgorithms is exec.Config.OwnAlgorithms.
	OwnAlgorithms bool
	// Device, if set, is given the device of each model and returns what takes its place.
	Device func(model int, d exec.Device) exec.Device
	// Progress, if set, is told how many bytes of all models' weights are in place.
	Progress func(done, total int64)
}

// System is a system with its models on their devices.
type System struct {
	*Plan
	Loop    *exec.Loop
	Devices []exec.Device   // by model
	Models  []*native.Model // by model; nil for one that a server runs

	clients []*remote.Client // by model; nil for one that runs here
	opened  []*native.Device
	seed    uint64
}

// Open finds the servers, loads the models, closes the plan and makes the loop, which Loop.Run then drives.
// It ends early with the error of ctx, and leaves nothing behind where it fails. It panics for a plan that is
// closed.
func (p *Plan) Open(ctx context.Context, r Run) (s *System, err error) {
	if p.closed {
		panic("system: Open of a plan that is closed")
	}
	s = &System{Plan: p, seed: r.Seed}
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	if err := s.connect(ctx); err != nil { // before weights are read
		return s, err
	}
	total := int64(0)
	for _, m := range p.models {
		if m.spec.Server == nil {
			total += 2 * m.config.Parameters()
		}
	}
	done := int64(0)
	for i, m := range p.models {
		if m.spec.Server != nil {
			s.Models = append(s.Models, nil)
			continue
		}
		device, err := s.device(i)
		if err != nil {
			return s, err
		}
		loaded, err := device.Load(ctx, p.load(i, func(part, _ int64) {
			if r.Progress != nil {
				r.Progress(done+part, total)
			}
		}))
		if err != nil {
			return s, err
		}
		done += 2 * m.config.Parameters()
		s.Models = append(s.Models, loaded)
	}
	if err := p.Close(); err != nil { // what the devices have copied need not stay mapped
		return s, err
	}
	debug.FreeOSMemory() // nor what it took to read the folders stay on the heap
	return s, s.start(p.Core, r)
}

// Again is the same loaded models under a new loop. c is its scheduling: as the Plan's Core, with no more
// slots, live requests, rows, pages and tokens than that has. Loops run one after another; s must outlive the
// new System, whose Close does nothing.
func (s *System) Again(c core.Config, r Run) (*System, error) {
	again := &System{Plan: s.Plan, Models: s.Models, clients: s.clients, seed: r.Seed}
	return again, again.start(c, r)
}

// start makes the devices and the loop.
func (s *System) start(c core.Config, r Run) (err error) {
	for i, m := range s.Models {
		d := s.remote(i, c, r.Seed)
		if m != nil {
			d = native.NewExecutor(m, native.Execution{Seed: r.Seed, EOS: s.eos(i), Keyed: s.keyed})
		}
		if r.Device != nil {
			d = r.Device(i, d)
		}
		s.Devices = append(s.Devices, d)
	}
	s.Loop, err = exec.New(exec.Config{
		Core: c, Devices: s.Devices, Vocab: s.samplable, Observe: r.Observe, Failed: r.Failed,
		OwnAlgorithms: r.OwnAlgorithms,
	})
	return err
}

// device opens the device of model i, or returns the one that all share: a card too, but for models that have
// a part of it to themselves.
func (s *System) device(i int) (*native.Device, error) {
	m := s.models[i]
	shared := s.Spec.Shared || s.onCard() && m.threads == 0
	if shared && len(s.opened) > 0 {
		return s.opened[0], nil
	}
	o := native.Options{
		Kernels: s.Spec.Kernels, Threads: m.threads, Processors: m.processors,
		GraphTokens: s.Spec.GraphTokens, GraphBatches: s.Spec.GraphBatches,
	}
	if m.processors != nil {
		o.Threads = len(m.processors)
	}
	for j, other := range s.models {
		if j == i || shared {
			o.BudgetBytes += other.needs.Total()
		}
	}
	d, err := s.backend.Open(o)
	if err != nil {
		return nil, fmt.Errorf("device of model %q: %w", m.spec.Name, err)
	}
	s.opened = append(s.opened, d)
	return d, nil
}

// config is what model i computes.
func (p *Plan) config(i int) native.Config {
	m := p.models[i]
	c := native.Config{Model: m.config, Samplable: p.samplable}
	if m.spec.Int8 {
		c.Weights, c.GroupInputs = native.WeightsInt8, m.spec.Group
	}
	if i == 0 && p.network != nil {
		c.Router = p.network.Shape
	}
	return c
}

func (p *Plan) load(i int, progress func(done, total int64)) native.Load {
	m := p.models[i]
	l := native.Load{
		Name: m.spec.Name, Config: p.config(i), Limits: native.LimitsOf(p.Core, i), Progress: progress,
	}
	if i == 0 {
		l.Router = p.network
	}
	if l.Source = (native.Files{Folder: m.folder}); m.folder == nil {
		l.Source = &native.Random{Config: m.config, Seed: m.spec.Seed}
	}
	return l
}

// eos are the end tokens that model i has.
func (p *Plan) eos(i int) []int {
	return slices.DeleteFunc(slices.Clone(p.EOS), func(id int) bool { return id >= p.models[i].config.Vocab })
}

// Close frees the models and lets go of servers. Loop.Run must have ended, or never been called.
func (s *System) Close() {
	for _, c := range s.clients {
		if c != nil {
			c.Close() // of idle connections: what Again has made may go on
		}
	}
	for _, d := range s.opened {
		d.Close()
	}
	s.opened = nil
}

// Chat reads the chat template of the first model that has one. It returns an error that wraps chat.ErrNone
// where none has.
func (p *Plan) Chat() (*chat.Template, error) {
	err := fmt.Errorf("models %s: %w", p.names(), chat.ErrNone)
	for _, m := range p.models {
		if m.spec.Dir == "" {
			continue
		}
		t, problem := chat.Load(m.spec.Dir)
		if !errors.Is(problem, chat.ErrNone) {
			return t, problem
		}
	}
	return nil, err
}
