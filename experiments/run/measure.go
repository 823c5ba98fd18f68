package run

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome"
)

// tally is what a job counts beyond the meter.
type tally struct {
	servedNs int64 // sum of the latencies of finished requests of the window
	tokens   int64 // of those requests
	refused  map[refusal]int

	requests int       // that have left
	begunAt  core.Time // arrival of the first one that was admitted
	endedAt  core.Time // when the last one left
	liveNs   int64     // sum of the times that requests were live
}

// refusal is why requests were refused. Model is whose pool can not hold them, -1 where it is not for a pool.
type refusal struct {
	reason core.Reason
	model  int
}

// refusalOf is why a request was refused; ok is false if it was not.
func refusalOf(m *meter.Request) (r refusal, ok bool) {
	if m.Outcome != core.Rejected {
		return refusal{}, false
	}
	r = refusal{m.Reason, -1}
	if m.Reason == core.PoolTooSmall {
		r.model = m.Model
	}
	return r, true
}

// warning words it of n requests.
func (r refusal) warning(n int, models []spec.Model) string {
	text := fmt.Sprintf("%d requests were refused: %v", n, r.reason)
	if r.model >= 0 {
		text += fmt.Sprintf(" (model %s)", models[r.model].Name)
	}
	return text
}

// values are the metrics of a job by name. A metric that is absent was not there to be measured.
func values(p *spec.Point, s *meter.Summary, r *sim.Result, t *tally, predicted float64) map[string]float64 {
	v := result.Measured(s)
	v["served_s"], v["requests_open"] = float64(t.servedNs)/1e9, float64(r.Live)
	if t.servedNs > 0 {
		v["user_speed_tok_s"] = float64(t.tokens) * 1e9 / float64(t.servedNs)
	}
	if !math.IsNaN(predicted) {
		v["predicted_tok_s"] = predicted
		if measured, ok := v["throughput_tok_s"]; ok {
			v["predicted_error"] = measured/predicted - 1
		}
	}
	counts := total(r.Counters)
	v["drafts_dropped"], v["handoffs"] = float64(counts.Dropped), float64(counts.Handoffs)
	v["preempted"], v["recomputed_tokens"] = float64(counts.Preempted), float64(counts.Recomputed)
	v["prefix_tokens"] = float64(counts.PrefixShared)
	if p.Trace != "" {
		inherit(v, r.Answers)
	}
	for i, m := range s.Models {
		modelValues(v, result.Slug(p.Models[i].Name)+"_", &m, s)
	}
	return v
}

// inherit adds what a trace says of the answers.
func inherit(v map[string]float64, a outcome.Answers) {
	v["inherited_right"], v["inherited_wrong"] = float64(a.Right), float64(a.Wrong)
	v["inherited_unknown"] = float64(a.Unknown)
	if a.Unknown == 0 && a.Right+a.Wrong > 0 {
		v["inherited_accuracy"] = float64(a.Right) / float64(a.Right+a.Wrong)
	}
}

func modelValues(v map[string]float64, prefix string, m *meter.ModelSummary, s *meter.Summary) {
	v[prefix+"launches"], v[prefix+"rows"] = float64(m.Launches), float64(m.Rows)
	v[prefix+"pages_peak"] = float64(m.PagesMax)
	if s.Committed > 0 {
		v[prefix+"share"] = m.Share
	}
	if s.ClosedNs > s.OpenedNs {
		v[prefix+"utilisation"] = m.Utilisation
	}
	if m.Launches > 0 {
		v[prefix+"batch_mean"], v[prefix+"queue_mean_ms"] = m.BatchMean, m.QueueMeanNs/1e6
		v[prefix+"pending_mean_ms"] = m.PendMeanNs / 1e6
	}
}

// total adds the counters of all nodes.
func total(nodes []core.Counters) core.Counters {
	var sum core.Counters
	for _, c := range nodes {
		sum.Dropped += c.Dropped
		sum.Handoffs += c.Handoffs
		sum.Preempted += c.Preempted
		sum.Recomputed += c.Recomputed
		sum.PrefixShared += c.PrefixShared
		sum.Unstalled += c.Unstalled
	}
	return sum
}

// warnings says what a reader of the row must know.
func warnings(p *spec.Point, s *meter.Summary, r *sim.Result, t *tally, note string) []string {
	var out []string
	for _, text := range []string{note, r.Warning} {
		if text != "" {
			out = append(out, text)
		}
	}
	if text := saturation(p, r, t); text != "" {
		out = append(out, text)
	}
	for i := range r.Tallies {
		if w := r.Tallies[i].Warning(p.Models[i].Name, p.Models[i].Latency); w != "" {
			out = append(out, w)
		}
	}
	if p.ContextNeed > p.ContextMax {
		out = append(out, fmt.Sprintf("requests of up to %d tokens meet scheduler.context_max = %d: longer answers"+
			" are cut, longer prompts refused", p.ContextNeed, p.ContextMax))
	}
	if s.ClosedNs == s.OpenedNs {
		out = append(out, "nothing was measured: fewer requests left than warmup_requests, or no token was"+
			" committed")
	}
	if n := total(r.Counters).Unstalled; n > 0 {
		out = append(out, outOfTurn(p, n))
	}
	inOrder := func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.reason, b.reason), cmp.Compare(a.model, b.model))
	}
	for _, r := range slices.SortedFunc(maps.Keys(t.refused), inOrder) {
		out = append(out, r.warning(t.refused[r], p.Models))
	}
	if text := result.ThinTails(s); text != "" {
		out = append(out, text)
	}
	return out
}

// saturation warns of an open loop that the system could not keep up with, or hardly: then times depend on
// the length of the run more than on the system. Past saturation means that, when the last request came,
// more than could be live, and more than a tenth of all, were still waiting for admission; near it, that
// nine tenths of the places were taken in the mean.
func saturation(p *spec.Point, r *sim.Result, t *tally) string {
	switch p.Workload.Kind {
	case "poisson", "gamma", "trace":
	default:
		return ""
	}
	if r.Waiting > p.Concurrency && 10*r.Waiting > t.requests {
		return fmt.Sprintf("load is past saturation: when the last of %d requests came, %d still waited for"+
			" admission; times grow with the length of the run", t.requests, r.Waiting)
	}
	const near = 0.9
	taken := float64(t.liveNs) / (float64(p.Concurrency) * float64(max(t.endedAt-t.begunAt, 1)))
	if taken >= near {
		return fmt.Sprintf("load is near saturation: %.3g %% of the %d places for requests were taken in the"+
			" mean; times depend on the length of the run", 100*taken, p.Concurrency)
	}
	return ""
}

// outOfTurn words the n launches by which the core kept a run going: nothing was running, and the policy or
// the pages held back whatever waited. With thresholds that a spec may have, only short pages lead there.
func outOfTurn(p *spec.Point, n uint64) string {
	if p.Admission == core.Optimistic {
		return fmt.Sprintf("%d launches were started out of turn to keep requests going: KV pages ran short, and"+
			" nothing else could run", n)
	}
	return fmt.Sprintf("%d launches were started out of turn to keep requests going: policy %s held all that"+
		" waited, and nothing was running", n, p.Policy.Kind)
}
