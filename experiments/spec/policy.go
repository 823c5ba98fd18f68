package spec

import (
	"math"

	"tokenrouter/core"
)

// policy reads when an idle model starts. Keys of the delayed policy may stand beside another kind only in
// a sweep over kinds.
func (l *loader) policy(s *section, p *Point) {
	p.Policy.Kind = s.word("kind", "", "step-sync", "model-sync", "eager", "delayed")
	if p.Policy.Kind == "delayed" {
		l.delayed(s, p)
		s.done()
		return
	}
	if l.sweep.over("thresholds") && p.Policy.Kind != "" {
		s.wrong("thresholds", "want policy delayed at every point of a sweep over thresholds, not %s",
			p.Policy.Kind)
	}
	if l.sweep.over("policy") || p.Policy.Kind == "" {
		s.giveUp()
	}
	s.done()
	if kind := p.Policy.Kind; kind == "step-sync" || kind == "model-sync" {
		l.oneNode(s, p)
	}
}

// oneNode refuses models on several nodes under a barrier.
func (l *loader) oneNode(s *section, p *Point) {
	for _, m := range p.Models {
		if m.Node != 0 {
			s.wrong("kind", "want all models on node 0: a barrier looks at all of them, and %q is on node %d",
				m.Name, m.Node)
		}
	}
}

func (l *loader) delayed(s *section, p *Point) {
	p.Policy.MaxWaitNs = s.duration("max_wait", 0, 1)
	given := s.get("thresholds")
	switch {
	case s.has("table"):
		if given != nil {
			s.wrong("table", "want thresholds or table, not both")
		}
		p.Policy.Table = l.thresholdTable(s.sub("table"), p)
	case given == nil && l.sweep.over("thresholds"):
		// what is wrong with the sweep, or with the concurrency of a pattern, has been said
	case given == nil:
		s.missing("thresholds", `want one integer for each model, or "planned", or table`)
	case given.value == "planned":
		l.planned(s, p)
	default:
		if _, isText := given.value.(string); isText {
			s.wrong("thresholds", `want one integer for each model, or "planned"`)
			return
		}
		l.fixed(s, p)
	}
}

// fixed reads one set for all N.
func (l *loader) fixed(s *section, p *Point) {
	before := len(l.problems)
	b := s.wholes("thresholds", 1, math.MaxInt32)
	if len(l.problems) > before || p.Concurrency == 0 {
		return
	}
	if len(b) != len(p.Models) {
		s.wrong("thresholds", "want %d integers, one for each model, not %d", len(p.Models), len(b))
		return
	}
	t, err := core.FixedThresholds(b, p.Concurrency)
	if err != nil {
		s.wrong("thresholds", "want a feasible set: %v", err)
		return
	}
	p.Policy.Table = t.Rows()
}

// thresholdTable reads thresholds for N = 1, 2, ... up to the concurrency, by model.
func (l *loader) thresholdTable(s *section, p *Point) [][]int {
	rows := make([][]int, p.Concurrency)
	for n := range rows {
		rows[n] = make([]int, len(p.Models))
		for m := range rows[n] {
			rows[n][m] = 1
		}
	}
	before := len(l.problems)
	for m, model := range p.Models {
		if !s.has(model.Name) {
			s.known[model.Name] = true
			continue
		}
		column := s.wholes(model.Name, 1, math.MaxInt32)
		if len(column) < p.Concurrency && len(l.problems) == before {
			s.wrong(model.Name, "want a threshold for each N = 1 to %d (workload.concurrency), not %d of them",
				p.Concurrency, len(column))
			continue
		}
		for n := range min(len(column), len(rows)) {
			rows[n][m] = column[n]
		}
	}
	for _, key := range s.keys.keys() {
		if !s.known[key] {
			s.r.add(s.keys[key], s.name(key), "unknown model, the models are "+quoteAll(p.names()))
		}
	}
	if len(l.problems) > before || p.Concurrency == 0 {
		return nil
	}
	if _, err := core.TableThresholds(rows); err != nil {
		s.r.add(s.at, s.path, "want feasible sets: "+err.Error())
		return nil
	}
	return rows
}

func (p *Point) names() []string {
	names := make([]string, len(p.Models))
	for i, m := range p.Models {
		names[i] = m.Name
	}
	return names
}

// planned leaves the thresholds to the chain, where the chain describes the point.
func (l *loader) planned(s *section, p *Point) {
	p.Policy.Planned = true
	p.Policy.Hold = make([]int, len(p.Models))
	if s.has("hold") {
		hold := s.wholes("hold", 0, math.MaxInt32)
		if len(hold) != len(p.Models) {
			s.wrong("hold", "want %d integers, one for each model, not %d", len(p.Models), len(hold))
			return
		}
		p.Policy.Hold = hold
		least := make([]int, len(hold))
		for i, b := range hold {
			least[i] = max(b, 1)
		}
		if err := core.Feasible(least, p.Concurrency); err != nil && p.Concurrency > 0 {
			s.wrong("hold", "want a feasible set: %v", err)
		}
	}
	if l.spec.Answered && !l.spec.Hardware.Calibrate {
		s.wrong("thresholds", "want system.calibrate = true, or thresholds as integers: planning takes step times")
	}
	if why := p.Unpredictable(); why != "" && len(l.problems) == 0 && !l.toCalibrate() {
		s.wrong("thresholds", "want thresholds as integers: the chain can not plan here, %s", why)
	}
}

// goOn reports whether requests that come to a model with several tokens can meet such as go on there by one:
// where they can stay after a step, at any model but R2R's small one, to which they come back with one token.
func (p *Point) goOn() bool {
	for i, row := range p.Routing {
		for j, back := range p.Routing {
			if j != i && row[i] > 0 && back[i] > 0 && back[i] < 1 {
				return true
			}
		}
	}
	return false
}

// moves reports whether there is a model that requests both come to and leave for another.
func (p *Point) moves() bool {
	for i, row := range p.Routing {
		comes, leaves := false, false
		for j := range row {
			comes = comes || j != i && p.Routing[j][i] > 0
			leaves = leaves || j != i && row[j] > 0
		}
		if comes && leaves {
			return true
		}
	}
	return false
}

// Unpredictable says why the throughput model does not describe the point's models and router, or is empty
// if it does.
func (p *Point) Unpredictable() string {
	if p.Routing == nil {
		return "verdicts are not independent draws"
	}
	if p.Static && p.Concurrency > 1 {
		return "batches are static: fewer than the concurrency run until the last of a batch has left"
	}
	if p.Ahead && p.Concurrency > 1 && p.moves() {
		return "steps are planned ahead: who comes to a model while it runs waits for the step after next"
	}
	for _, m := range p.Models {
		if m.ByRows == nil {
			return m.unknown
		}
		if m.RowsMax > 0 && m.RowsMax < p.Concurrency {
			return "rows_max of " + m.Name + " is below the concurrency"
		}
		if m.Node != 0 {
			return "models are on several nodes"
		}
	}
	return ""
}

// Core is the policy as the scheduler takes it. rows are the thresholds of a delayed one for N = 1, 2, ...:
// Table, or what the chain has planned.
func (p Policy) Core(rows [][]int) (core.Policy, error) {
	switch p.Kind {
	case "step-sync":
		return core.StepSync{}, nil
	case "model-sync":
		return core.ModelSync{}, nil
	case "eager":
		return core.Eager{}, nil
	case "delayed":
		t, err := core.TableThresholds(rows)
		return core.Delayed{Thresholds: t, MaxWait: p.MaxWaitNs}, err
	default:
		panic("spec: policy of kind " + p.Kind)
	}
}
