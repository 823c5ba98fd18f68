package run

import (
	"context"
	"fmt"
	"math"

	"tokenrouter/core"
	"tokenrouter/core/keyed"
	"tokenrouter/core/meter"
	"tokenrouter/exec"
	"tokenrouter/exec/native"
	"tokenrouter/experiments/spec"
	"tokenrouter/sim"
	"tokenrouter/sim/latency"
	"tokenrouter/sim/workload"
)

// workers is a closed loop of requests on real devices, as sim.Config.Closed is one in the simulator. All but
// run happens in the goroutine of its loop while that runs.
type workers struct {
	loop   *exec.Loop
	source workload.Source
	seed   uint64
	vocab  int
	limit  int32 // most tokens of an answer

	meter   *meter.Meter
	observe func(node int, now core.Time, in []core.Event, out *core.Actions)
	steady  bool
	latency []latency.Model
	running []pass   // by model
	steps   []spread // by model

	more    bool // requests may follow
	waiting int  // submitted and not yet admitted
	live    int  // submitted and not yet gone
	backlog int
	closed  bool
	failure error
	end     context.CancelFunc
}

// newLoop puts a loop around the devices for one job. What a device keeps of an earlier loop does not matter:
// every page is granted anew before it is read.
func (h *hardware) newLoop(p *spec.Point, c *sim.Config) (*workers, error) {
	w := &workers{
		source: c.Workload, seed: c.Seed, vocab: h.system.Samplable(), meter: c.Meter, observe: c.Observe,
		steady: c.Steady, more: true, backlog: backlog(p.Concurrency), limit: p.Workload.Lengths.MaxTokens,
	}
	if w.limit == 0 {
		w.limit = math.MaxInt32
	}
	w.latency, w.running = c.Latency, make([]pass, len(c.Latency))
	w.steps = make([]spread, len(c.Latency))
	var devices []exec.Device
	for _, m := range h.system.Models {
		devices = append(devices, native.NewExecutor(m, native.Execution{Seed: c.Seed, Keyed: true}))
	}
	var err error
	w.loop, err = exec.New(exec.Config{
		Core: c.Core, Devices: devices, Observe: w.turn, Failed: w.failed, Vocab: w.vocab,
	})
	return w, err
}

// run runs the loop until all requests have left.
func (w *workers) run(ctx context.Context) error {
	running, end := context.WithCancel(ctx)
	defer end()
	w.end = end
	w.submit()
	if w.live > 0 {
		_ = w.loop.Run(running) // its error is that running has ended, as it must
	}
	if w.failure != nil {
		return w.failure
	}
	return ctx.Err()
}

// submit hands in requests up to the backlog.
func (w *workers) submit() {
	for w.more && w.live < w.backlog {
		r, ok := w.source.Next()
		if w.more = ok; !ok {
			break
		}
		request := &exec.Request{
			ID: r.ID, Prompt: w.prompt(&r), TokensMax: min(r.OutputTokens, w.limit), Arrival: -1, Sink: w,
			Draw:     keyed.Float(keyed.Hash(w.seed, r.ID, 0, 0, keyed.Entry)),
			Sampling: &exec.Sampling{IgnoreEOS: true},
		}
		if r.OutputTokens == 0 {
			request.TokensMax = w.limit
		}
		if err := w.loop.Submit(request); err != nil { // the loop is ending
			return
		}
		w.waiting++
		w.live++
	}
}

// prompt is any text of the request's length, from the second half of the vocabulary: control words come
// first.
func (w *workers) prompt(r *workload.Request) []int32 {
	ids := make([]int32, r.PromptTokens)
	half := uint64(w.vocab / 2)
	for i := range ids {
		ids[i] = int32(half + keyed.Below(keyed.Hash(w.seed, r.ID, uint32(i), 0, keyed.Prompt), half))
	}
	return ids
}

// turn measures a turn; the window closes when the last request is admitted.
func (w *workers) turn(node int, now core.Time, in []core.Event, out *core.Actions) {
	if w.observe != nil {
		w.observe(node, now, in, out)
	}
	w.meter.Turn(node, now, in, out)
	s := w.loop.Scheduler()
	for i := range in {
		if e := &in[i]; e.Kind == core.BatchDone && w.running[e.Model].expectedNs > 0 {
			w.steps[e.Model].add(float64(now-w.running[e.Model].since) / float64(w.running[e.Model].expectedNs))
		}
	}
	for i := range out.Launches {
		l := &out.Launches[i]
		w.meter.Pages(l.Model, s.PagesHeld(l.Model))
		expected, _ := w.latency[l.Model].StepNs(latency.Shape{
			Rows: len(l.Rows), FreshTokens: int(l.Fresh), ContextTokens: int(l.Context), Returns: l.Returned,
		})
		w.running[l.Model] = pass{now, expected}
	}
	w.waiting -= len(out.Admits)
	if w.steady && !w.closed && !w.more && w.waiting == 0 {
		w.closed = true
		w.meter.Close(now)
	}
}

// failed ends the job: what a device did not do can not be measured.
func (w *workers) failed(err error) {
	if w.failure == nil {
		w.failure = fmt.Errorf("on the device: %w", err)
		w.end()
	}
}

// Token implements exec.Sink.
func (w *workers) Token(core.Token) {}

// Left goes on with the next request, or ends the loop after the last.
func (w *workers) Left(e core.Leave) {
	w.live--
	if e.Outcome == core.Rejected {
		w.waiting--
	}
	w.submit()
	if w.live == 0 {
		w.end()
	}
}

// pass is one that runs: since when, and how long it takes by the law, alone; 0 or less if that is not known.
type pass struct {
	since      core.Time
	expectedNs int64
}

// spread adds up how much numbers vary (B. P. Welford, Technometrics 4, 1962).
type spread struct {
	n, mean, squares float64
}

func (s *spread) add(x float64) {
	s.n++
	before := x - s.mean
	s.mean += before / s.n
	s.squares += before * (x - s.mean)
}

// deviation is the standard deviation over the mean; 0 of nothing.
func (s *spread) deviation() float64 {
	if s.n == 0 {
		return 0
	}
	return math.Sqrt(s.squares/s.n) / s.mean
}
