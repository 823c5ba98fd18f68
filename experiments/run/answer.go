package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"tokenrouter/core"
	"tokenrouter/core/meter"
	"tokenrouter/core/route"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/task"
	"tokenrouter/sim"
	"tokenrouter/sim/outcome"
	"tokenrouter/sim/outcome/trace"
)

// answer runs a job and writes its part, with its requests and answers.
func (r *runner) answer(ctx context.Context, a *answering, j job) (err error) {
	seed := r.spec.WorldSeed(j.point, j.replicate)
	p, shown, err := a.measured(ctx, j.point)
	if err != nil {
		return err
	}
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
	out.add(p, &s, done.Values)
	k.add(p, a.asked, shown, r.spec.ModelNames(), done.Values)
	if err := result.WriteAnswers(r.answersPath(j), k.rows(j, a.asked, r.spec.ModelNames())); err != nil {
		return err
	}
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return r.stage(j, text)
}

// watched asks the questions of a job under all that looks on, and then its twin in the simulator.
func (r *runner) watched(ctx context.Context, a *answering, j job, c core.Config, m *meter.Meter,
	mc meter.Config, done *part) (*asking, *ran, error) {
	p := j.point
	watch, err := r.watchers(j, c)
	if err != nil {
		return nil, nil, err
	}
	recording, err := r.trace(p, j)
	if err != nil {
		return nil, nil, errors.Join(err, watch.close())
	}
	k, err := a.ask(ctx, p, c, a.asked, done.Seed, m, p.Workload.Steady, watch.observe, recording.observe)
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
	return k, out, recording.replay(ctx, p, c, mc, out)
}

// add adds the metrics that only answers have.
func (k *asking) add(p *spec.Point, asked []question, shown *traffic, models []string, v map[string]float64) {
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

// tracing records a job for its twin in the simulator; all is nothing without step times.
type tracing struct {
	path string
	to   *trace.Recording
}

// trace begins the record of a job.
func (r *runner) trace(p *spec.Point, j job) (*tracing, error) {
	if p.Models[0].Latency == nil {
		return &tracing{}, nil
	}
	t := &tracing{path: r.partPath(j) + ".trace.jsonl"}
	h := trace.Header{Signals: make([]trace.Signals, len(p.Models))}
	for _, m := range p.Models {
		h.Models = append(h.Models, m.Name)
	}
	var err error
	t.to, err = trace.Create(t.path, h)
	return t, err
}

func (t *tracing) observe(node int, now core.Time, in []core.Event, out *core.Actions) {
	if t.to != nil {
		t.to.Turn(node, now, in, out)
	}
}

func (t *tracing) close() error {
	if t.to == nil {
		return nil
	}
	return t.to.Close()
}

// replay runs what was recorded in the simulator, under the same policy, with the calibrated step times, and
// removes the record.
func (t *tracing) replay(ctx context.Context, p *spec.Point, c core.Config, mc meter.Config, out *ran) error {
	if t.to == nil {
		return nil
	}
	defer func() { _ = errors.Join(os.Remove(t.path), os.Remove(trace.StepsPath(t.path))) }()
	reader, err := trace.Open(t.path)
	if err != nil {
		return err
	}
	defer reader.Close()
	played, err := outcome.NewRecorded(reader, outcome.Paths)
	if err != nil {
		return err
	}
	mc.OnRequest = nil
	c.Algorithm = route.Recorded{}
	twin := sim.Config{
		Core: c, Workload: played, Outcome: played, Closed: true, Steady: p.Workload.Steady, Meter: meter.New(mc),
	}
	for _, m := range p.Models {
		twin.Latency, twin.Beside = append(twin.Latency, m.Latency), append(twin.Beside, m.Beside)
	}
	simulated, err := sim.Run(ctx, twin)
	if err != nil {
		return fmt.Errorf("simulation: %w", err)
	}
	summary := twin.Meter.Summary()
	out.simulated, out.Tallies = &summary, simulated.Tallies
	return nil
}
