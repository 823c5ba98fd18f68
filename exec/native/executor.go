package native

import (
	"errors"
	"fmt"
	"math"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/exec"
)

// Executor makes an exec.Device of a model: it hands each pass to the model in one call, and what comes back
// to the scheduler. It allocates nothing after NewExecutor.
type Executor struct {
	model *Model
	c     Execution
	eos   []bool // by token
	batch Batch
	// Biases of a request are gathered by token: 1 + the entry of each token, and how often the answer has
	// that of each entry. Both are zero in between.
	entries []int32
	counts  []int32
	top     []exec.Candidate // [request][Limits.TopMax]
}

// Execution is what results depend on besides the model.
type Execution struct {
	Seed uint64 // of the run, for all draws of requests whose Sampling has no seed of its own
	EOS  []int  // tokens that end an answer, of the model's vocabulary
	// Keyed puts the draw in the place of a router's score, as sim/outcome.Uniform does: route.R2R with a
	// threshold of 1 - p routes with probability p, at the same places as in the simulator.
	Keyed bool
}

// NewExecutor makes an exec.Device of a model, one a model. The model's limits must be at least LimitsOf what
// the scheduler has.
func NewExecutor(m *Model, c Execution) *Executor {
	l, vocab := &m.limits, m.config.Model.Vocab
	e := &Executor{
		model: m, c: c, eos: make([]bool, vocab),
		entries: make([]int32, vocab), counts: make([]int32, l.BiasesMax),
		top: make([]exec.Candidate, l.RequestsMax*l.TopMax),
		batch: Batch{
			Tokens: make([]int32, 0, l.RowsMax), Requests: make([]Request, 0, l.RequestsMax),
			Biases: make([]Bias, 0, l.BiasesMax), Grants: make([]Grant, 0, l.Pages),
			Results: make([]Result, l.RequestsMax), Top: make([]Candidate, l.RequestsMax*l.TopMax),
		},
	}
	for _, id := range c.EOS {
		e.eos[id] = true
	}
	return e
}

// LimitsOf is what a scheduler may ask of its model m.
func LimitsOf(c core.Config, m int) Limits {
	requests := c.Requests
	for _, bound := range []int{c.LiveMax, c.Models[m].RowsMax} {
		if bound > 0 {
			requests = min(requests, bound)
		}
	}
	rows := requests * c.ContextMax
	if c.TokenBudget > 0 {
		rows = min(rows, c.TokenBudget)
	}
	return Limits{
		Slots: c.Requests, Pages: c.Models[m].Pages, PageTokens: c.PageTokens, ContextMax: c.ContextMax,
		RowsMax: rows, RequestsMax: requests, TopMax: exec.SamplingTopMax,
		BiasesMax: requests * (exec.SamplingBiasesMax + c.ContextMax),
	}
}

// Step implements exec.Device.
func (e *Executor) Step(p *exec.Pass) error {
	if l := &e.model.limits; len(p.Launch.Rows) > l.RequestsMax || p.Launch.Fresh > int64(l.RowsMax) {
		panic(fmt.Sprintf("native: model %q: a pass of %d requests and %d tokens, want at most %d and %d",
			e.model.name, len(p.Launch.Rows), p.Launch.Fresh, l.RequestsMax, l.RowsMax))
	}
	e.fill(p)
	if err := e.model.Forward(&e.batch); err != nil {
		return err
	}
	p.DeviceNs = e.batch.Info.EndNs - e.batch.Info.StartNs
	for i := range p.Launch.Rows {
		if p.Launch.Rows[i].Head {
			p.Results[i] = e.result(p, i)
		}
	}
	return nil
}

// fill makes the batch of a pass.
func (e *Executor) fill(p *exec.Pass) {
	b, rows := &e.batch, p.Launch.Rows
	b.Tokens, b.Requests, b.Biases, b.Grants = b.Tokens[:0], b.Requests[:0], b.Biases[:0], b.Grants[:0]
	b.Freed = p.Freed
	for _, g := range p.Grants {
		b.Grants = append(b.Grants, Grant{Slot: g.Slot, Index: g.Index, Page: g.Page})
	}
	for i := range rows {
		row := &rows[i]
		b.Tokens = append(b.Tokens, p.Tokens[i]...)
		r := Request{Slot: row.Slot, Start: row.Start, Rows: row.Fresh, TopP: 1}
		if row.Head {
			r.Head = 1
			e.sample(&r, row, p.Launch.Model, &p.Contexts[i])
		}
		b.Requests = append(b.Requests, r)
	}
	b.Results, b.Top = b.Results[:len(rows)], b.Top[:len(rows)*e.model.limits.TopMax]
}

// sample says how the token of a row is drawn.
func (e *Executor) sample(r *Request, row *core.Row, model int, c *exec.Context) {
	s := c.Sampling
	if s == nil {
		return
	}
	r.Temperature, r.TopK, r.MinP = float32(s.Temperature), int32(s.TopK), float32(s.MinP)
	if s.TopP > 0 {
		r.TopP = max(float32(s.TopP), math.SmallestNonzeroFloat32)
	}
	r.Top = int32(min(s.Top, e.model.limits.TopMax))
	r.Random = c.Bits(e.c.Seed, row, model, keyed.Token)
	r.Biases = e.bias(c)
}

// bias appends a request's biases to the batch, one a token, and returns how many those are.
func (e *Executor) bias(c *exec.Context) int32 {
	s, first := c.Sampling, len(e.batch.Biases)
	for _, b := range s.Bias {
		if i := e.entry(b.Token, first); i >= 0 {
			e.batch.Biases[first+i].Bias += float32(b.Bias)
		}
	}
	if s.PresencePenalty != 0 || s.FrequencyPenalty != 0 {
		for _, id := range c.IDs[c.Prompt:] {
			if i := e.entry(id, first); i >= 0 {
				e.counts[i]++
			}
		}
	}
	list := e.batch.Biases[first:]
	for i := range list {
		if n := e.counts[i]; n > 0 {
			list[i].Bias -= float32(s.PresencePenalty + s.FrequencyPenalty*float64(n))
		}
		e.counts[i], e.entries[list[i].Token] = 0, 0
	}
	return int32(len(list))
}

// entry is a token's place among the biases from first on, -1 for a token that the model lacks.
func (e *Executor) entry(token int32, first int) int {
	if int(token) >= len(e.entries) {
		return -1
	}
	if e.entries[token] == 0 {
		e.batch.Biases = append(e.batch.Biases, Bias{Token: token})
		e.entries[token] = int32(len(e.batch.Biases) - first)
	}
	return int(e.entries[token]) - 1
}

// errScore is why a row fails whose router has computed what is no number: it can not be routed, and 0 in its
// place would be a verdict.
var errScore = errors.New("the router's score is not a number")

// result is what the scheduler is told of a row with a head. It sets the row's top list.
func (e *Executor) result(p *exec.Pass, i int) core.Result {
	r, row, c := &e.batch.Results[i], &p.Launch.Rows[i], &p.Contexts[i]
	scored := e.model.config.Router.Algorithm != 0 && !e.c.Keyed
	if r.Finite == 0 {
		return core.Result{Failed: true}
	}
	if scored && math.IsNaN(r.Score) {
		p.Errors[i] = errScore
		return core.Result{Failed: true}
	}
	if r.Top > 0 {
		first := i * e.model.limits.TopMax
		top := e.top[first : first+int(r.Top)]
		for k := range top {
			from := e.batch.Top[first+k]
			top[k] = exec.Candidate{Token: from.Token, LogProb: from.LogProbability}
		}
		p.Top[i] = top
	}
	result := core.Result{
		Token: r.Token, LogProb: r.LogProbability, TopProb: r.TopProbability, Entropy: float64(r.Entropy),
		EOS:  e.eos[r.Token] && !(c.Sampling != nil && c.Sampling.IgnoreEOS),
		Draw: keyed.Float(c.Bits(e.c.Seed, row, p.Launch.Model, keyed.Route)),
	}
	switch {
	case e.c.Keyed:
		result.Score = result.Draw
	case scored:
		result.Score = r.Score
	}
	return result
}
