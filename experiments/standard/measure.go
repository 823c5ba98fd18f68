package main

import (
	"context"
	"sync"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/exec/remote"
)

// point is what is asked: so many requests at the same time, each for as many tokens, under a rule.
type point struct {
	Requests int          `json:"requests"`
	Tokens   int          `json:"tokens"`
	Rule     string       `json:"rule"` // empty: the large model only
	routing  *routingKeys // of Rule
}

// measurement is what a system gave at a point.
type measurement struct {
	point
	System        string    `json:"system"`
	ThroughputTok float64   `json:"throughput_tok_s"` // all tokens until the last request has ended
	RoundsTok     []float64 `json:"rounds_tok_s"`     // that of all rounds, ascending
	TTFTMs        float64   `json:"ttft_ms"`          // mean over requests
	LatencyMs     float64   `json:"latency_ms"`       // mean over requests
	LargeShare    float64   `json:"large_share"`      // of the tokens
	// ModelShare is the part of a small model's step, from when its request is ready to when the result is
	// there, that the model's own computing takes: as the device or the engine says. 0: it does not say.
	ModelShare  float64 `json:"model_share"`
	SmallStepMs float64 `json:"small_step_ms"` // mean length of such a step
	// Equal are tokens that are the same as ours at their place before the first that is not, over all.
	Equal     float64   `json:"equal_share"`
	Different int       `json:"different_answers"` // answers with a token that is not ours
	answers   [][]int32 // by request
}

// recorder is the clock of a point's requests.
type recorder struct {
	start   time.Time
	mutex   sync.Mutex
	first   []time.Time
	last    []time.Time
	answers [][]int32
	large   int
	steps   int           // of the small model
	stepNs  time.Duration // of them
	modelNs time.Duration // of that, the model
}

func newRecorder(requests int) *recorder {
	return &recorder{
		start: time.Now(), first: make([]time.Time, requests), last: make([]time.Time, requests),
		answers: make([][]int32, requests),
	}
}

// sink is one request's exec.Sink.
type sink struct {
	of      *recorder
	request int
	large   int32
	left    func()
}

// Token implements exec.Sink.
func (s sink) Token(t core.Token) {
	s.of.mutex.Lock()
	defer s.of.mutex.Unlock()
	s.of.came(s.request, []int32{t.Token})
	if t.Model == s.large {
		s.of.large++
	}
}

// Left implements exec.Sink.
func (s sink) Left(core.Leave) { s.left() }

// came notes tokens of a request. The caller has the mutex.
func (r *recorder) came(request int, ids []int32) {
	now := time.Now()
	if r.answers[request] == nil {
		r.first[request] = now
	}
	r.last[request] = now
	r.answers[request] = append(r.answers[request], ids...)
}

// measurement sums up.
func (r *recorder) measurement(system string, p point) *measurement {
	m := &measurement{point: p, System: system, answers: r.answers}
	end, tokens := r.start, 0
	for i := range r.first {
		tokens += len(r.answers[i])
		m.TTFTMs += ms(r.first[i].Sub(r.start)) / float64(p.Requests)
		m.LatencyMs += ms(r.last[i].Sub(r.start)) / float64(p.Requests)
		if r.last[i].After(end) {
			end = r.last[i]
		}
	}
	m.ThroughputTok = float64(tokens) / end.Sub(r.start).Seconds()
	m.LargeShare = float64(r.large) / float64(tokens)
	if r.steps > 0 {
		m.SmallStepMs = ms(r.stepNs) / float64(r.steps)
		m.ModelShare = float64(r.modelNs) / float64(r.stepNs)
	}
	return m
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// compare counts how far answers are those of ours.
func (m *measurement) compare(ours [][]int32) {
	equal, total := 0, 0
	for i, answer := range m.answers {
		at := 0
		for at < min(len(answer), len(ours[i])) && answer[at] == ours[i][at] {
			at++
		}
		equal, total = equal+at, total+len(ours[i])
		if at < max(len(answer), len(ours[i])) {
			m.Different++
		}
	}
	m.Equal = float64(equal) / float64(total)
}

// measure measures an engine at a point.
func (g *engine) measure(ctx context.Context, e *experiment, p point, prompts [][]int32,
) (*measurement, error) {
	if p.routing == nil {
		return g.alone(ctx, p, prompts)
	}
	return g.standard(e, p, prompts)
}

// standard measures an engine behind the plain dispatcher.
func (g *engine) standard(e *experiment, p point, prompts [][]int32) (*measurement, error) {
	d := remote.Dispatcher{Algorithm: p.routing.rule()}
	for _, c := range g.clients {
		d.Devices = append(d.Devices, remote.NewDevice(c, remote.Execution{
			Seed: e.Seed, Keyed: p.routing.keyed(), Bare: p.routing.keyed(), Entropy: !p.routing.keyed(),
			Threshold: p.routing.Threshold,
		}))
	}
	r := newRecorder(p.Requests)
	err := together(p.Requests, func(i int) error {
		request := &exec.Request{
			ID: uint64(i), Prompt: prompts[i], TokensMax: int32(p.Tokens), Sink: sink{of: r, request: i, large: 1},
		}
		return d.Answer(request, i, func(c remote.Call) {
			if c.Model != 0 {
				return
			}
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.steps++
			r.stepNs += time.Duration(c.TookNs)
			r.modelNs += time.Duration(c.EngineNs)
		})
	})
	return r.measurement("standard serving, "+g.kind.String(), p), err
}

// alone measures an engine that makes whole answers of the large model, as it is meant to.
func (g *engine) alone(ctx context.Context, p point, prompts [][]int32) (*measurement, error) {
	r := newRecorder(p.Requests)
	err := together(p.Requests, func(i int) error {
		return g.clients[1].Stream(ctx, prompts[i], p.Tokens, func(ids []int32) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.came(i, ids)
			r.large += len(ids)
		})
	})
	return r.measurement("large only, "+g.kind.String(), p), err
}

// together calls each for all requests at the same time; its error is that of one of them.
func together(requests int, each func(i int) error) error {
	errs := make(chan error, requests)
	for i := range requests {
		go func() { errs <- each(i) }()
	}
	var first error
	for range requests {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}
