package serve

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"tokenrouter/exec/replan"
)

// gauges are values that are looked up when /metrics is asked for.
type gauges struct{ s *Server }

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	descLive      = described("live_requests", "N: choices that are live.")
	descWaiting   = described("waiting_requests", "Choices that wait for admission.")
	descPlaces    = described("places", "Choices that may be in the loop at a time.")
	descTaken     = described("places_taken", "Choices in the loop.")
	descQueue     = described("queue_length", "Requests that wait for a model.", "model")
	descPages     = described("kv_pages", "KV pages of a model.", "model")
	descHeld      = described("kv_pages_held", "KV pages in use.", "model")
	descThreshold = described("threshold", "Requests that must wait before a model starts, in force at N.",
		"model")
	descRouting = described("routing_share",
		"Share of a model's passes after which a request goes on at another, as measured for planning.",
		"from", "to")
	descStep = described("planned_step_seconds",
		"Time of a pass of one row, as measured for planning.", "model")
	descRate       = described("planned_tokens_per_second", "Throughput that the plan promises at N.")
	descShare      = described("large_model_share", "Share of all tokens that the last model has made.")
	descHandoffs   = described("handoffs_total", "Moves of requests between models.")
	descRecomputed = described("recomputed_tokens_total", "Tokens fed again because their KV was lost.")
	descPreempted  = described("preemptions_total", "Seats that have lost their KV to older requests.")
	descUp         = described("up", "1: requests are taken; 0: the server drains or can not go on.")
)

// Describe implements prometheus.Collector: all that Collect may give.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descLive, descWaiting, descPlaces, descTaken, descQueue, descPages,
		descHeld, descThreshold, descRouting, descStep, descRate, descShare, descHandoffs, descRecomputed,
		descPreempted, descUp} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
	n := g.s.metrics.copy()
	taken, closed := g.s.places.now()
	gauge(descLive, float64(n.live))
	gauge(descWaiting, float64(n.waiting))
	gauge(descPlaces, float64(g.s.c.Slots))
	gauge(descTaken, float64(taken))
	gauge(descShare, n.share())
	up := 1.0
	if closed != nil {
		up = 0
	}
	gauge(descUp, up)
	counter(descHandoffs, n.handoffs)
	counter(descRecomputed, n.recomputed)
	counter(descPreempted, n.preempted)
	plan := g.s.plan(n.live)
	for i, model := range g.s.c.Models {
		gauge(descQueue, float64(n.queued[i]), model)
		gauge(descPages, float64(g.s.c.Core.Models[i].Pages), model)
		gauge(descHeld, float64(n.pages[i]), model)
		gauge(descThreshold, float64(plan.Thresholds[i]), model)
	}
	f := plan.Figures
	if f == nil {
		return
	}
	gauge(descRate, plan.RateTokS)
	for i, from := range g.s.c.Models {
		if ns, err := f.Step[i].At(1); err == nil {
			gauge(descStep, seconds(ns), from)
		}
		for j, to := range g.s.c.Models {
			gauge(descRouting, f.Routing[i][j], from, to)
		}
	}
}

// copy is the scheduler after the last turn.
func (m *metrics) copy() snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.now
	n.queued, n.pages, n.committed = slices.Clone(n.queued), slices.Clone(n.pages), slices.Clone(n.committed)
	return n
}

// plan is what thresholds are in force, and what they were planned with, if they were.
func (s *Server) plan(live int) replan.State {
	if s.c.Planner != nil {
		return s.c.Planner.State()
	}
	row := slices.Repeat([]int{1}, len(s.c.Models))
	if s.c.Thresholds != nil {
		row = s.c.Thresholds.Row(max(live, 1))
	}
	return replan.State{Live: live, Thresholds: row}
}
