package run

import (
	"errors"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/experiments/spec"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// configure is the core's configuration of a point.
func configure(p *spec.Point, policy core.Policy) core.Config {
	c := core.Config{
		Algorithm: p.Algorithm, Policy: policy, Admission: p.Admission,
		Requests: p.Concurrency + p.Queue, LiveMax: p.Concurrency,
		ContextMax: p.ContextMax, PageTokens: p.PageTokens, TokenBudget: p.Budget,
		Static: p.Static, Unmixed: p.Unmixed, Ahead: p.Ahead, FrontNs: p.FrontNs,
	}
	nodes := 1
	for _, m := range p.Models {
		c.Models = append(c.Models, core.Model{
			Name: m.Name, Node: m.Node, Pages: m.Pages, RowsMax: m.RowsMax,
			TokenCalls: m.TokenCalls, Forgets: m.Forgets, DispatchNs: m.DispatchNs,
		})
		nodes = max(nodes, m.Node+1)
	}
	if least := 4 * p.Concurrency; p.Workload.Closed() || nodes > 1 {
		c.Requests = max(c.Requests, least)
	}
	return c
}

// world is the simulator's configuration of a point under a seed. The meter is left to the caller.
func world(p *spec.Point, policy core.Policy, seed uint64) (sim.Config, meter.Config, error) {
	c := sim.Config{
		Core: configure(p, policy), Closed: p.Workload.Closed(), Seed: seed,
		Until: p.Workload.UntilNs, Steady: p.Workload.Steady, Outcome: p.Outcome,
		Link: func(from, to int) latency.Link { return p.Links[[2]int{from, to}] },
	}
	if p.Paths != nil {
		c.Outcome = recorded(p.Paths)
	}
	nodes := 1
	for _, m := range p.Models {
		c.Latency, c.Beside = append(c.Latency, m.Latency), append(c.Beside, m.Beside)
		nodes = max(nodes, m.Node+1)
	}
	if err := requests(p, seed, &c); err != nil {
		return sim.Config{}, meter.Config{}, fmt.Errorf("workload: %w", err)
	}
	return c, meter.Config{
		Models: len(p.Models), Slots: c.Core.Requests, Nodes: nodes,
		WarmupRequests: p.Workload.WarmupRequests,
		GoodTTFT:       p.Workload.GoodTTFT, GoodTPOT: p.Workload.GoodTPOT,
	}, nil
}

// requests opens the workload: generated, or that of the recorded requests, which are the outcomes too.
func requests(p *spec.Point, seed uint64, c *sim.Config) (err error) {
	if p.Trace == "" {
		c.Workload, err = p.Workload.Source(seed)
		return err
	}
	reader, err := trace.Open(p.Trace)
	if err != nil {
		return err
	}
	played, err := outcome.NewRecorded(reader, p.Play)
	if err != nil {
		return errors.Join(err, reader.Close())
	}
	c.Workload, c.Outcome = played, played
	return nil
}

// recorded gives requests 0, 1, ... the tokens of their paths: the model that makes each.
type recorded [][]int

// Fill implements outcome.Source.
func (r recorded) Fill(model int, rows []core.Row, requests []outcome.Request, results []core.Result) {
	for i := range rows {
		row := &rows[i]
		results[i] = core.Result{}
		if !row.Head {
			continue
		}
		request := &requests[row.Slot]
		path := r[request.ID]
		position := int(row.Start + row.Fresh - request.PromptTokens)
		if position+1 < len(path) {
			results[i].Next = uint8(path[position+1])
			continue
		}
		results[i].Next, results[i].EOS = uint8(model), true
	}
}

// Entry is the model that makes the first token of a request.
func (r recorded) Entry(id uint64) int { return r[id][0] }

// Err is always nil: the spec has checked the paths.
func (recorded) Err() error { return nil }
