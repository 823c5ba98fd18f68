package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tokenrouter/core"
	"tokenrouter/exec"
	"tokenrouter/experiments/result"
	"tokenrouter/experiments/spec"
	"tokenrouter/experiments/system"
	"tokenrouter/experiments/task"
	"tokenrouter/sim/outcome/trace"
)

// answering is a system that answers the problems of all points that name its file, with its models loaded
// once.
type answering struct {
	*hardware
	first    *spec.Point // one of its points: all have the same task
	asked    []question
	practice []question          // validation problems, which show p
	traffic  map[string]*traffic // of these, by threshold
	device   func(model int, d exec.Device) exec.Device
	traced   *trace.Header // of its traces, once it is known
}

// question is a problem as the models get it.
type question struct {
	problem task.Problem
	ids     []int32
	score   float64 // of the router of prompts, if there is one
	scoreNs int64
}

// answerAll runs jobs, system by system, in the order of the points.
func (r *runner) answerAll(ctx context.Context, jobs []job, o *Options) error {
	groups := bySystem(jobs)
	for _, group := range groups { // what is wrong with the last one shows before the first one runs
		a, err := r.prepareAnswering(group, o)
		if err != nil {
			return err
		}
		if err := a.close(); err != nil {
			return err
		}
	}
	done := 0
	for _, group := range groups {
		err := r.answerGroup(ctx, group, o, func() {
			if done++; o.Progress != nil {
				o.Progress(done, len(jobs))
			}
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bySystem puts jobs together whose points name the same system.
func bySystem(jobs []job) [][]job {
	var groups [][]job
	at := make(map[string]int)
	for _, j := range jobs {
		file := j.point.System.File
		i, ok := at[file]
		if !ok {
			i = len(groups)
			at[file], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], j)
	}
	return groups
}

// answerGroup runs the jobs of one system.
func (r *runner) answerGroup(ctx context.Context, jobs []job, o *Options, done func()) (err error) {
	say := func(what string) {
		if o.Doing != nil {
			o.Doing(filepath.Base(jobs[0].point.System.File) + ": " + what)
		}
	}
	say("loading models")
	a, err := r.prepareAnswering(jobs, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := errors.Join(a.score(a.asked), a.score(a.practice)); err != nil {
		return blame(a.first, err)
	}
	if a.system, err = a.plan.Open(ctx, system.Run{}); err != nil {
		return blame(a.first, err)
	}
	if r.spec.Hardware.Calibrate {
		file := a.first.System
		path := filepath.Join(r.dir, calibrationOf(file))
		if err := a.stepTimes(ctx, path, file.File, o.Resume, say); err != nil {
			return err
		}
		calibrated, err := r.spec.CalibratedSystems(map[string]string{file.File: path})
		if err != nil {
			return err
		}
		for i := range jobs {
			jobs[i].point = &calibrated.Points[jobs[i].point.Index]
		}
	}
	for _, j := range jobs {
		if err := r.answer(ctx, a, j); err != nil {
			return fmt.Errorf("%s, replicate %d: %w", j.point.Key, j.replicate, err)
		}
		done()
	}
	return nil
}

// blame puts what the models' folders have shown down to the key that names the system.
func blame(p *spec.Point, err error) error {
	if err == nil {
		return nil
	}
	problem := p.SystemKey
	problem.Text = err.Error()
	return spec.Problems{problem}
}

// calibrationOf is the file of a system's step times in a results folder.
func calibrationOf(y *spec.System) string {
	name := filepath.Base(y.File)
	return "calibration-" + strings.TrimSuffix(name, filepath.Ext(name)) + ".toml"
}

// prepareAnswering opens the system of some jobs with room for the largest of their points, and has the
// problems as ids. No weight is read.
func (r *runner) prepareAnswering(jobs []job, o *Options) (_ *answering, err error) {
	a := &answering{
		hardware: &hardware{backend: o.Backend}, first: jobs[0].point, traffic: make(map[string]*traffic),
		device: o.device,
	}
	y := *a.first.System
	y.Policy, y.Admission, y.Concurrency = spec.Policy{Kind: "eager"}, a.first.Admission, 1
	for _, j := range jobs {
		y.Concurrency, y.Budget = max(y.Concurrency, j.point.Concurrency), max(y.Budget, j.point.Budget)
	}
	y.Queue = backlog(y.Concurrency) - y.Concurrency
	if a.plan, err = system.Prepare(&y, system.Choice{Backend: o.Backend, Scorer: o.scorer}); err != nil {
		return nil, blame(a.first, err)
	}
	if r.spec.Hardware.Calibrate && a.plan.Remote() {
		err := fmt.Errorf("%s: step times are measured of models that run here, want system.calibrate = false with"+
			" an engine", y.File)
		return nil, errors.Join(blame(a.first, err), a.close())
	}
	a.freshMax = a.plan.Core.TokenBudget // rare hand-offs bring long suffixes
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	encoder, err := a.plan.Encoder(true)
	if err != nil {
		return nil, blame(a.first, err)
	}
	t := a.first.Task
	problems, err := t.Open()
	if err != nil {
		return nil, err
	}
	if a.asked, err = a.questions(encoder, problems); err != nil {
		return nil, blame(a.first, err)
	}
	if problems, err = t.Plan(); err != nil {
		return nil, err
	}
	a.practice, err = a.questions(encoder, problems)
	return a, blame(a.first, err)
}

// questions makes ids of problems. Each with its answer must fit into the context.
func (a *answering) questions(encoder *system.Encoder, problems []task.Problem) ([]question, error) {
	out := make([]question, len(problems))
	for i, p := range problems {
		ids, err := encoder.Text(p.Prompt)
		if err != nil {
			return nil, fmt.Errorf("problem %s: %w", p.ID, err)
		}
		if room := a.plan.Core.ContextMax - len(ids); a.first.Task.TokensMax > room {
			return nil, fmt.Errorf("problem %s has %d tokens, and the context %d: want workload.max_tokens of at"+
				" most %d, not %d", p.ID, len(ids), a.plan.Core.ContextMax, room, a.first.Task.TokensMax)
		}
		out[i] = question{problem: p, ids: ids}
	}
	return out, nil
}

// score has questions scored, if there is a router of prompts.
func (a *answering) score(questions []question) error {
	scorer := a.plan.Scorer()
	if scorer == nil {
		return nil
	}
	for i := range questions {
		q := &questions[i]
		started := time.Now()
		var err error
		if q.score, err = scorer.Score(q.ids); err != nil {
			return fmt.Errorf("score of problem %s: %w", q.problem.ID, err)
		}
		q.scoreNs = time.Since(started).Nanoseconds()
	}
	return nil
}

// configuration is the scheduler's of a point.
func (a *answering) configuration(p *spec.Point, policy core.Policy) (core.Config, error) {
	c := configure(p, policy)
	of := a.plan.Core
	c.Models, c.PageTokens, c.ContextMax = of.Models, of.PageTokens, of.ContextMax
	if c.TokenBudget == 0 {
		c.TokenBudget = of.TokenBudget
	}
	var err error
	c.Algorithm, err = a.plan.Rule(p.System.Router)
	if len(c.Models) == 1 {
		c.Policy = core.Eager{}
	}
	return c, err
}

// prompts are questions as a point asks them: those of a router of prompts are born where their scores say.
func (a *answering) prompts(p *spec.Point, questions []question) ([]system.Prompt, error) {
	threshold, scorer := p.System.Router.Threshold, a.plan.Scorer()
	if scorer != nil && p.System.Router.HasShare {
		var err error
		if threshold, err = scorer.Threshold(p.Task.Task.Name, p.System.Router.Share); err != nil {
			return nil, blame(p, err)
		}
	}
	out := make([]system.Prompt, len(questions))
	for i, q := range questions {
		out[i] = system.Prompt{IDs: q.ids, TokensMax: p.Task.TokensMax, Arrival: -1}
		if scorer != nil {
			out[i].Entry = system.Born(q.score, threshold)
		}
	}
	return out, nil
}

// answersPath is the file of a job's answers until the run is finished.
func (r *runner) answersPath(j job) string {
	return filepath.Join(r.parts(), j.name()+".answers.jsonl")
}

// gatherAnswers makes one file of those of the jobs.
func (r *runner) gatherAnswers(order []job) error {
	var rows []result.AnswerRow
	for _, j := range order {
		err := result.EachAnswer(r.answersPath(j), func(row *result.AnswerRow) error {
			rows = append(rows, *row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return result.WriteAnswers(filepath.Join(r.dir, result.AnswersFile), rows)
}
