package cli

import (
	"fmt"
	"strings"

	"tokenrouter/core/chain"
)

// questions turns the command line into systems to solve.
func (f *predictFlags) questions(args []string) ([]question, error) {
	if f.thresholds.set && f.fix.set {
		return nil, misuse("--thresholds and --fix are both given, want one of them")
	}
	if len(args) == 1 {
		return f.fromSpec(args[0])
	}
	switch {
	case !f.p.set && !f.routing.set:
		return nil, misuse("no system is given, want SPEC.toml, or -n and --latency with --p or --routing")
	case !f.n.set:
		return nil, misuse("-n is missing, want the number of requests in flight")
	case !f.latency.set:
		return nil, misuse("--latency is missing, want a step time for each model, such as 6.0ms,27.9ms")
	}
	m, err := f.model()
	if err != nil {
		return nil, err
	}
	q, err := f.question(m, f.n.of)
	if err != nil {
		return nil, err
	}
	return []question{q}, nil
}

// model builds the system that the flags describe.
func (f *predictFlags) model() (chain.Model, error) {
	var m chain.Model
	switch {
	case f.p.set && f.routing.set:
		return m, misuse("--p and --routing are both given, want one of them")
	case f.p.set && f.commit.set:
		return m, misuse("--commit goes with --routing; --p stands for both matrices of R2R")
	case f.p.set:
		if got := len(f.latency.of); got != 2 {
			return m, misuse("--latency = %q has %s, want 2 with --p: small,large", f.latency.text, count(got, "time"))
		}
		m = chain.R2R(f.p.of, chain.StepTime{}, chain.StepTime{})
	case !f.commit.set:
		return m, misuse("--commit is missing, want the tokens committed by each move that --routing has")
	default:
		if got, want := len(f.commit.of), len(f.routing.of); got != want {
			return m, misuse("--commit = %q has %s, want %d as --routing has", f.commit.text, count(got, "row"), want)
		}
		if got, want := len(f.latency.of), len(f.routing.of); got != want {
			return m, misuse("--latency = %q has %s, want %d as --routing has rows",
				f.latency.text, count(got, "time"), want)
		}
		m = chain.Model{Routing: f.routing.of, Commit: f.commit.of}
	}
	m.Step = nil
	for _, ns := range f.latency.of {
		m.Step = append(m.Step, chain.Constant(ns))
	}
	return m, nil
}

// question adds to m what is asked of it, and checks the thresholds against the models and n.
func (f *predictFlags) question(m chain.Model, n int) (question, error) {
	if f.quantum.set {
		m.QuantumNs = f.quantum.of
	}
	if err := m.Validate(n); err != nil {
		return question{}, misuse("%w", err)
	}
	q := question{model: m, n: n, only: f.thresholds.of, fixed: f.fix.of}
	if f.thresholds.set {
		if err := feasible("--thresholds", f.thresholds.text, q.only, n, len(m.Step)); err != nil {
			return question{}, err
		}
	}
	if f.fix.set {
		if err := feasible("--fix", f.fix.text, q.fixed, n, len(m.Step)); err != nil {
			return question{}, err
		}
	}
	return q, nil
}

// feasible checks set, which flag gave as text; 0 stands for a free threshold, at best 1.
func feasible(flag, text string, set []int, n, models int) error {
	if len(set) != models {
		return misuse("%s = %q has %s, want %d, one for each model",
			flag, text, count(len(set), "threshold"), models)
	}
	sum := 0
	var terms []string
	for _, b := range set {
		waiting := max(b, 1) - 1
		sum += waiting
		terms = append(terms, fmt.Sprint(waiting))
	}
	if sum < n {
		return nil
	}
	return badInput(fmt.Errorf("%s = %q is infeasible at N = %d: sum(threshold - 1) = %s = %d is not below %d, "+
		"so all requests could wait for ever", flag, text, n, strings.Join(terms, " + "), sum, n))
}

// count is a number of things, in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
