package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/meter/quantile"
	"tokenrouter/experiments/result"
)

// Result is what a run has measured.
type Result struct {
	Sent     int  // requests
	Finished int  // of these, those of the warm-up too
	Cut      bool // the run was ended from outside before all was done
	// Values are the metrics by name (Metrics). One that is absent was not there to be measured.
	Values map[string]float64
	Models []string // that the server names as makers of tokens, by name
	Failed []Failures
	// Warnings say what a reader of the values must know.
	Warnings []string
}

// Failures are the requests, of the whole run, that failed or were refused in one way.
type Failures struct {
	Kind    string `json:"kind"` // Error.Kind
	Count   int    `json:"count"`
	Example string `json:"example"` // the message of the first
}

// result closes the books. over is when the run was ended before all was done; -1: it was not.
func (r *run) result(over time.Duration) *Result {
	counted := &tally{byModel: make(map[string]int)}
	m := meter.New(meter.Config{
		Models: 1, Slots: len(r.requests), WarmupRequests: r.c.WarmupRequests,
		GoodTTFT: int64(r.c.GoodTTFT), GoodTPOT: int64(r.c.GoodTPOT),
		OnRequest: func(left *meter.Request) { counted.add(r.requests[left.ID], left) },
	})
	open := r.replay(m, over)
	s := m.Summary()
	s.Gap = nil // of tokens, which only the server sees
	if !r.c.Stream {
		s.TTFT, s.TPOT = nil, nil
	}
	gaps := r.gaps(&s, counted.kept)
	v := result.Measured(&s)
	result.MeasuredTimes(v, "chunk_gap", meter.StatsOf(gaps))
	result.MeasuredTimes(v, "send_wait", nil)
	if r.c.Open {
		result.MeasuredTimes(v, "send_wait", s.Admission)
	}
	maps.DeleteFunc(v, func(name string, _ float64) bool {
		return !slices.ContainsFunc(metrics, func(m result.Metric) bool { return m.Name == name })
	})
	v["served_s"], v["prompt_tokens"] = counted.served.Seconds(), float64(counted.prompts)
	if counted.served > 0 {
		v["user_speed_tok_s"] = float64(counted.tokens) / counted.served.Seconds()
	}
	v["requests_open"], v["requests_unsent"] = float64(open), float64(r.unsent)
	v["requests_uncounted"] = float64(counted.uncounted)
	models := slices.Sorted(maps.Keys(counted.byModel))
	if len(models) > 0 {
		v["drafts_dropped"] = float64(counted.dropped)
	}
	for _, name := range models {
		v[result.Slug(name)+"_share"] = float64(counted.byModel[name]) / float64(max(counted.said, 1))
	}
	out := &Result{Sent: len(r.requests), Values: v, Models: models, Failed: r.failures()}
	for _, e := range r.requests {
		if e.End >= 0 && e.Err == nil {
			out.Finished++
		}
	}
	out.Warnings = r.warnings(&s, v)
	return out
}

// tally adds up finished requests of the window.
type tally struct {
	kept                                      []*Ended
	served                                    time.Duration
	tokens, prompts, uncounted, dropped, said int
	byModel                                   map[string]int
}

func (t *tally) add(e *Ended, left *meter.Request) {
	if left.InWarmup || left.Outcome == core.Rejected {
		return
	}
	t.kept = append(t.kept, e)
	if left.Outcome != core.Finished {
		return
	}
	t.served += time.Duration(left.Left - left.Arrival)
	t.tokens += int(left.Tokens)
	t.prompts += e.PromptTokens
	t.dropped += e.Dropped
	if !e.Counted {
		t.uncounted++
	}
	for name, n := range e.ByModel {
		t.byModel[name] += n
		t.said += n
	}
}

// replay shows the meter what happened, and returns how many requests were in flight at the end.
func (r *run) replay(m *meter.Meter, over time.Duration) (open int) {
	last := -1 // of the requests to be sent
	if r.c.Steady && over < 0 {
		last = len(r.requests) - 1
	}
	parts := make([][]int, len(r.requests)) // tokens of the chunks that are still to come
	for _, of := range r.log {
		e, id := r.requests[of.request], uint64(of.request)
		var out core.Actions
		switch of.what {
		case sent:
			open++
			parts[of.request] = e.tokensOf()
			if e.End < 0 || e.outcome() != core.Rejected {
				out.Admits = []core.Admit{{ID: id, Slot: of.request, Arrival: int64(e.Planned)}}
			}
		case chunk:
			n := parts[of.request][0]
			parts[of.request] = parts[of.request][1:]
			out.Tokens = slices.Repeat([]core.Token{{ID: id, Slot: of.request}}, n)
		case ended:
			open--
			out.Leaves = []core.Leave{{ID: id, Slot: of.request, Model: -1, Outcome: e.outcome()}}
		default:
			panic(fmt.Sprintf("load: happening %d", of.what))
		}
		m.Turn(0, int64(of.at), nil, &out)
		if of.what == sent && int(of.request) == last {
			m.Close(int64(of.at))
		}
	}
	if over >= 0 {
		m.Close(int64(over))
	}
	return open
}

// tokensOf is how many tokens each chunk of the answer has: what the chunks say, where it adds up to the
// answer, else an equal part, the earlier chunks first.
func (e *Ended) tokensOf() []int {
	parts := make([]int, len(e.Chunks))
	total, all := 0, true
	for i, c := range e.Chunks {
		parts[i] = c.Said
		total += c.Said
		all = all && c.Said > 0
	}
	if all && (total == e.Tokens || !e.Counted) {
		return parts
	}
	n := len(parts)
	if total = e.Tokens; !e.Counted {
		total = n
	}
	for i := range parts {
		before := func(i int) int { return (total*i + n - 1) / n }
		parts[i] = before(i+1) - before(i)
	}
	return parts
}

// gaps are the times between chunks of requests that were sent in the window, each by its second chunk.
func (r *run) gaps(s *meter.Summary, kept []*Ended) *quantile.Sample {
	var gaps quantile.Sample
	for _, e := range kept {
		for i := 1; i < len(e.Chunks); i++ {
			if at := int64(e.Chunks[i].At); at > s.OpenedNs && at <= s.ClosedNs {
				gaps.Add(at - int64(e.Chunks[i-1].At))
			}
		}
	}
	return &gaps
}

// failures are all that failed or were refused, the most frequent kind first.
func (r *run) failures() []Failures {
	list := []Failures{}
	for _, e := range r.requests {
		if e.End < 0 || e.Err == nil {
			continue
		}
		at := slices.IndexFunc(list, func(f Failures) bool { return f.Kind == e.Err.Kind })
		if at < 0 {
			at = len(list)
			list = append(list, Failures{Kind: e.Err.Kind, Example: e.Err.Message})
		}
		list[at].Count++
	}
	slices.SortStableFunc(list, func(a, b Failures) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

func (r *run) warnings(s *meter.Summary, v map[string]float64) []string {
	var out []string
	if s.ClosedNs == s.OpenedNs {
		why := ""
		if r.c.Steady {
			why = "; a steady window needs more requests than may be in flight"
		}
		out = append(out, "nothing was measured: too few requests left before the window closed, or no token"+
			" came"+why)
	}
	if n := v["requests_uncounted"]; n > 0 {
		out = append(out, fmt.Sprintf("of %.0f requests the server did not count the tokens: each chunk counts as"+
			" what it says it has, or as one", n))
	}
	if n := v["requests_unsent"]; n > 0 {
		out = append(out, fmt.Sprintf("%.0f requests could not be sent at their arrival, nor until the end: all %d"+
			" places were taken; no time of them is known", n, r.c.InFlight))
	}
	if text := result.ThinTails(s); text != "" {
		out = append(out, text)
	}
	return out
}
