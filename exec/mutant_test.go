package exec_test

import (
	"testing"
	"time"

	"tokenrouter/exec"
)

// deviceFunc is a Device of one function.
type deviceFunc func(*exec.Pass) error

// Step implements exec.Device.
func (f deviceFunc) Step(p *exec.Pass) error { return f(p) }

// swapped gives the first two rows each other's results.
func swapped(_ int, d exec.Device) exec.Device {
	return deviceFunc(func(p *exec.Pass) error {
		err := d.Step(p)
		if len(p.Results) > 1 && p.Launch.Rows[0].Head && p.Launch.Rows[1].Head {
			p.Results[0], p.Results[1] = p.Results[1], p.Results[0]
		}
		return err
	})
}

// shifted gives the last row of a pass what it gave the first.
func shifted(_ int, d exec.Device) exec.Device {
	return deviceFunc(func(p *exec.Pass) error {
		err := d.Step(p)
		if last := len(p.Results) - 1; p.Launch.Rows[0].Head && p.Launch.Rows[last].Head {
			p.Results[last] = p.Results[0]
		}
		return err
	})
}

// TestWrongExecutorsAreCaught: conformance is worth something only if an executor with a
// fault does not conform. Each of these has one.
func TestWrongExecutorsAreCaught(t *testing.T) {
	mutants := map[string]func(*world){
		"events of one instant in several turns":  func(w *world) { w.gather = 0 },
		"events of several instants in one turn":  func(w *world) { w.gather = time.Microsecond + 1 },
		"passes end 1 ns late":                    func(w *world) { w.lateNs = 1 },
		"clients are 1 ns late":                   func(w *world) { w.tardyNs = 1 },
		"results of two rows swapped":             func(w *world) { w.wrap = swapped },
		"a row gets another's result":             func(w *world) { w.wrap = shifted },
		"links that let messages overtake others": func(w *world) { w.reorders = true },
	}
	for name, mutant := range mutants {
		t.Run(name, func(t *testing.T) {
			caught, runs := 0, 0
			for seed := range uint64(9) {
				for _, nodes := range placements {
					policy := []string{"eager", "delayed", "delayed with a maximum wait"}[seed%3]
					s := randomScenario(seed, policy, nodes[:2+seed%2])
					want, _ := s.simulated(t)
					runs++
					if difference(want, s.executed(t, mutant)) != "" {
						caught++
					}
				}
			}
			t.Logf("%d of %d runs differ", caught, runs)
			if caught == 0 {
				t.Errorf("in %d runs nobody saw the fault", runs)
			}
		})
	}
}
