package spec

import (
	"fmt"
	"path/filepath"
	"slices"

	"tokenrouter/experiments/task"
)

// Task is a workload of problems that real models answer and a program scores, each once, in order, by a
// closed loop of workers.
type Task struct {
	Task     *task.Task
	Split    task.Split
	Level    int // 0: all in turn
	Problems int // from index 0, of seed task.FixedSeed
	// TokensMax bounds an answer.
	TokensMax int
	// PlanProblems of the validation split show the share of hand-offs before the first point that needs it.
	PlanProblems int
}

// Open makes the problems.
func (t *Task) Open() ([]task.Problem, error) {
	return t.problems(t.Split, task.FixedSeed, t.Problems)
}

// Plan makes the validation problems on which thresholds are planned. They are none of those of Open.
func (t *Task) Plan() ([]task.Problem, error) {
	seed := uint64(task.FixedSeed)
	if t.Split == task.Validation {
		seed++
	}
	return t.problems(task.Validation, seed, t.PlanProblems)
}

func (t *Task) problems(split task.Split, seed uint64, count int) ([]task.Problem, error) {
	out := make([]task.Problem, count)
	for i := range out {
		var err error
		if out[i], err = t.Task.Problem(split, seed, uint64(i), t.Level); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// taskWorkload reads a workload of problems, but for what all workloads have.
func (l *loader) taskWorkload(s *section, p *Point) {
	const problemsMax, tokensMax = 1_000_000, 1 << 20
	t := &Task{
		Split:    task.Split(s.word("split", string(task.Test), string(task.Test), string(task.Validation))),
		Level:    int(s.whole("level", 0, 0, task.LevelMax)),
		Problems: int(s.whole("problems", task.FixedCount, 1, problemsMax)),

		TokensMax:    int(s.whole("max_tokens", 512, 1, tokensMax)),
		PlanProblems: int(s.whole("plan_problems", 24, 1, problemsMax)),
	}
	name := s.word("task", "", task.Names()...)
	if name != "" {
		t.Task, _ = task.Find(name)
	}
	w := &p.Workload
	w.Lengths.MaxTokens, w.Requests = int32(t.TokensMax), uint64(t.Problems)
	if w.Requests <= uint64(w.WarmupRequests) {
		s.wrong("warmup_requests", "want fewer than the %d problems, or nothing is measured", w.Requests)
	}
	if l.spec.Hardware == nil || l.routing == nil {
		s.wrong("kind", "want [[routing]] for it: the systems that answer")
	}
	p.Task = t
}

// routing is an entry of the array of that name: a system, and the values of its inner axis.
type routing struct {
	at     *section
	system *System
	values []routingValue
}

// routingValue is a place on the inner axis.
type routingValue struct {
	value  Value
	router Router // of the system, with this threshold, share or weights
}

// RoutingAxes are the axes that [[routing]] makes, outside of those of a sweep.
var RoutingAxes = []string{"routing", "routing_threshold"}

// stays reports whether requests never leave the model that they were born at.
func (r *routing) stays() bool {
	switch r.system.Router.Algorithm {
	case "small", "large", "query":
		return true
	default:
		return false
	}
}

// routings reads the systems that are compared.
func (l *loader) routings(top *section) {
	h := &Hardware{Backend: Backends[0]}
	l.spec.Hardware = h
	if s := top.sub("system"); s != nil {
		h.Backend = s.word("backend", Backends[0], Backends...)
		h.Calibrate = s.boolean("calibrate", false)
		for _, key := range []string{"file", "calibration"} {
			if s.get(key) != nil {
				s.wrong(key, "want none beside [[routing]], whose entries name their systems")
			}
		}
		s.done()
	}
	for _, key := range []string{"models", "router"} {
		if n := top.get(key); n != nil && !isEmpty(n) {
			top.wrong(key, "want none beside [[routing]], whose entries name their systems")
		}
	}
	names := make(map[string]bool)
	for _, s := range top.subs("routing") {
		name := s.text("name", "")
		if !s.has("name") {
			s.missing("name", "want a name, as in results and figures")
		} else if names[name] {
			s.wrong("name", "want a name that no other routing has")
		}
		names[name] = true
		r := &routing{at: s}
		if r.system = l.systemFile(s, "system"); r.system == nil {
			s.giveUp()
			continue
		}
		l.routingValues(s, r)
		s.done()
		l.routing = append(l.routing, r)
	}
}

// routingValues reads the inner axis that the algorithm has, and refuses any other.
func (l *loader) routingValues(s *section, r *routing) {
	algorithm := r.system.Router.Algorithm
	axis := ""
	switch algorithm {
	case "r2r", "citer", "collm", "rstitch":
		axis = "thresholds"
	case "me":
		axis = "weights"
	case "query":
		axis = "shares"
	case "":
		s.wrong("system", "want a system with router.algorithm")
		s.giveUp()
		return
	}
	for _, key := range []string{"thresholds", "weights", "shares"} {
		if s.get(key) != nil && key != axis {
			s.wrong(key, "want none: the algorithm of the system is %s", algorithm)
		}
	}
	if axis == "" {
		r.add(Value{Axis: RoutingAxes[1]}, r.system.Router)
		return
	}
	if !s.has(axis) {
		s.missing(axis, "want an array: the algorithm of the system is "+algorithm)
		return
	}
	seen := make(map[string]bool)
	for i, n := range s.list(axis) {
		v := valueOf(RoutingAxes[1], n)
		if seen[v.Text] {
			l.add(n, element(s.name(axis), i), "want no value twice")
		}
		seen[v.Text] = true
		r.add(v, l.routed(n, element(s.name(axis), i), axis, r.system))
	}
}

func (r *routing) add(v Value, router Router) { r.values = append(r.values, routingValue{v, router}) }

// routed is the router of a system at a value of the inner axis.
func (l *loader) routed(n *node, path, axis string, y *System) Router {
	r := y.Router
	switch axis {
	case "thresholds":
		r.Threshold, _ = l.numberAt(n, path, ThresholdMin, ThresholdMax)
		r.HasThreshold = true
	case "shares":
		r.Share, _ = l.numberAt(n, path, 0, 1)
		r.HasShare = true
	case "weights":
		before := len(l.problems)
		r.Weights = l.numbers(n, path, 0, 1e12)
		if len(l.problems) > before {
			return r
		}
		if len(r.Weights) != len(y.Models) {
			l.add(n, path, fmt.Sprintf("want %d numbers, one for each model, not %d", len(y.Models),
				len(r.Weights)))
		} else if !(slices.Max(r.Weights) > 0) {
			l.add(n, path, "want a number above 0 among them")
		}
	}
	return r
}

// routedPoints are the points of all systems: the entries of [[routing]] and their values outermost, then
// the sweep. Where requests stay with one model, a delayed batch has nothing to wait for: beside eager, its
// points are left out.
func (l *loader) routedPoints(combinations []combination) {
	for _, r := range l.routing {
		name := Value{Axis: RoutingAxes[0], Text: r.at.text("name", "")}
		for _, v := range r.values {
			for _, c := range combinations {
				if r.stays() && l.skipsDelayed(c) {
					continue
				}
				l.routedPoint(r, v, c, []Value{name, v.value})
			}
		}
	}
}

// skipsDelayed reports whether a combination has the policy delayed and the sweep the policy eager, too.
func (l *loader) skipsDelayed(c combination) bool {
	given := l.sweep.given["policy"]
	if given == nil {
		return false
	}
	policies, _ := given.value.(list)
	eager := slices.ContainsFunc(policies, func(n *node) bool { return n.value == "eager" })
	return eager && slices.ContainsFunc(c.values, func(v Value) bool {
		return v.Axis == "policy" && v.Text == "delayed"
	})
}

// routedPoint reads the point of a system at a value under a combination of the sweep.
func (l *loader) routedPoint(r *routing, v routingValue, c combination, place []Value) {
	root := c.root.with([]string{"models"}, l.routedModels(r))
	p := l.point(l.section(root, ""), r)
	y := *r.system
	y.Router = v.router
	p.System, p.SystemKey = &y, r.at.keys["system"].problem(r.at.name("system"), "")
	if r.stays() && y.Router.Algorithm != "query" {
		p.Routing, p.Commit = [][]float64{{1}}, [][]float64{{1}}
	}
	if y.Router.Algorithm == "me" {
		p.Routing, p.Commit = ensemble(y.Router.Weights)
	}
	p.Index, p.Values = len(l.spec.Points), slices.Concat(place, c.values)
	p.Key = keyOf(p.Values)
	l.spec.Points = append(l.spec.Points, p)
}

// ensemble is P and C of ME.
func ensemble(weights []float64) (routing, commit [][]float64) {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	row := make([]float64, len(weights))
	for i, w := range weights {
		row[i] = w / sum
	}
	for range weights {
		routing = append(routing, row)
		commit = append(commit, slices.Repeat([]float64{1}, len(weights)))
	}
	return routing, commit
}

// routedModels are the models of a system: with the step times of its calibration, or by name only.
func (l *loader) routedModels(r *routing) *node {
	path := l.calibrations[r.system.File]
	if path == "" {
		return nameModels(r.at.at, r.system.Used())
	}
	content, err := l.read(path)
	if err != nil {
		r.at.wrong("system", "want step times that can be read: %v", err)
		return nameModels(r.at.at, r.system.Used())
	}
	root := l.calibrationText(path, filepath.Base(path), string(content))
	if root == nil || !isList(root, "models") {
		return nameModels(r.at.at, r.system.Used())
	}
	return root.value.(table)["models"]
}

// routingAxes lists the values of the axes of [[routing]].
func (l *loader) routingAxes() []Axis {
	axes := []Axis{{Name: RoutingAxes[0]}, {Name: RoutingAxes[1]}}
	for _, p := range l.spec.Points {
		for i := range axes {
			if text := p.Values[i].Text; !slices.Contains(axes[i].Values, text) {
				axes[i].Values = append(axes[i].Values, text)
			}
		}
	}
	return axes
}

// CalibratedSystems is the spec with the step times of calibrations: files by that of their system. Name,
// points and Hash stay what they are.
func (s *Spec) CalibratedSystems(files map[string]string) (*Spec, error) {
	return s.reloadSystems(files)
}

// ModelNames are the models of all points, smaller ones first: as the points or their systems have them, and
// in order of appearance where those say nothing.
func (s *Spec) ModelNames() []string {
	var left, out []string
	before := make(map[[2]string]bool) // the first is smaller than the second
	for i := range s.Points {
		for _, name := range s.Points[i].names() {
			if !slices.Contains(left, name) {
				left = append(left, name)
			}
		}
		order := s.Points[i].names()
		if y := s.Points[i].System; y != nil {
			order = nil
			for _, m := range y.Models {
				order = append(order, m.Name)
			}
		}
		for j := range order {
			for k := range j {
				before[[2]string{order[k], order[j]}] = true
			}
		}
	}
	for len(left) > 0 {
		next := max(0, slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(left, func(o string) bool { return o != name && before[[2]string{o, name}] })
		}))
		out, left = append(out, left[next]), slices.Delete(left, next, next+1)
	}
	return out
}

// Measured is the point with what a run has shown of its routing: P and C of the throughput model, the mean
// number of tokens that a row has in KV, and from them the mean step times.
func (p Point) Measured(routing, commit [][]float64, contextMean float64) Point {
	p.Models = slices.Clone(p.Models)
	p.Routing, p.Commit = routing, commit
	for i := range p.Models {
		p.Models[i].ByRows, p.Models[i].unknown = nil, ""
	}
	p.byRows(contextMean)
	return p
}

// stayingPolicy reads nothing of the thresholds: nobody comes from another model, so that a batch waits for
// no one.
func (l *loader) stayingPolicy(s *section, p *Point) {
	p.Policy.Kind = s.word("kind", "", "step-sync", "model-sync", "eager", "delayed")
	if p.Policy.Kind == "delayed" {
		for n := 1; n <= p.Concurrency; n++ {
			p.Policy.Table = append(p.Policy.Table, slices.Repeat([]int{1}, len(p.Models)))
		}
	}
	s.giveUp()
}
