package serve

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tokenrouter/core"
)

// metrics are what /metrics shows. Times are those of the loop's turns, in seconds.
type metrics struct {
	registry *prometheus.Registry
	models   []string

	answers  *prometheus.CounterVec // path, code
	ends     *prometheus.CounterVec // outcome, reason
	failures prometheus.Counter
	prompt   prometheus.Counter
	tokens   *prometheus.CounterVec // model
	dropped  prometheus.Counter
	rows     *prometheus.HistogramVec // model
	steps    *prometheus.HistogramVec // model
	pendings *prometheus.CounterVec   // model
	pending  *prometheus.CounterVec   // model, seconds
	ttft     prometheus.Histogram
	gaps     prometheus.Histogram
	times    prometheus.Histogram

	mu       sync.Mutex
	now      snapshot
	launched []core.Time // by model: of the pass in flight
	requests map[uint64]*clock
}

// snapshot is the scheduler after the last turn.
type snapshot struct {
	live, waiting int
	queued, pages []int // by model
	committed     []uint64
	recomputed    uint64
	handoffs      uint64
	preempted     uint64
}

// clock is when a request came and when its last token did.
type clock struct {
	arrived, last core.Time
	begun         bool
}

const namespace = "tokenrouter"

func newMetrics(s *Server) *metrics {
	n := len(s.c.Models)
	m := &metrics{
		registry: prometheus.NewRegistry(), models: s.c.Models, launched: make([]core.Time, n),
		requests: make(map[uint64]*clock),
		now:      snapshot{queued: make([]int, n), pages: make([]int, n), committed: make([]uint64, n)},
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
		m.registry.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help,
			Buckets: buckets}, labels)
		m.registry.MustRegister(h)
		return h
	}
	const steps, least, growth = 20, 1e-4, 2
	seconds := prometheus.ExponentialBuckets(least, growth, steps)
	m.answers = counter("http_requests_total", "HTTP requests by path and status.", "path", "code")
	m.ends = counter("requests_ended_total", "Choices that have left the loop.", "outcome", "reason")
	m.failures = counter("engine_failures_total", "Passes that failed, and rows whose logits were not numbers.").
		WithLabelValues()
	m.prompt = counter("prompt_tokens_total", "Tokens of prompts of admitted choices.").WithLabelValues()
	m.tokens = counter("generation_tokens_total", "Tokens committed, by the model that made them.", "model")
	m.dropped = counter("dropped_drafts_total", "Drafts that the router dropped.").WithLabelValues()
	m.rows = histogram("batch_rows", "Rows of a pass.", prometheus.ExponentialBuckets(1, growth, 11), "model")
	m.steps = histogram("step_seconds", "Time of a pass, as the scheduler sees it.", seconds, "model")
	m.pendings = counter("pendings_total", "Returns of requests to a model.", "model")
	m.pending = counter("pending_seconds_total", "Time that requests were away before they returned.", "model")
	m.ttft = histogram("ttft_seconds", "From a choice's arrival to its first token.", seconds).
		WithLabelValues().(prometheus.Histogram)
	m.gaps = histogram("token_gap_seconds", "Between tokens of a choice.", seconds).
		WithLabelValues().(prometheus.Histogram)
	m.times = histogram("request_seconds", "From a choice's arrival to its end.", seconds).
		WithLabelValues().(prometheus.Histogram)
	m.registry.MustRegister(&gauges{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, model := range m.models {
		m.tokens.WithLabelValues(model)
		m.rows.WithLabelValues(model)
		m.steps.WithLabelValues(model)
	}
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// answered counts an HTTP answer. Paths that are none of the server's count as one.
func (m *metrics) answered(r *http.Request, status int) {
	path := r.URL.Path
	if paths[path] == "" {
		path = "other"
	}
	m.answers.WithLabelValues(path, strconv.Itoa(status)).Inc()
}

// left counts the end of a choice.
func (m *metrics) left(l *core.Leave) {
	m.ends.WithLabelValues(l.Outcome.String(), l.Reason.String()).Inc()
	m.dropped.Add(float64(l.Dropped))
}

func seconds(t core.Time) float64 { return float64(t) / 1e9 }

// turn takes a turn of the loop, and returns the scheduler as it is then: for this goroutine, until the next.
func (m *metrics) turn(now core.Time, in []core.Event, out *core.Actions, s *core.Scheduler) *snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range in {
		switch e := &in[i]; e.Kind {
		case core.BatchDone:
			m.steps.WithLabelValues(m.models[e.Model]).Observe(seconds(now - m.launched[e.Model]))
		case core.Submitted:
			if id := e.Submission.ID; m.requests[id] == nil {
				m.requests[id] = &clock{arrived: e.Submission.Arrival}
				m.prompt.Add(float64(e.Submission.PromptTokens))
			}
		}
	}
	for i := range out.Tokens {
		m.token(now, &out.Tokens[i])
	}
	for i := range out.Leaves {
		if c := m.requests[out.Leaves[i].ID]; c != nil {
			m.times.Observe(seconds(now - c.arrived))
			delete(m.requests, out.Leaves[i].ID)
		}
	}
	for i := range out.Launches {
		l := &out.Launches[i]
		name := m.models[l.Model]
		m.launched[l.Model] = now
		m.rows.WithLabelValues(name).Observe(float64(len(l.Rows)))
		m.pendings.WithLabelValues(name).Add(float64(l.Pendings))
		m.pending.WithLabelValues(name).Add(seconds(l.PendingNs))
	}
	n := &m.now
	n.live, n.waiting = s.Live(), s.Waiting()
	for i := range m.models {
		n.queued[i], n.pages[i] = s.Queued(i), s.PagesHeld(i)
	}
	counts := s.Counters()
	n.recomputed, n.handoffs, n.preempted = counts.Recomputed, counts.Handoffs, counts.Preempted
	return n
}

func (m *metrics) token(now core.Time, t *core.Token) {
	m.tokens.WithLabelValues(m.models[t.Model]).Inc()
	m.now.committed[t.Model]++
	c := m.requests[t.ID]
	switch {
	case c == nil:
		return
	case c.begun:
		m.gaps.Observe(seconds(now - c.last))
	default:
		m.ttft.Observe(seconds(now - c.arrived))
	}
	c.begun, c.last = true, now
}

// share is the part of all tokens that the last model has made; 0 of none.
func (n *snapshot) share() float64 {
	total := uint64(0)
	for _, c := range n.committed {
		total += c
	}
	if total == 0 {
		return 0
	}
	return float64(n.committed[len(n.committed)-1]) / float64(total)
}
