package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
)

// Server is a front of one loop. New makes it, then the loop is made with its Observe and Failed, and Serve
// runs both.
type Server struct {
	c           Config
	loop        *exec.Loop
	ids         atomic.Uint64 // of choices in the loop
	places      places
	metrics     *metrics
	live        live
	fingerprint string
	started     time.Time
}

// New checks c.
func New(c Config) (*Server, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	live := c.Core.LiveMax
	if live == 0 {
		live = c.Core.Requests
	}
	s := &Server{
		c: c, places: places{room: c.Slots, served: live, empty: make(chan struct{})}, started: time.Now(),
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{c.Name}, c.Models...), "\x00")))
	const shortBytes = 5
	s.fingerprint = "fp_" + hex.EncodeToString(sum[:shortBytes])
	s.metrics = newMetrics(s)
	s.live.running = make([]passDocument, len(c.Models))
	return s, nil
}

// names are those under which models can be asked for.
func (s *Server) names() []string {
	if slices.Contains(s.c.Models, s.c.Name) {
		return s.c.Models
	}
	return append([]string{s.c.Name}, s.c.Models...)
}

// Observe hears of the loop's turns (exec.Config.Observe).
func (s *Server) Observe(_ int, now core.Time, in []core.Event, out *core.Actions) {
	scheduler := s.loop.Scheduler()
	if s.c.Planner != nil {
		s.c.Planner.Observe(now, in, out, scheduler.Live())
	}
	n := s.metrics.turn(now, in, out, scheduler)
	s.live.turn(now, in, out, n, s.plan(n.live).Thresholds)
}

// Failed hears of errors of devices (exec.Config.Failed). One that is fatal ends admission for good.
func (s *Server) Failed(err error) {
	s.c.Log.Error("a pass failed", "error", err)
	s.metrics.failures.Inc()
	if s.c.Fatal != nil && s.c.Fatal(err) {
		s.places.close(unavailable(retryMax, "engine_failed", "a model can not go on: %v", err))
	}
}

// left takes the end of a choice.
func (s *Server) left(c *choice, arrived time.Time) {
	l := &c.answer.Leave
	s.metrics.left(l)
	if l.Outcome == core.Failed || l.Outcome == core.Rejected {
		s.c.Log.Warn("a request failed", "outcome", l.Outcome.String(), "reason", l.Reason.String(),
			"model", l.Model, "tokens", l.Tokens)
	}
	s.places.left(time.Since(arrived))
}

// Handler is the HTTP front of the loop. Serve uses it; another server may, while the loop runs.
func (s *Server) Handler(loop *exec.Loop) http.Handler {
	s.loop = loop
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", s.guarded(s.chat))
	mux.Handle("POST /v1/completions", s.guarded(s.completion))
	mux.Handle("POST /tokenize", s.guarded(s.tokenize))
	mux.Handle("GET /v1/models", s.guarded(s.models))
	mux.Handle("GET /v1/models/{model...}", s.guarded(s.model))
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /openapi.json", s.openAPI)
	mux.Handle("GET /live", s.guarded(s.liveNews))
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /page/", s.page)
	mux.HandleFunc("/", s.nowhere)
	return s.around(mux)
}

// paths are those of the server, with the method of each.
var paths = map[string]string{
	"/v1/chat/completions": "POST", "/v1/completions": "POST", "/tokenize": "POST", "/v1/models": "GET",
	"/health": "GET", "/metrics": "GET", "/openapi.json": "GET", "/live": "GET", "/": "GET",
}

// nowhere answers what no other handler does.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	if method := paths[r.URL.Path]; method != "" {
		w.Header().Set("Allow", method)
		fail(http.StatusMethodNotAllowed, "invalid_request_error", "method_not_allowed", "%s %s: want %s", r.Method,
			r.URL.Path, method).write(w)
		return
	}
	fail(http.StatusNotFound, "invalid_request_error", "unknown_url", "there is no %s %s: /openapi.json lists"+
		" what there is", r.Method, r.URL.Path).write(w)
}

// Limits of connections.
const (
	headerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute
	headerBytesMax = 64 << 10
	closeTime      = 5 * time.Second // for answers that are errors of the end itself
)

// Serve runs loop and answers on listener until ctx ends. Then it takes no more requests, lets those that are
// there end for DrainTime, cancels the others, and ends. It returns nil after that, or why it could not
// serve.
func (s *Server) Serve(ctx context.Context, listener net.Listener, loop *exec.Loop) error {
	server := &http.Server{
		Handler: s.Handler(loop), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		MaxHeaderBytes: headerBytesMax,
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	looped := make(chan struct{})
	go func() {
		defer close(looped)
		_ = loop.Run(running) // its error is that running has ended, as it must
	}()
	if s.c.Planner != nil {
		go s.c.Planner.Run(running)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		stop()
		<-looped
		return err
	case <-ctx.Done():
	}
	s.Drain()
	s.c.Log.Info("no more requests are taken", "drain", s.c.DrainTime)
	select {
	case <-s.places.empty:
	case <-time.After(s.c.DrainTime):
	}
	stop() // every request leaves, and its handler is told
	<-looped
	limited, end := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer end()
	if err := server.Shutdown(limited); err != nil {
		return fmt.Errorf("connections were cut off: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// Drain lets no more requests in: they are refused with 503, as /health is.
func (s *Server) Drain() {
	s.places.close(unavailable(s.c.DrainTime, "draining", "the server ends"))
}
