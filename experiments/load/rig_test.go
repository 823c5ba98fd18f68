package load

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tokenrouter/exec/serve/servetest"
	"tokenrouter/experiments/result"
	"tokenrouter/sim/workload"
)

// planned is a Source of requests with these arrivals, in ms.
type planned struct {
	arrivals []int64
	next     int
	of       workload.Request // lengths
}

// each is so many requests of a closed loop.
func each(n int) *planned { return &planned{arrivals: make([]int64, n)} }

// Next implements workload.Source.
func (p *planned) Next() (workload.Request, bool) {
	if p.next == len(p.arrivals) {
		return workload.Request{}, false
	}
	request := p.of
	request.ID, request.ArrivalNs = uint64(p.next), p.arrivals[p.next]*1e6
	p.next++
	return request, true
}

// rig is a server on the virtual clock.
type rig struct {
	t     *testing.T
	pipes *servetest.Pipes
	begin time.Time

	mu     sync.Mutex
	asked  int
	bodies []map[string]any
}

// on runs test against a server that answers request i, from 0, with answer.
func on(t *testing.T, answer func(r *rig, i int, w http.ResponseWriter), test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, pipes: servetest.NewPipes(), begin: time.Now()}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			answer(r, r.count(request), w)
		})}
		served := make(chan error, 1)
		go func() { served <- server.Serve(r.pipes) }()
		test(r)
		if err := server.Shutdown(t.Context()); err != nil { // when all handlers have ended
			t.Error(err)
		}
		<-served
	})
}

// count keeps what was asked.
func (r *rig) count(request *http.Request) int {
	text, err := io.ReadAll(request.Body)
	fields := map[string]any{}
	if err != nil || len(text) > 0 && json.Unmarshal(text, &fields) != nil {
		r.t.Errorf("body %q, %v", text, err)
	}
	fields["path"], fields["key"] = request.URL.Path, request.Header.Get("Authorization")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	r.bodies = append(r.bodies, fields)
	return r.asked - 1
}

// load runs c, completed to streamed completions of one prompt one at a time.
func (r *rig) load(c Config) *Result {
	r.t.Helper()
	client := r.pipes.Client()
	defer client.CloseIdleConnections()
	c.Client, c.URL, c.Model = client, "http://server/v1", "m"
	if c.InFlight == 0 {
		c.InFlight = 1
	}
	if c.Timeout == 0 {
		c.Timeout = time.Hour
	}
	if c.Prompts == nil && c.TokenIDs[1] == 0 {
		c.Prompts = []Prompt{{Text: "x"}}
	}
	got, err := Run(r.t.Context(), c)
	if err != nil {
		r.t.Fatal(err)
	}
	names := result.MetricNames(Metrics(got.Models))
	for name := range got.Values {
		if !slices.Contains(names, name) {
			r.t.Errorf("%s is not in the dictionary", name)
		}
	}
	return got
}

// want compares values; NaN: there must be none.
func (r *rig) want(got *Result, want map[string]float64) {
	r.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v, ok := got.Values[name]
		switch w := want[name]; {
		case math.IsNaN(w) && ok:
			r.t.Errorf("%s = %v, want none", name, v)
		case math.IsNaN(w):
		case !ok || math.Abs(v-w) > 1e-9*math.Abs(w):
			r.t.Errorf("%s = %v (%v), want %v", name, v, ok, w)
		}
	}
}

var none = math.NaN()

// ms is when in the run, or how long.
func ms(n float64) time.Duration { return time.Duration(n * 1e6) }

// stream begins a stream.
func stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
}

// frames writes frames and lets them go.
func frames(w http.ResponseWriter, list ...string) {
	for _, f := range list {
		fmt.Fprintf(w, "data: %s\n\n", f)
	}
	_ = http.NewResponseController(w).Flush()
}

// Frames of a completion.
const (
	finish = `{"choices":[{"index":0,"text":"","finish_reason":"length"}]}`
	done   = "[DONE]"
)

func text(s string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"text":%q,"finish_reason":null}]}`, s)
}

func usage(prompt, completion int) string {
	return fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, prompt, completion)
}

// quick answers two tokens, after 10 ms and 5 ms more.
func quick(w http.ResponseWriter) {
	stream(w)
	time.Sleep(ms(10))
	frames(w, text("a"))
	time.Sleep(ms(5))
	frames(w, text("b"), finish, usage(3, 2), done)
}
