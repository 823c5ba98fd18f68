package remote

import (
	"fmt"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// Dispatcher is standard serving, to compare with: engines that know nothing of routing, and a client that
// asks one of them for one token a call, each call a new request with all tokens so far, applies the routing
// rule to the answer and goes on. Nothing waits for anybody: the engines batch what comes at the same time.
type Dispatcher struct {
	Devices   []*Device      // by model
	Algorithm core.Algorithm // nil for one model; no core.Receiver
}

// Call is what is told of a call.
type Call struct {
	Model            int
	TookNs, EngineNs int64 // as the dispatcher sees it, and as the engine says (Answer.EngineNs)
}

// Answer makes the tokens of a request, r.TokensMax or fewer if one ends the answer, and hands each to
// r.Sink, which is not told the end. slot is where llama.cpp keeps it: no other request that is live may have
// the same. It may be called from many goroutines. An error ends the request.
func (d *Dispatcher) Answer(r *exec.Request, slot int, called func(Call)) error {
	v := core.Visit{ID: r.ID, Models: 1<<len(d.Devices) - 1, Model: int32(r.Entry)}
	if enters, ok := d.Algorithm.(core.Entry); ok {
		v.Model = int32(enters.Enter(r.Draw, v.Models))
	}
	ids := append([]int32(nil), r.Prompt...)
	p := exec.Pass{
		Launch: core.Launch{Rows: make([]core.Row, 1)}, Results: make([]core.Result, 1),
		Top: make([][]exec.Candidate, 1), Contexts: make([]exec.Context, 1),
	}
	for made := int32(0); made < r.TokensMax; {
		model := int(v.Model)
		v.Position = made
		p.Launch.Model = model
		p.Launch.Rows[0] = core.Row{ID: r.ID, Fresh: int32(len(ids)), Head: true}
		p.Contexts[0] = exec.Context{Sampling: r.Sampling, Prompt: len(r.Prompt), IDs: ids}
		start := time.Now()
		engineNs, err := d.Devices[model].row(&p, 0, slot)
		if err != nil {
			return fmt.Errorf("request %d: %w", r.ID, err)
		}
		called(Call{Model: model, TookNs: int64(time.Since(start)), EngineNs: engineNs})
		result := &p.Results[0]
		next, keep := model, true
		if d.Algorithm != nil {
			if next = d.Algorithm.Route(&v, result); next != model {
				keep = d.Algorithm.Send(&v, result, next)
			}
		}
		v.Model = int32(next)
		if !keep {
			continue
		}
		ids = append(ids, result.Token)
		r.Sink.Token(core.Token{
			ID: r.ID, Slot: -1, Position: made, Token: result.Token, LogProb: result.LogProb, Model: int32(model),
		})
		if made++; result.EOS {
			break
		}
	}
	return nil
}
