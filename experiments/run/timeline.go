package run

import (
	"tokenrouter/core"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
)

// recorder keeps the launches and ends of a small run for the figure of schedules.
type recorder struct {
	timeline result.Timeline
	running  []int // by model: its launch in timeline.Launches, or -1
	last     map[uint64]int
}

func newRecorder(p *spec.Point) *recorder {
	r := &recorder{timeline: result.Timeline{Point: p.Key}, last: make(map[uint64]int)}
	for range p.Models {
		r.running = append(r.running, -1)
	}
	return r
}

func (r *recorder) observe(_ int, now core.Time, in []core.Event, out *core.Actions) {
	for _, e := range in {
		if e.Kind == core.BatchDone && r.running[e.Model] >= 0 {
			r.timeline.Launches[r.running[e.Model]].EndNs = now
			r.running[e.Model] = -1
		}
	}
	for _, t := range out.Tokens {
		r.last[t.ID] = int(t.Model)
	}
	for _, l := range out.Leaves {
		if l.Outcome == core.Finished && !l.Guest {
			r.timeline.Ends = append(r.timeline.Ends,
				result.TimelineEnd{ID: l.ID, Model: r.last[l.ID], AtNs: now})
		}
	}
	for _, l := range out.Launches {
		launch := result.TimelineLaunch{Model: l.Model, StartNs: now, EndNs: now}
		for _, row := range l.Rows {
			launch.IDs = append(launch.IDs, row.ID)
			launch.SinceNs = append(launch.SinceNs, row.Since)
		}
		r.running[l.Model] = len(r.timeline.Launches)
		r.timeline.Launches = append(r.timeline.Launches, launch)
	}
}
