package run

import (
	"context"
	"fmt"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/exec"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/experiments/twin"
)

// observer sees every turn, as exec.Config.Observe does.
type observer func(node int, now core.Time, in []core.Event, out *core.Actions)

// traffic is what a run over problems has shown of its routing.
type traffic struct {
	committed [core.ModelsMax]int64 // tokens by model, end tokens included
	dropped   int64
	handoffs  int64
	// moves[i][j] counts pairs of tokens of an answer, one after the other, of models i and j.
	moves   [core.ModelsMax][core.ModelsMax]int64
	tokens  int64   // of answers
	context float64 // sum over these of what was in KV
}

// asking is one run over questions: a closed loop of the point's concurrency.
type asking struct {
	traffic
	answers []system.Answered
	timings []exec.Timing
	counts  core.Counters
	end     core.Time
	twins   *twin.Speeds // in the simulator; nil without step times
}

// looking is what looks on while questions are answered; nothing by itself.
type looking struct {
	meter  *meter.Meter // its window closes when the last request is admitted, if steady
	steady bool
	see    []observer                  // are shown each turn, before the meter
	judged func(id uint64, right bool) // is told of each answer
}

// ask answers questions with the scheduler's configuration c.
func (a *answering) ask(ctx context.Context, p *spec.Point, c core.Config, questions []question, seed uint64,
	look looking) (*asking, error) {
	prompts, err := a.prompts(p, questions)
	if err != nil {
		return nil, err
	}
	if look.judged != nil {
		for i := range prompts {
			prompts[i].Ended = func(of system.Answered) {
				look.judged(uint64(i), questions[i].problem.Right(of.Text()))
			}
		}
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	out := &asking{}
	var loop *exec.Loop
	var failure error
	waiting := len(prompts) // not admitted
	observe := func(node int, now core.Time, in []core.Event, actions *core.Actions) {
		for _, o := range look.see {
			o(node, now, in, actions)
		}
		for i := range actions.Tokens {
			out.committed[actions.Tokens[i].Model]++
		}
		m := look.meter
		if m == nil {
			return
		}
		m.Turn(node, now, in, actions)
		for i := range actions.Launches {
			model := actions.Launches[i].Model
			m.Pages(model, loop.Scheduler().PagesHeld(model))
		}
		if waiting -= len(actions.Admits); waiting == 0 && len(actions.Admits) > 0 && look.steady {
			m.Close(now)
		}
	}
	again, err := a.system.Again(c, system.Run{Seed: seed, Observe: observe, Device: a.device,
		Failed: func(err error) {
			if failure == nil {
				failure = fmt.Errorf("on the device: %w", err)
				stop()
			}
		}})
	if err != nil {
		return nil, err
	}
	loop = again.Loop
	out.answers, err = again.Answers(running, prompts, backlog(p.Concurrency), nil)
	switch {
	case failure != nil:
		return nil, failure
	case err != nil:
		return nil, err
	}
	out.timings, out.counts, out.end = loop.Timings(), loop.Scheduler().Counters(), loop.Scheduler().Now()
	out.note(questions)
	return out, nil
}

// note adds up the answers.
func (k *asking) note(questions []question) {
	k.dropped, k.handoffs = int64(k.counts.Dropped), int64(k.counts.Handoffs)
	for i := range k.answers {
		tokens := k.answers[i].Tokens
		for j := range tokens {
			if j > 0 {
				k.moves[tokens[j-1].Model][tokens[j].Model]++
			}
			k.context += float64(len(questions[i].ids) + j)
		}
		k.tokens += int64(len(tokens))
	}
}

// ratio is a/b, 0 for nothing of nothing.
func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// leaves is p: the share of what the first model samples after which another model goes on.
func (t *traffic) leaves(algorithm string) float64 {
	if algorithm != "me" {
		return ratio(t.dropped, t.committed[0]+t.dropped)
	}
	all := int64(0)
	for _, n := range t.moves[0] {
		all += n
	}
	return ratio(all-t.moves[0][0], all)
}

// returns is the share of the large model's tokens, of two models, after which the small one goes on.
func (t *traffic) returns(algorithm string) float64 {
	if algorithm != "me" {
		return ratio(t.handoffs-t.dropped, t.committed[1])
	}
	return ratio(t.moves[1][0], t.moves[1][0]+t.moves[1][1])
}

// contextMean is the mean number of tokens in KV before a token of an answer.
func (t *traffic) contextMean() float64 { return t.context / float64(max(t.tokens, 1)) }

// measured is the point with the routing that the validation problems have shown, for prediction and planned
// thresholds; p is nil where step times are not known. The answers are those of the eager policy, which are
// those of any.
func (a *answering) measured(ctx context.Context, point *spec.Point) (*spec.Point, *traffic, error) {
	if point.Models[0].Latency == nil {
		return point, nil, nil
	}
	r := &point.System.Router
	key := fmt.Sprint(r.Threshold, r.Share, r.Weights)
	t := a.traffic[key]
	if t == nil {
		eager := *point
		eager.Policy = spec.Policy{Kind: "eager"}
		c, err := a.configuration(&eager, core.Eager{})
		if err != nil {
			return nil, nil, err
		}
		k, err := a.ask(ctx, &eager, c, a.practice, 0, looking{})
		if err != nil {
			return nil, nil, fmt.Errorf("validation problems: %w", err)
		}
		t = &k.traffic
		a.traffic[key] = t
	}
	routing, commit := t.matrices(point)
	if routing == nil {
		return point, t, nil
	}
	shown := point.Measured(routing, commit, t.contextMean())
	return &shown, t, nil
}

// matrices are P and C of a point: those of its weights, or as the traffic was; nil where requests are routed
// as a whole.
func (t *traffic) matrices(p *spec.Point) (routing, commit [][]float64) {
	algorithm := p.System.Router.Algorithm
	leave := t.leaves(algorithm)
	switch algorithm {
	case "r2r", "citer", "collm":
		return [][]float64{{1 - leave, leave}, {1, 0}}, [][]float64{{1, 0}, {1, 0}}
	case "rstitch":
		back := t.returns(algorithm)
		return [][]float64{{1 - leave, leave}, {back, 1 - back}}, [][]float64{{1, 0}, {1, 1}}
	default:
		return p.Routing, p.Commit
	}
}
