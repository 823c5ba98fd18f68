package turnlog

import (
	"fmt"
	"io"
	"math"

	"tokenrouter/core"
)

// Perfetto writes a log as a Chrome trace (the JSON "trace event" format), for
// https://ui.perfetto.dev or chrome://tracing. Timestamps are microseconds with three decimals,
// so that no nanosecond is lost, and rise.
//
// Process "models" has a track for each model, with a slice for each launch (rows, fresh
// tokens, requests). Process "requests" has a track for each request: waiting for admission,
// queued, running, at the barrier that waits for other models, on its way between nodes;
// instants where a token is committed or dropped, and at its end. Beneath it is a track for
// each model where it was pending meanwhile. Arrows go from the launch that handed a request
// off to the launch that took it up.
//
// It is a stream: it holds what the requests in flight may still need. It returns what is
// wrong with the log, or with w.
func Perfetto(w io.Writer, r *Reader) error {
	p := perfetto{
		json: newTraceJSON(w), models: r.configs[0].Models, live: make(map[uint64]*journey),
		launched: make([]launched, len(r.configs[0].Models)),
	}
	p.json.process(pidModels, "models")
	p.json.process(pidRequests, "requests")
	for m := range p.models {
		p.json.thread(pidModels, modelTrack(m), p.models[m].Name)
	}
	for {
		turn, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		p.turn(turn)
		if p.json.full() {
			p.json.writeBefore(p.settled())
		}
	}
	p.end()
	return p.json.close()
}

const (
	pidModels   = 1
	pidRequests = 2
)

// modelTrack is the thread number of a model. Perfetto knows threads by number alone, so
// numbers are unique over processes, and none is a process's.
func modelTrack(m int) int { return 10 + m }

// never is the since of a request that nothing more can be said of the past.
const never = math.MaxInt64

// perfetto follows the requests of a log.
type perfetto struct {
	json     traceJSON
	models   []core.Model
	live     map[uint64]*journey
	launched []launched // a model: what runs there
	tracks   int        // requests seen
	flows    int
	now      core.Time
}

type launched struct {
	busy    bool
	startNs core.Time
	rows    []launchedRow
}

type launchedRow struct {
	of   *journey
	head bool
}

// journey is a request on its way through the models.
type journey struct {
	id       uint64
	track    int
	waiting  bool      // a slice of waiting for admission is open
	running  bool      // a slice of running is open
	model    int       // of the last launch, or -1
	since    core.Time // end of the last launch, or admission; never while running
	launchNs core.Time // how long the last launch took
	leftNs   [core.ModelsMax]core.Time
	pending  [core.ModelsMax]bool // a slice of pending is open
	open     bool                 // its last token is neither committed nor dropped yet
}

func (p *perfetto) turn(t *Turn) {
	p.now = t.Now
	for i := range t.In {
		if t.In[i].Kind == core.BatchDone {
			p.done(&t.In[i])
		}
	}
	for i := range t.Out.Tokens {
		p.token(&t.Out.Tokens[i])
	}
	for i := range t.Out.Leaves {
		if l := &t.Out.Leaves[i]; l.Slot >= 0 {
			p.leave(l)
		}
	}
	submitted := p.submitted(t)
	for i := range t.Out.Admits {
		p.admit(&t.Out.Admits[i])
	}
	for _, j := range submitted {
		if j.since == never { // not admitted at once
			j.waiting = true
			p.json.begin(p.now, pidRequests, j.track, "waiting for admission", "")
		}
	}
	for i := range t.Out.Launches {
		p.launch(&t.Out.Launches[i])
	}
}

// submitted makes journeys of the requests that were taken, and says which were not.
func (p *perfetto) submitted(t *Turn) (made []*journey) {
	rejected := make(map[uint64]core.Reason)
	for i := range t.Out.Leaves {
		if l := &t.Out.Leaves[i]; l.Slot < 0 {
			rejected[l.ID] = l.Reason
		}
	}
	for i := range t.In {
		if t.In[i].Kind != core.Submitted {
			continue
		}
		id := t.In[i].Submission.ID
		if reason, no := rejected[id]; no {
			track := p.track(id)
			p.json.instant(p.now, pidRequests, track, "rejected: "+reason.String(), "")
			continue
		}
		j := p.journey(id)
		made = append(made, j)
	}
	return made
}

// track makes a track for a request, with room for its pending ones.
func (p *perfetto) track(id uint64) int {
	track := 100 + p.tracks*(1+len(p.models))
	p.tracks++
	p.json.thread(pidRequests, track, fmt.Sprintf("request %d", id))
	return track
}

func (p *perfetto) journey(id uint64) *journey {
	if j := p.live[id]; j != nil {
		return j
	}
	j := &journey{id: id, track: p.track(id), model: -1, since: never}
	for m := range j.leftNs {
		j.leftNs[m] = never
	}
	p.live[id] = j
	return j
}

func (p *perfetto) admit(a *core.Admit) {
	if a.Guest {
		return
	}
	j := p.journey(a.ID)
	if j.waiting {
		j.waiting = false
		p.json.finish(p.now, pidRequests, j.track)
	}
	j.since = p.now
}

// launch begins slices at the model and at each of its requests, whose wait is over.
func (p *perfetto) launch(l *core.Launch) {
	into := &p.launched[l.Model]
	into.busy, into.startNs, into.rows = true, p.now, into.rows[:0]
	p.json.begin(p.now, pidModels, modelTrack(l.Model), plural(len(l.Rows), "row"), launchArgs(l))
	for i := range l.Rows {
		row := &l.Rows[i]
		j := p.journey(row.ID)
		p.waited(j, l.Model, row.Since)
		p.json.begin(p.now, pidRequests, j.track, "running "+p.models[l.Model].Name,
			fmt.Sprintf(`{"launch":%d,"start":%d,"fresh_tokens":%d}`, l.Seq, row.Start, row.Fresh))
		j.running, j.model, j.since = true, l.Model, never
		into.rows = append(into.rows, launchedRow{j, row.Head})
	}
}

// waited writes what a request did since its last launch, now that it is known where it went:
// it came to model m, and joined its queue at queuedNs.
func (p *perfetto) waited(j *journey, m int, queuedNs core.Time) {
	if j.since == never {
		j.since = queuedNs // not seen before: the log begins later
	}
	queuedNs = min(max(queuedNs, j.since), p.now)
	near := j.model >= 0 && p.models[j.model].Node == p.models[m].Node
	if j.model >= 0 && j.model != m {
		p.handoff(j, m)
	}
	if j.open { // its token was not committed
		j.open = false
		at := j.since
		if near {
			at = queuedNs // behind a barrier that is later
		}
		p.json.instant(at, pidRequests, j.track, "drop", fmt.Sprintf(`{"model":%d}`, j.model))
	}
	switch {
	case j.since == queuedNs:
	case near:
		p.json.slice(j.since, queuedNs, pidRequests, j.track, "at the barrier")
	default:
		p.json.slice(j.since, queuedNs, pidRequests, j.track, "on its way to "+p.models[m].Name)
	}
	if queuedNs < p.now {
		p.json.slice(queuedNs, p.now, pidRequests, j.track, "queued "+p.models[m].Name)
	}
	if j.pending[m] {
		j.pending[m] = false
		p.json.finish(queuedNs, pidRequests, j.track+1+m)
	}
}

// handoff begins the pending slice at the model that was left, and draws the arrow.
func (p *perfetto) handoff(j *journey, m int) {
	from := j.model
	if j.leftNs[from] == never { // its first time there: no track yet
		p.json.thread(pidRequests, j.track+1+from, fmt.Sprintf("request %d at %s", j.id, p.models[from].Name))
	}
	j.leftNs[from] = j.since
	j.pending[from] = true
	p.json.begin(j.since, pidRequests, j.track+1+from, "pending "+p.models[from].Name, "")
	if j.launchNs > 0 { // an arrow binds to the slice that is open where it starts
		p.flows++
		p.json.flow('s', j.since-1, pidModels, modelTrack(from), p.flows)
		p.json.flow('f', p.now, pidModels, modelTrack(m), p.flows)
	}
}

func (p *perfetto) done(e *core.Event) {
	from := &p.launched[e.Model]
	if !from.busy {
		return
	}
	from.busy = false
	p.json.finish(p.now, pidModels, modelTrack(e.Model))
	for _, row := range from.rows {
		j := row.of
		if !j.running || j.model != e.Model {
			continue // gone
		}
		j.running, j.since, j.launchNs = false, p.now, p.now-from.startNs
		p.json.finish(p.now, pidRequests, j.track)
		j.open = row.head && !e.Failed
	}
}

func (p *perfetto) token(t *core.Token) {
	j := p.live[t.ID]
	if j == nil {
		return
	}
	j.open = false
	p.json.instant(p.now, pidRequests, j.track, "commit",
		fmt.Sprintf(`{"position":%d,"token":%d,"model":%d}`, t.Position, t.Token, t.Model))
}

// leave ends a journey. On other nodes the same end is heard of later.
func (p *perfetto) leave(l *core.Leave) {
	j := p.live[l.ID]
	if j == nil {
		return
	}
	delete(p.live, l.ID)
	p.closeSlices(j)
	p.json.instant(p.now, pidRequests, j.track, l.Outcome.String()+": "+l.Reason.String(),
		fmt.Sprintf(`{"tokens":%d}`, l.Tokens))
}

func (p *perfetto) closeSlices(j *journey) {
	switch {
	case j.running, j.waiting:
		p.json.finish(p.now, pidRequests, j.track)
	case j.since < p.now:
		p.json.slice(j.since, p.now, pidRequests, j.track, "queued or on its way")
	}
	j.running, j.waiting, j.since = false, false, never
	for m, open := range j.pending {
		if open {
			p.json.finish(p.now, pidRequests, j.track+1+m)
		}
	}
}

// settled is the time before which nothing more will be written: the arrow of the request that
// waits longest may start a nanosecond before its wait.
func (p *perfetto) settled() core.Time {
	settled := p.now
	for _, j := range p.live {
		settled = min(settled, j.since-1)
	}
	return settled
}

// end closes what is open when the log ends, in order of tracks.
func (p *perfetto) end() {
	for m := range p.launched {
		if p.launched[m].busy {
			p.json.finish(p.now, pidModels, modelTrack(m))
		}
	}
	for _, j := range byTrack(p.live) {
		p.closeSlices(j)
	}
}
