package run

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/task"
	"tokenrouter/sim"
)

// answer runs a job and writes its part, with its requests and answers.
func (r *runner) answer(ctx context.Context, a *answering, j job) (err error) {
	seed := r.spec.WorldSeed(j.point, j.replicate)
	p, shown, err := a.measured(ctx, j.point)
	if err != nil {
		return err
	}
	p, unplanned := r.planned(ctx, p)
	policy, set, err := r.plans.policy(ctx, p)
	if err != nil {
		return err
	}
	predicted, note, err := r.plans.predict(ctx, p)
	if err != nil {
		return err
	}
	c, err := a.configuration(p, policy)
	if err != nil {
		return err
	}
	requests, err := r.recordRequests(j)
	if err != nil {
		return err
	}
	defer func() { err = requests.close(err) }()
	counts := tally{refused: make(map[refusal]int)}
	mc := meter.Config{
		Models: len(c.Models), Slots: c.Requests, Nodes: 1, WarmupRequests: p.Workload.WarmupRequests,
		GoodTTFT: p.Workload.GoodTTFT, GoodTPOT: p.Workload.GoodTPOT,
	}
	mc.OnRequest = func(m *meter.Request) {
		counts.note(m)
		requests.add(seed, m)
	}
	done := part{
		Spec: r.spec.Hash, Backend: r.backend, Point: p.Key, Replicate: j.replicate, Seed: seed, Thresholds: set,
	}
	m := meter.New(mc)
	k, out, err := r.watched(ctx, a, job{p, j.replicate}, c, m, mc, &done)
	if err != nil {
		return err
	}
	s := m.Summary()
	done.Values = values(p, &s, &out.Result, &counts, predicted)
	done.Warnings = warnings(p, &s, &out.Result, &counts, note)
	for _, text := range []string{unplanned, k.warning()} {
		if text != "" {
			done.Warnings = append(done.Warnings, text)
		}
	}
	out.add(p, &s, done.Values)
	k.add(p, a.asked, shown, r.spec.ModelNames(), &s, done.Values)
	if err := result.WriteAnswers(r.answersPath(j), k.rows(j, a.asked, r.spec.ModelNames())); err != nil {
		return err
	}
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return r.stage(j, text)
}

// planned is the point itself, or one whose thresholds are all 1 where they were to be planned and the chain
// can not tell of what was measured, with a warning.
func (r *runner) planned(ctx context.Context, p *spec.Point) (_ *spec.Point, warning string) {
	if !p.Policy.Planned {
		return p, ""
	}
	if _, err := r.plans.thresholds(ctx, p); err != nil {
		ones := *p
		ones.Policy.Planned, ones.Policy.Table = false, nil
		for range p.Concurrency {
			ones.Policy.Table = append(ones.Policy.Table, slices.Repeat([]int{1}, len(p.Models)))
		}
		return &ones, "thresholds are 1, not planned: " + err.Error()
	}
	return p, ""
}

// warning is what a reader must know of the twins; empty: nothing.
func (k *asking) warning() string {
	if k.twins == nil {
		return ""
	}
	return k.twins.Warning
}

// watched asks the questions of a job under all that looks on, and then its twin in the simulator.
func (r *runner) watched(ctx context.Context, a *answering, j job, c core.Config, m *meter.Meter,
	mc meter.Config, done *part) (*asking, *ran, error) {
	p := j.point
	watch, err := r.watchers(j, c)
	if err != nil {
		return nil, nil, err
	}
	recording, err := r.trace(a, j)
	if err != nil {
		return nil, nil, errors.Join(err, watch.close())
	}
	look := looking{meter: m, steady: p.Workload.Steady, see: []observer{watch.observe, recording.observe},
		judged: recording.judged}
	k, err := a.ask(ctx, p, c, a.asked, done.Seed, look)
	if err = errors.Join(err, watch.close(), recording.close()); err != nil {
		return nil, nil, err
	}
	if watch.timeline != nil {
		done.Timeline = &watch.timeline.timeline
	}
	out := &ran{Result: sim.Result{End: k.end, Counters: []core.Counters{k.counts}}}
	for _, t := range k.timings {
		out.bookkeeping = append(out.bookkeeping, t.Bookkeeping())
	}
	twins, err := recording.replay(ctx, p, c, mc, k.timings)
	if err != nil || twins == nil {
		return k, out, err
	}
	out.simulated, out.Tallies = &twins.Given, twins.Tallies
	k.twins = twins
	return k, out, nil
}

// add adds the metrics that only answers have.
func (k *asking) add(p *spec.Point, asked []question, shown *traffic, models []string,
	measured *meter.Summary, v map[string]float64) {
	var c task.Count
	var scoreNs int64
	for i := range asked {
		text := k.answers[i].Text()
		c.Problems++
		if _, ok := task.Final(text); ok {
			c.Final++
		}
		if asked[i].problem.Right(text) {
			c.Correct++
		}
		scoreNs += asked[i].scoreNs
	}
	v["accuracy"], v["problems"], v["right"] = c.Accuracy(), float64(c.Problems), float64(c.Correct)
	v["accuracy_low"], v["accuracy_high"] = c.Interval()
	v["final_share"] = ratio(int64(c.Final), int64(c.Problems))
	v["answer_tokens_mean"] = ratio(k.tokens, int64(c.Problems))
	if scoreNs > 0 {
		v["score_mean_ms"] = float64(scoreNs) / 1e6 / float64(c.Problems)
	}
	sum, large := int64(0), int64(0)
	for i, m := range p.Models {
		sum += k.committed[i]
		if m.Name == models[len(models)-1] {
			large = k.committed[i]
		}
	}
	v["large_share"] = ratio(large, sum)
	if k.twins != nil {
		beside(v, "simulated_own", measured, &k.twins.Means)
		beside(v, "simulated_order", measured, &k.twins.InOrder)
	}
	algorithm := p.System.Router.Algorithm
	if algorithm == "small" || algorithm == "large" || algorithm == "query" {
		return
	}
	v["p"] = k.leaves(algorithm)
	if len(p.Models) == 2 {
		v["p_return"] = k.returns(algorithm)
	}
	if shown != nil {
		v["planned_p"] = shown.leaves(algorithm)
	}
}

// rows are the answers as written. Origins are indexes among all models of the experiment.
func (k *asking) rows(j job, asked []question, models []string) []result.AnswerRow {
	place := make([]byte, len(j.point.Models))
	for i, m := range j.point.Models {
		place[i] = '0' + byte(slices.Index(models, m.Name))
	}
	rows := make([]result.AnswerRow, len(asked))
	for i := range asked {
		q, a := &asked[i], &k.answers[i]
		row := result.AnswerRow{
			Point: j.point.Key, Replicate: j.replicate, Request: uint64(i), ID: q.problem.ID, Text: a.Text(),
			Right: q.problem.Right(a.Text()), Tokens: []int32{}, Dropped: a.Leave.Dropped, Finish: a.Finish(),
			Score: q.score,
		}
		row.Final, _ = task.Final(row.Text)
		var origin strings.Builder
		for _, t := range a.Tokens {
			row.Tokens = append(row.Tokens, t.Token)
			origin.WriteByte(place[t.Model])
		}
		row.Origin = origin.String()
		rows[i] = row
	}
	return rows
}
