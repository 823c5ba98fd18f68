package serve

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"tokenrouter/core"
)

// liveKept is how many passes, and how many states, /live keeps: a few hundred KiB in all.
const liveKept = 1024

// live keeps the last passes of all models and the last states of the scheduler, for pictures.
type live struct {
	mu      sync.Mutex
	passes  ring[passDocument]
	states  ring[stateDocument]
	running []passDocument // by model; rows 0: idle
	now     core.Time      // of the last turn
	seen    time.Time      // when that was
}

// ring keeps the last elements that were put.
type ring[T any] struct {
	kept []T
	next int // where the oldest is, once it is full
}

func (r *ring[T]) put(x T) {
	if len(r.kept) < liveKept {
		r.kept = append(r.kept, x)
		return
	}
	r.kept[r.next] = x
	r.next = (r.next + 1) % liveKept
}

// after are those for which newer holds, the oldest first.
func (r *ring[T]) after(newer func(*T) bool) []T {
	list := []T{}
	for i := range r.kept {
		if x := &r.kept[(r.next+i)%len(r.kept)]; newer(x) {
			list = append(list, *x)
		}
	}
	return list
}

func (r *ring[T]) last() *T {
	if len(r.kept) == 0 {
		return nil
	}
	return &r.kept[(r.next+len(r.kept)-1)%len(r.kept)]
}

// passDocument is a forward pass. Times are ms of the loop's clock.
type passDocument struct {
	Model   int     `json:"model"`
	Rows    int     `json:"rows"`
	StartMs float64 `json:"start_ms"`
	EndMs   float64 `json:"end_ms,omitempty"` // of one that has ended
}

// stateDocument is the scheduler from one turn on, until the next state.
type stateDocument struct {
	AtMs       float64 `json:"at_ms"`
	Live       int     `json:"live"`
	Waiting    int     `json:"waiting"`
	Queued     []int   `json:"queued"`     // by model
	Thresholds []int   `json:"thresholds"` // in force
}

func milliseconds(t core.Time) float64 { return float64(t) / 1e6 }

// turn takes a turn of the loop, after which the scheduler is as n says.
func (l *live) turn(now core.Time, in []core.Event, out *core.Actions, n *snapshot, thresholds []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.seen = now, time.Now()
	for i := range in {
		if in[i].Kind != core.BatchDone {
			continue
		}
		p := &l.running[in[i].Model]
		p.EndMs = milliseconds(now)
		l.passes.put(*p)
		p.Rows = 0
	}
	for i := range out.Launches {
		launch := &out.Launches[i]
		l.running[launch.Model] = passDocument{Model: launch.Model, Rows: len(launch.Rows),
			StartMs: milliseconds(now)}
	}
	before := l.states.last()
	if before != nil && before.Live == n.live && before.Waiting == n.waiting &&
		slices.Equal(before.Queued, n.queued) && slices.Equal(before.Thresholds, thresholds) {
		return
	}
	l.states.put(stateDocument{AtMs: milliseconds(now), Live: n.live, Waiting: n.waiting,
		Queued: slices.Clone(n.queued), Thresholds: thresholds})
}

// liveDocument is what /live shows.
type liveDocument struct {
	Models  []string        `json:"models"` // small first
	Chat    bool            `json:"chat"`   // there is a chat template
	NowMs   float64         `json:"now_ms"` // of the loop's clock
	Live    int             `json:"live"`
	Waiting int             `json:"waiting"`
	LiveMax int             `json:"live_max"`
	Share   float64         `json:"large_model_share"`       // of all tokens so far
	Planned float64         `json:"planned_tok_s,omitempty"` // throughput that the thresholds are planned for
	Running []passDocument  `json:"running"`                 // passes in flight
	Passes  []passDocument  `json:"passes"`                  // that have ended, the oldest first
	States  []stateDocument `json:"states"`
}

// liveNews answers /live: what is newer than after_ms, or all that is kept.
func (s *Server) liveNews(w http.ResponseWriter, r *http.Request) {
	after := -1.0
	if text := r.URL.Query().Get("after_ms"); text != "" {
		var err error
		if after, err = strconv.ParseFloat(text, 64); err != nil {
			invalid("after_ms", "after_ms = %q, want a number of milliseconds", text).write(w)
			return
		}
	}
	n := s.metrics.copy()
	plan := s.plan(n.live)
	d := liveDocument{
		Models: s.c.Models, Chat: s.c.Template != nil, Live: n.live, Waiting: n.waiting, LiveMax: s.places.served,
		Share: n.share(), Running: []passDocument{},
	}
	if plan.Planned {
		d.Planned = plan.RateTokS
	}
	s.live.fill(&d, after)
	s.writeJSON(w, http.StatusOK, d)
}

// fill adds what is newer than a time of the loop's clock, in ms.
func (l *live) fill(d *liveDocument, after float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen.IsZero() {
		d.NowMs = milliseconds(l.now + time.Since(l.seen).Nanoseconds())
	}
	for _, p := range l.running {
		if p.Rows > 0 {
			d.Running = append(d.Running, p)
		}
	}
	d.Passes = l.passes.after(func(p *passDocument) bool { return p.EndMs > after })
	d.States = l.states.after(func(s *stateDocument) bool { return s.AtMs > after })
}
