package load

import (
	"context"
	"net/http"
	"sync"
	"time"

	"tokenrouter/core"
	"tokenrouter/sim/workload"
)

// Ended is a request that was sent. Times are from the beginning of the run; -1 means never.
type Ended struct {
	ID      string // of its prompt
	Planned time.Duration
	Sent    time.Duration
	End     time.Duration
	Chunks  []Chunk // with text or tokens
	Err     *Error  // nil: it is finished

	Text         string // the whole answer
	Finish       string // finish_reason
	PromptTokens int
	Tokens       int            // of the answer
	Counted      bool           // the server has counted them
	Origin       []int          // of each token, where the server says
	ByModel      map[string]int // tokens by the model that made them, where the server says
	Dropped      int            // drafts, where the server says

	index int32 // in the order of sending
}

// Chunk is a piece of an answer as it came.
type Chunk struct {
	At   time.Duration
	Said int // tokens that it says it has; 0: it does not say
}

// outcome is how the request ended. A server that has no place refuses; all else is a failure.
func (e *Ended) outcome() core.Outcome {
	switch {
	case e.Err == nil:
		return core.Finished
	case e.Err.Kind == "http_429" || e.Err.Kind == "http_503":
		return core.Rejected
	default:
		return core.Failed
	}
}

// What happens to a request.
type happening uint8

const (
	sent happening = iota + 1
	chunk
	ended
)

// event is one thing that happened.
type event struct {
	what    happening
	request int32
	at      time.Duration
}

// run is a run under way.
type run struct {
	c     Config
	begin time.Time

	mu       sync.Mutex // of what follows
	log      []event    // in the order in which it happened
	requests []*Ended
	done     int

	unsent int // whose planned arrival had come when the run was over
}

// retryWaitMax bounds how long a place of a closed loop stays empty because the server has asked for it.
const retryWaitMax = time.Minute

// Run sends all requests and measures. When ctx ends early, what was measured so far is the result, and says
// that it is cut. Errors of servers are part of the result; Run's own error is one of c or of its Source.
func Run(ctx context.Context, c Config) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, c.InFlight
		transport.DisableCompression = true // a stream that is packed comes late
		defer transport.CloseIdleConnections()
		c.Client = &http.Client{Transport: transport}
	}
	r := &run{c: c, begin: time.Now()}
	going, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.Until > 0 {
		timer := time.AfterFunc(c.Until, func() { stop(errOver) })
		defer timer.Stop()
	}
	places := make(chan workload.Request)
	var workers sync.WaitGroup
	for range c.InFlight {
		workers.Go(func() {
			for request := range places {
				r.serve(going, request)
			}
		})
	}
	r.plan(going, places)
	close(places)
	workers.Wait()
	over := time.Duration(-1)
	if going.Err() != nil {
		over = r.now()
	}
	if err := workload.Err(c.Source); err != nil {
		return nil, err
	}
	result := r.result(over)
	result.Cut = ctx.Err() != nil
	return result, nil
}

func (r *run) now() time.Duration { return time.Since(r.begin) }

// plan hands out requests: in an open loop each at its arrival, or as soon after as there is a place.
func (r *run) plan(ctx context.Context, places chan<- workload.Request) {
	for ctx.Err() == nil {
		request, ok := r.c.Source.Next()
		if !ok {
			return
		}
		if r.c.Open && !rest(ctx, time.Duration(request.ArrivalNs)-r.now()) {
			return
		}
		select {
		case places <- request:
		case <-ctx.Done():
			r.overdue(request)
		}
	}
}

// overdue counts the requests of an open loop, from one on, whose arrival has passed.
func (r *run) overdue(request workload.Request) {
	for ok := r.c.Open; ok && time.Duration(request.ArrivalNs) <= r.now(); request, ok = r.c.Source.Next() {
		r.unsent++
	}
}

// rest waits for d, and says whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serve sends a request and waits for its end.
func (r *run) serve(ctx context.Context, request workload.Request) {
	body, err := r.c.body(request)
	e := &Ended{ID: r.c.prompt(request).ID, Planned: -1, End: -1}
	if r.c.Open {
		e.Planned = time.Duration(request.ArrivalNs)
	}
	r.send(e)
	if err != nil {
		e.Err = &Error{Kind: "connect", Message: err.Error()}
	} else {
		e.Err = r.exchange(ctx, body, e)
	}
	if e.Err != nil && ctx.Err() != nil {
		return // it is open, and no one's failure
	}
	r.end(e)
	r.tell(e)
	if e.Err != nil && e.Err.RetryAfter > 0 && !r.c.Open {
		rest(ctx, min(e.Err.RetryAfter, retryWaitMax))
	}
}

// send notes that a request is sent.
func (r *run) send(e *Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Sent, e.index = r.now(), int32(len(r.requests))
	r.requests = append(r.requests, e)
	r.log = append(r.log, event{sent, e.index, e.Sent})
}

// chunk notes a chunk that says it has so many tokens.
func (r *run) chunk(e *Ended, said int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	e.Chunks = append(e.Chunks, Chunk{now, said})
	r.log = append(r.log, event{chunk, e.index, now})
}

// end notes that the answer is whole, or that no more comes of it; the first call counts.
func (r *run) end(e *Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.End < 0 {
		e.End = r.now()
		r.log = append(r.log, event{ended, e.index, e.End})
	}
}

// tell reports a request, and forgets what only the report needs.
func (r *run) tell(e *Ended) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	if r.c.Progress != nil {
		r.c.Progress(r.done)
	}
	if r.c.Done != nil {
		r.c.Done(e)
	}
	e.Text, e.Origin = "", nil
}
