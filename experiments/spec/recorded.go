package spec

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"tokenrouter/core/route"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// recordedFacts are what a point must know of recorded requests before it runs.
type recordedFacts struct {
	header     trace.Header
	requests   uint64
	contextMax int
	err        error
}

// scanRecorded reads a whole trace of recorded requests.
func scanRecorded(path string) (facts recordedFacts) {
	t, err := trace.Open(path)
	if err != nil {
		return recordedFacts{err: err}
	}
	facts.header = t.Header()
	var r trace.Request
	for {
		if err = t.Read(&r); err != nil {
			break
		}
		facts.requests++
		facts.contextMax = max(facts.contextMax, int(r.PromptTokens)+int(max(r.OutputTokens, r.TokensMax)))
	}
	if err == io.EOF || errors.Is(err, trace.ErrCut) { // the run says that the file is cut off
		err = nil
	}
	if facts.requests == 0 && err == nil {
		err = fmt.Errorf("trace %s: no whole request", path)
	}
	facts.err = errors.Join(err, t.Close())
	return facts
}

// recordedTrace reads the file of recorded requests and checks that it fits the models.
func (l *loader) recordedTrace(s *section, p *Point, play outcome.Play) {
	if !s.has("trace") {
		s.missing("trace", "want a file of recorded requests")
		return
	}
	path, _ := l.file(s, "trace")
	if path == "" {
		return
	}
	facts, ok := l.recordings[path]
	if !ok {
		facts = scanRecorded(path)
		l.recordings[path] = facts
	}
	switch {
	case facts.err != nil:
		s.wrong("trace", "want a trace without faults: %v", facts.err)
	case !slices.Equal(facts.header.Models, p.names()):
		s.wrong("trace", "want a trace of the models %s, not of %s", quoteAll(p.names()),
			quoteAll(facts.header.Models))
	}
	p.Trace, p.Play, p.Outcome = path, play, nil
	p.Workload.Requests, p.ContextMax = facts.requests, facts.contextMax
}

// signals lets the algorithm decide on recorded signals.
func (l *loader) signals(s *section, p *Point, algorithm string) {
	l.recordedTrace(s, p, outcome.Signals)
	if !s.has("threshold") {
		s.missing("threshold", "want the threshold of the algorithm")
	}
	const largest = 1e12
	threshold := s.number("threshold", 0, -largest, largest)
	facts := l.recordings[p.Trace]
	if err := facts.header.CheckAlgorithm(algorithm, ""); err != nil {
		s.wrong("trace", "want a trace of the algorithm %s: %v", algorithm, err)
	}
	need := trace.Score
	switch algorithm {
	case "r2r":
		p.Algorithm = route.R2R{Threshold: threshold}
	case "citer":
		p.Algorithm = route.CITER{Threshold: threshold}
	case "collm":
		p.Algorithm = route.CoLLM{Threshold: threshold}
	case "rstitch":
		p.Algorithm, need = route.RStitch{Threshold: threshold}, trace.Entropy
	}
	for m, has := range facts.header.Signals {
		if has&need == 0 && (m == 0 || algorithm == "rstitch") {
			s.wrong("trace", "want a trace with the signal %v of model %d, on which %s decides", need, m, algorithm)
		}
	}
}

// recordedWorkload takes requests from the router's trace.
func (l *loader) recordedWorkload(s *section, p *Point) {
	w := &p.Workload
	switch {
	case p.Trace == "" && p.Paths != nil:
		s.wrong("kind", `want "closed" for router.paths, which have no arrivals`)
		return
	case p.Trace == "":
		s.wrong("kind", `want "closed", "poisson", "gamma" or "trace" for a router without trace`)
		return
	case w.Kind != "closed" && w.Kind != "recorded":
		s.wrong("kind", `want "closed" or "recorded" for requests of router.trace`)
	}
	facts := l.recordings[p.Trace]
	w.Requests, p.ContextMax = facts.requests, max(facts.contextMax, 2)
	if w.Requests <= uint64(w.WarmupRequests) && facts.err == nil {
		s.wrong("warmup_requests", "want fewer than the %d requests, or nothing is measured", w.Requests)
	}
}
