package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tokenrouter/experiments/result"
	"tokenrouter/experiments/run"
	"tokenrouter/experiments/spec"
)

// systemAxes are the axes that change the system which the throughput model sees; the number of requests in
// flight is told apart anyway.
var systemAxes = []string{spec.VariantAxis, "p", "latency_scale", "host_call", "prompt_tokens",
	"output_tokens"}

// fromSpec asks about every system that a spec has, once each, in the order of its points.
func (f *predictFlags) fromSpec(path string) ([]question, error) {
	for _, given := range []struct {
		name string
		set  bool
	}{{"--p", f.p.set}, {"--latency", f.latency.set}, {"--routing", f.routing.set}, {"--commit", f.commit.set}} {
		if given.set {
			return nil, misuse("%s and %s both describe a system, want one of them", path, given.name)
		}
	}
	s, err := loadSpec(path)
	if err != nil {
		return nil, err
	}
	var questions []question
	seen, left := map[string]bool{}, map[string]string{} // why a system is left out, if nowhere it is not
	reason, concurrencies := "", []int(nil)
	for i := range s.Points {
		p := &s.Points[i]
		if why := p.Unpredictable(); why != "" {
			reason = why
			left[placeOf(p.Concurrency, systemOf(p))] = why
			continue
		}
		if !slices.Contains(concurrencies, p.Concurrency) {
			concurrencies = append(concurrencies, p.Concurrency)
		}
		key := placeOf(p.Concurrency, systemOf(p))
		if seen[key] || f.n.set && f.n.of != p.Concurrency {
			continue
		}
		seen[key] = true
		m, err := run.Chain(p)
		if err != nil {
			return nil, badInput(err)
		}
		q, err := f.question(m, p.Concurrency)
		if err != nil {
			return nil, err
		}
		q.experiment, q.system, q.mean, q.notes = s.Name, systemOf(p), p.MeanRows(), p.Warnings
		if !f.fix.set && !f.thresholds.set {
			q.fixed = held(s.Points, p)
		}
		questions = append(questions, q)
	}
	switch {
	case len(concurrencies) == 0:
		return nil, badInput(fmt.Errorf("spec %s: the throughput model does not describe it: %s", path, reason))
	case len(questions) == 0:
		return nil, misuse("-n = %d, want a concurrency that %s has: %s", f.n.of, path,
			result.JoinInts(concurrencies))
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if !seen[key] && !f.n.set {
			questions[0].others = append(questions[0].others, fmt.Sprintf("%s: not predicted: %s", key, left[key]))
		}
	}
	return questions, nil
}

// placeOf names a system with its requests in flight.
func placeOf(n int, system string) string {
	return strings.TrimSuffix(fmt.Sprintf("N = %d, %s", n, system), ", ")
}

// loadSpec reads a spec; whatever is wrong with it is misuse.
func loadSpec(path string) (*spec.Spec, error) {
	if err := regularFile("spec", path); err != nil {
		return nil, err
	}
	s, err := spec.Load(path)
	return s, badInput(err)
}

// systemOf names what a sweep has set of the system, such as "p = 0.35".
func systemOf(p *spec.Point) string {
	var parts []string
	for _, v := range p.Values {
		if slices.Contains(systemAxes, v.Axis) {
			parts = append(parts, v.Axis+" = "+v.Text)
		}
	}
	return strings.Join(parts, ", ")
}

// held are the thresholds that the spec does not search at the concurrency of p: those that it holds for
// the chain, or that are the same in every set of a sweep. nil: it searches all.
func held(points []spec.Point, p *spec.Point) []int {
	if p.Policy.Planned {
		return p.Policy.Hold
	}
	var sets [][]int
	for i := range points {
		other := &points[i]
		if other.Concurrency == p.Concurrency && other.Policy.Table != nil && systemOf(other) == systemOf(p) {
			sets = append(sets, other.Policy.Table[p.Concurrency-1])
		}
	}
	if len(sets) < 2 {
		return nil
	}
	hold := slices.Clone(sets[0])
	for _, set := range sets {
		for m, b := range set {
			if b != hold[m] {
				hold[m] = 0
			}
		}
	}
	return hold
}
